import { codeName, didYouMean, OptionError, type Sentence, sentence, withCodeNames } from '@shardtool/base';
import { parseShape } from '@shardtool/format';
import { z } from 'zod';
import type { Zod } from './parameters/kinds.js';
import { STEPS } from './step-table.js';
import type { StepEntry } from './steps/step.js';

export type StepName = keyof typeof STEPS;
/** A checked step with all its parameters. */
export type Step = { [Name in StepName]: z.output<ReturnType<(typeof STEPS)[Name]['schema']>> }[StepName];
/** Steps that crop, resize and change bytes. The other steps set dtype, normalization and layout. */
export type PixelStep = {
  [Name in StepName]: (typeof STEPS)[Name] extends { readonly draw: unknown } ? Extract<Step, { name: Name }> : never;
}[StepName];
export type ErasingStep = Extract<Step, { readonly name: 'randomErasing' }>;

/** The entry of a step in the step table. */
export function entryOf(step: Step): StepEntry<Step> {
  return STEPS[step.name] as unknown as StepEntry<Step>;
}

/** A list of steps and, after each step, the steps within it. */
export function everyStep(steps: readonly Step[]): Step[] {
  return steps.flatMap((step) => [step, ...everyStep(nestedSteps(step))]);
}

/** The steps within a step. */
function nestedSteps(step: Step): Step[] {
  return (entryOf(step).nested?.(step).flat() ?? []) as Step[];
}

/** Checks a list of steps and fills in defaults. With `isWide`, values of pixels may be any numbers, one per channel. Throws {@link OptionError} that names the step and its parameters. */
export function parseSteps(list: unknown, place = 'the transform', isWide = false): Step[] {
  if (!Array.isArray(list))
    throw new OptionError({}, sentence`A transform must be a list of steps. The steps are ${stepNames()}.`);
  return list.map((given: unknown, index) => {
    const name = stepName(given);
    const where = `Step ${index + 1} of ${place}`;
    if (name === null) throw unknownStep(given, where);
    const step = { ...withKnownNames(given as object, name), name };
    const isContainer = 'nested' in STEPS[name] && 'transforms' in step && Array.isArray(step.transforms);
    return parseShape(
      schemaOf(name, isWide),
      isContainer
        ? { ...step, transforms: parseLists(step.transforms as unknown[], `step ${index + 1} of ${place}`, isWide) }
        : step,
      ({ where: path, what }) =>
        new OptionError(
          {},
          sentence`${where}, ${codeName(name)}, is invalid (${path === '' ? 'it' : withCodeNames(path)} ${withCodeNames(what, isNameOfOurs)}). Its parameters: ${parametersOf(name)}.`,
        ),
    );
  });
}

/** Checks the steps within a step. Each item becomes a list; lists within lists are joined. */
function parseLists(items: readonly unknown[], place: string, isWide: boolean): readonly (readonly Step[])[] {
  return items.map((item, i) => {
    const list = Array.isArray(item) ? item.flat(Number.POSITIVE_INFINITY) : [item];
    const where = Array.isArray(item) ? `list ${i + 1} of ${place}` : `item ${i + 1} of ${place}`;
    const steps = parseSteps(list, where, isWide);
    const last = steps.find((step) => entryOf(step).draw === undefined);
    if (last === undefined) return steps;
    throw new OptionError(
      {},
      sentence`The step ${codeName(last.name)} cannot be inside ${place}: move it to the end of the transform.`,
    );
  });
}

const schemas = { rgb: new Map<StepName, z.ZodType<Step>>(), wide: new Map<StepName, z.ZodType<Step>>() };

/**
 * The part of zod that checks steps. All of zod would add 0.45 MB to every process. It is a function, so that bundles
 * that only use the steps do not contain zod.
 */
const zod = (isWide: boolean): Zod => ({
  isWide,
  array: z.array,
  boolean: z.boolean,
  enum: z.enum,
  literal: z.literal,
  number: z.number,
  strictObject: z.strictObject,
  string: z.string,
  tuple: z.tuple,
  union: z.union,
  unknown: z.unknown,
});

/** The schema of a step. It is built on first use. */
function schemaOf(name: StepName, isWide: boolean): z.ZodType<Step> {
  const known = isWide ? schemas.wide : schemas.rgb;
  let schema = known.get(name);
  if (schema === undefined) {
    schema = STEPS[name].schema(zod(isWide)) as z.ZodType<Step>;
    known.set(name, schema);
  }
  return schema;
}

/** Lists the parameters of a step with their allowed values, for messages. */
function parametersOf(name: StepName): Sentence {
  const parameters = Object.entries(STEPS[name].parameters).map(([parameter, { takes }]) => `${parameter} (${takes})`);
  return withCodeNames(parameters.join(', '), isNameOfOurs);
}

/** Lists all steps, for messages. */
function stepNames(): Sentence {
  return withCodeNames(Object.keys(STEPS).join(', '));
}

/** Names of steps and of their parameters. */
const OURS = new Set(Object.entries(STEPS).flatMap(([name, { parameters }]) => [name, ...Object.keys(parameters)]));

function isNameOfOurs(word: string): boolean {
  return OURS.has(word);
}

/** Folds a name for comparison: `RandomIoUCrop`, `random_iou_crop` and `randomIoUCrop` are the same, and so are `max_size` and `maxSize`. */
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

/** Renames the parameters of a step to their names in the step table. */
function withKnownNames(step: object, name: StepName): object {
  const parameters = new Map(Object.keys(STEPS[name].parameters).map((parameter) => [folded(parameter), parameter]));
  return Object.fromEntries(Object.entries(step).map(([key, value]) => [parameters.get(folded(key)) ?? key, value]));
}

/** Steps of torchvision that convert images to arrays or tensors. They are not needed here, because images already are arrays. */
const NOT_NEEDED = ['ToTensor', 'ToImage', 'PILToTensor', 'ToPureTensor', 'ConvertImageDtype'].map(folded);

function unknownStep(step: unknown, where: string): OptionError {
  const name = givenName(step) ?? '';
  const suggestion = didYouMean(name, Object.keys(STEPS));
  const hint = NOT_NEEDED.includes(folded(name))
    ? withCodeNames('is not needed: images already are arrays, and toDtype converts them to floats. Remove the step')
    : sentence`is unknown${suggestion === '' ? '.' : withCodeNames(suggestion, isNameOfOurs)} Known steps: ${stepNames()}`;
  return new OptionError({}, sentence`${where}, ${JSON.stringify(step)}, ${hint}.`);
}
