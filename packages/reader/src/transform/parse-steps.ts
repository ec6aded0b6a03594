import { OptionError } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import { STEPS } from './step-table.js';
import type { Zod } from './steps/kinds.js';
import type { StepEntry } from './steps/step.js';

export type StepName = keyof typeof STEPS;
/** A step with all its parameters. */
export type Step = { [Name in StepName]: z.output<ReturnType<(typeof STEPS)[Name]['schema']>> }[StepName];
/** Steps that choose, resize and change pixels of bytes; the others say what values become. */
export type PixelStep = {
  [Name in StepName]: (typeof STEPS)[Name] extends { readonly draw: unknown } ? Extract<Step, { name: Name }> : never;
}[StepName];
export type ErasingStep = Extract<Step, { readonly name: 'randomErasing' }>;

/** What is known of a step. */
export function entryOf(step: Step): StepEntry<Step> {
  return STEPS[step.name] as unknown as StepEntry<Step>;
}

/** Fills in the defaults. Throws {@link OptionError} that names the step and what it takes. */
export function parseSteps(list: unknown): Step[] {
  if (!Array.isArray(list))
    throw new OptionError({}, `A transform is a list of steps: ${Object.keys(STEPS).join(', ')}.`);
  return list.map((given: unknown, index) => {
    const name = stepName(given);
    if (name === null) throw unknownStep(given, index);
    const step = { ...spelled(given as object, name), name };
    return parseShape(schemaOf(name), step, ({ where, what }) => {
      const message = `Step ${index + 1} of the transform, ${name}, is not right (${where || 'it'} ${what}); it takes ${takes(name)}.`;
      return new OptionError({}, message);
    });
  });
}

const schemas = new Map<StepName, z.ZodType<Step>>();

/**
 * What steps are checked with: all of zod would be 0.45 MB more that every process reads. A function, so that what only has the steps
 * is made without.
 */
const zod = (): Zod => ({
  array: z.array,
  boolean: z.boolean,
  enum: z.enum,
  literal: z.literal,
  number: z.number,
  strictObject: z.strictObject,
  tuple: z.tuple,
  union: z.union,
});

/** Made when a step is first asked for. */
function schemaOf(name: StepName): z.ZodType<Step> {
  let schema = schemas.get(name);
  if (schema === undefined) {
    schema = STEPS[name].schema(zod()) as z.ZodType<Step>;
    schemas.set(name, schema);
  }
  return schema;
}

/** The parameters of a step and what they may be. */
function takes(name: StepName): string {
  return Object.entries(STEPS[name].parameters)
    .map(([parameter, { takes }]) => `${parameter} (${takes})`)
    .join(', ');
}

/** Names as they are compared: `RandomIoUCrop`, `random_iou_crop` and `randomIoUCrop` are one, and so are `max_size` and `maxSize`. */
function folded(name: string): string {
  return name.replaceAll('_', '').toLowerCase();
}

const NAMES = new Map(Object.keys(STEPS).map((name) => [folded(name), name as StepName]));

function stepName(step: unknown): StepName | null {
  const name = givenName(step);
  return name === null ? null : (NAMES.get(folded(name)) ?? null);
}

function givenName(step: unknown): string | null {
  const name = typeof step === 'object' && step !== null && 'name' in step ? step.name : undefined;
  return typeof name === 'string' ? name : null;
}

/** The step with its parameters under their own names. */
function spelled(step: object, name: StepName): object {
  const parameters = new Map(Object.keys(STEPS[name].parameters).map((parameter) => [folded(parameter), parameter]));
  return Object.fromEntries(Object.entries(step).map(([key, value]) => [parameters.get(folded(key)) ?? key, value]));
}

/** Steps of torchvision that make arrays or tensors of images, which they are here. */
const NOT_NEEDED = ['ToTensor', 'ToImage', 'PILToTensor', 'ToPureTensor', 'ConvertImageDtype'].map(folded);

function unknownStep(step: unknown, index: number): OptionError {
  const hint = NOT_NEEDED.includes(folded(givenName(step) ?? ''))
    ? 'is not needed: images are arrays already, and toDtype makes floats of them. Leave it out'
    : `is not known; a step has one of these names: ${Object.keys(STEPS).join(', ')}`;
  return new OptionError({}, `Step ${index + 1} of the transform, ${JSON.stringify(step)}, ${hint}.`);
}
