import { OptionError } from '@shardtool/format';
import type { z } from 'zod';
import { STEPS } from './step-table.js';

export type StepName = keyof typeof STEPS;
type StepOf<Name extends StepName> = z.output<(typeof STEPS)[Name]['schema']>;
/** A step with all its parameters. */
export type Step = { [Name in StepName]: StepOf<Name> }[StepName];
/** A step as it is written: parameters with a default may be left out. */
export type StepInput = { [Name in StepName]: z.input<(typeof STEPS)[Name]['schema']> }[StepName];

/** Fills in the defaults. Throws {@link OptionError} that names the step and what it takes. */
export function parseSteps(list: unknown): Step[] {
  if (!Array.isArray(list))
    throw new OptionError({}, `A transform is a list of steps: ${Object.keys(STEPS).join(', ')}.`);
  return list.map((step: unknown, index) => {
    const name = stepName(step);
    if (name === null) {
      throw new OptionError(
        {},
        `Step ${index + 1} of the transform, ${JSON.stringify(step)}, is not known; a step has one of these names: ` +
          `${Object.keys(STEPS).join(', ')}.`,
      );
    }
    const result = STEPS[name].schema.safeParse(step);
    if (result.success) return result.data;
    const [issue] = result.error.issues;
    const where = issue!.path.length > 0 ? `${issue!.path.join('.')}: ` : '';
    throw new OptionError(
      {},
      `Step ${index + 1} of the transform, ${name}, is not right (${where}${issue!.message}); it takes ${STEPS[name].takes}.`,
    );
  });
}

function stepName(step: unknown): StepName | null {
  const name = typeof step === 'object' && step !== null && 'name' in step ? step.name : undefined;
  return typeof name === 'string' && Object.hasOwn(STEPS, name) ? (name as StepName) : null;
}
