import { OptionError } from '@shardtool/format';
import { z } from 'zod';
import { LARGEST_SIDE } from './crops.js';

const side = z.number().int().min(1).max(LARGEST_SIDE);
/** One number for a square, or [height, width]. */
const size = z.union([side, z.tuple([side, side]).readonly()]);
const pixels = z.number().int().min(0).max(LARGEST_SIDE);
const sides = z.tuple([pixels, pixels]).readonly();
const ordered = ([low, high]: readonly [number, number]) => low <= high;
const range = z
  .tuple([z.number().positive(), z.number().positive()])
  .readonly()
  .refine(ordered, 'the first must not be the larger');
const perChannel = z.tuple([z.number(), z.number(), z.number()]).readonly();

/** The steps of a transform by name, with torchvision v2's names, parameters and defaults. */
const STEPS = {
  resize: {
    takes: 'size (the shorter side, or [height, width]) and maxSize (the most that the longer side may become)',
    schema: z
      .strictObject({ name: z.literal('resize'), size, maxSize: side.optional() })
      .refine(({ size, maxSize }) => maxSize === undefined || (typeof size === 'number' && maxSize > size), {
        path: ['maxSize'],
        message: 'it must be more than size, and size one number',
      }),
  },
  centerCrop: {
    takes: 'size (a number or [height, width])',
    schema: z.strictObject({ name: z.literal('centerCrop'), size }),
  },
  randomCrop: {
    takes:
      'size (a number or [height, width]), padding (a number, [x, y] or [left, top, right, bottom]), padIfNeeded and ' +
      'fill (0 to 255)',
    schema: z.strictObject({
      name: z.literal('randomCrop'),
      size,
      padding: z.union([pixels, sides, z.tuple([pixels, pixels, pixels, pixels]).readonly()]).default(0),
      padIfNeeded: z.boolean().default(false),
      fill: z.number().int().min(0).max(255).default(0),
    }),
  },
  randomResizedCrop: {
    takes:
      'size (a number or [height, width]), scale ([low, high], parts of the area) and ratio ([low, high], width / height)',
    schema: z.strictObject({
      name: z.literal('randomResizedCrop'),
      size,
      scale: range.default([0.08, 1]),
      ratio: range.default([3 / 4, 4 / 3]),
    }),
  },
  randomHorizontalFlip: {
    takes: 'p (a probability)',
    schema: z.strictObject({ name: z.literal('randomHorizontalFlip'), p: z.number().min(0).max(1).default(0.5) }),
  },
  toDtype: {
    takes: 'dtype (uint8 or float32) and scale (true: float32 from 0 to 1 instead of 0 to 255)',
    schema: z.strictObject({
      name: z.literal('toDtype'),
      dtype: z.enum(['uint8', 'float32']),
      scale: z.boolean().default(false),
    }),
  },
  normalize: {
    takes: 'mean and std (three numbers each, of values from 0 to 1)',
    schema: z.strictObject({
      name: z.literal('normalize'),
      mean: perChannel,
      std: perChannel.refine((values) => values.every((value) => value > 0), 'each must be more than 0'),
    }),
  },
  layout: {
    takes: 'layout (nhwc or nchw)',
    schema: z.strictObject({ name: z.literal('layout'), layout: z.enum(['nhwc', 'nchw']) }),
  },
} as const;

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
