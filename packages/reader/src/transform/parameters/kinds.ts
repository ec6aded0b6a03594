/** Kinds of step parameters: how each is checked, and how it is written in messages, TypeScript and Python. */
import type { z } from 'zod';
import { LARGEST_SIDE } from '../crops.js';
import { parseTimmConfig, type TimmPolicy } from '../policies/timm-config.js';

/** The part of zod that builds checks. It is passed in only for checking: decode workers load the steps, and start faster without zod. */
export type Zod = Pick<
  typeof z,
  'array' | 'boolean' | 'enum' | 'literal' | 'number' | 'strictObject' | 'string' | 'tuple' | 'union' | 'unknown'
> & {
  /** Whether images are not 8-bit RGB, so that pixels may have other values than three bytes. */
  readonly isWide: boolean;
};
type BuildCheck<Check extends z.ZodType> = (z: Zod) => Check;

/** One kind of parameter value. */
export interface Kind<Check extends z.ZodType = z.ZodType> {
  readonly check: BuildCheck<Check>;
  /** The allowed values, as errors and docs print them. */
  readonly takes: string;
  readonly typescript: string;
  readonly python: string;
}

function kind<Check extends z.ZodType>(
  check: BuildCheck<Check>,
  takes: string,
  typescript: string,
  python: string,
): Kind<Check> {
  return { check, takes, typescript, python };
}

const PAIR = 'number | readonly [number, number]';
const pair = (item: BuildCheck<z.ZodNumber>) => (z: Zod) => z.tuple([item(z), item(z)]).readonly();
const orderedPair = (item: BuildCheck<z.ZodNumber>) => (z: Zod) =>
  pair(item)(z).refine(([low, high]) => low <= high, 'must have the smaller value first');

const number = (z: Zod) => z.number();
const notNegative = (z: Zod) => z.number().min(0);
const positive = (z: Zod) => z.number().positive();
const side = (z: Zod) => z.number().int().min(1).max(LARGEST_SIDE);
const pixels = (z: Zod) => z.number().int().min(0).max(LARGEST_SIDE);
const byte = (z: Zod) => z.number().int().min(0).max(255);
const between0And1 = (z: Zod) => z.number().min(0).max(1);
const positiveRange = orderedPair(positive);
/**
 * Three numbers, or in formats other than 8-bit RGB, one number per channel. Their count is checked together with the
 * number of channels.
 */
const triple = (z: Zod) =>
  (z.isWide ? z.array(z.number()).min(1) : z.tuple([z.number(), z.number(), z.number()])) as unknown as z.ZodType<
    Triple,
    readonly number[]
  >;
type Triple = readonly [number, number, number];
const odd = (z: Zod) =>
  z
    .number()
    .int()
    .min(1)
    .max(255)
    .refine((value) => value % 2 === 1, 'must be odd');

/** Expands a single number to a pair. */
const twice = <Pair extends readonly [number, number]>(value: number | Pair) =>
  typeof value === 'number' ? ([value, value] as const) : value;
/** The range of a factor from its largest distance to 1, or from [low, high]. Null if it changes nothing (v2.ColorJitter `_check_input`). */
const aroundOne = (value: number | readonly [number, number]) => {
  const [low, high] = typeof value === 'number' ? ([Math.max(0, 1 - value), 1 + value] as const) : value;
  return low === 1 && high === 1 ? null : ([low, high] as const);
};
const aroundZero = (value: number | readonly [number, number]) =>
  typeof value === 'number' ? ([0 - value, value] as const) : value;

export const SIDE = kind(side, `pixels, 1 to ${LARGEST_SIDE}`, 'number', 'int');
export const SIZE = kind(
  (z) => z.union([side(z), pair(side)(z)]),
  `a number or [height, width], 1 to ${LARGEST_SIDE}`,
  PAIR,
  'int | Sequence[int]',
);
export const CROP_PART = kind(
  (z) => z.enum(['center', 'random']),
  'center or random',
  "'center' | 'random'",
  'Literal["center", "random"]',
);
export const PADDING = kind(
  (z) => z.union([pixels(z), pair(pixels)(z), z.tuple([pixels(z), pixels(z), pixels(z), pixels(z)]).readonly()]),
  'a number, [x, y] or [left, top, right, bottom]',
  `${PAIR} | readonly [number, number, number, number]`,
  'int | Sequence[int]',
);
/** The interpolations of steps that resize. */
export const INTERPOLATIONS = ['nearest', 'nearest-exact', 'bilinear', 'bicubic', 'box', 'hamming', 'lanczos'] as const;
export type Interpolation = (typeof INTERPOLATIONS)[number];
const RANDOM_INTERPOLATION: readonly Interpolation[] = ['bilinear', 'bicubic'];
/** One interpolation, or several to draw from. */
export const INTERPOLATION = kind(
  (z) =>
    z
      .union([z.enum([...INTERPOLATIONS, 'random']), z.array(z.enum(INTERPOLATIONS)).min(1).readonly()])
      .transform((given): readonly Interpolation[] => {
        if (typeof given !== 'string') return given;
        return given === 'random' ? RANDOM_INTERPOLATION : [given];
      }),
  'nearest, nearest-exact, bilinear, bicubic, box, hamming, lanczos, a list of these, or random',
  "InterpolationName | 'random' | readonly InterpolationName[]",
  'str | Sequence[str]',
);
export const PROBABILITY = kind(between0And1, 'a probability', 'number', 'float');
export const BITS = kind((z) => z.number().int().min(0).max(8), '0 to 8', 'number', 'int');
export const LEVEL = kind((z) => z.number().min(0).max(255), '0 to 255', 'number', 'float');
export const BYTE = kind(byte, '0 to 255', 'number', 'int');
const rgbBytes = (z: Zod) => z.union([byte(z), z.tuple([byte(z), byte(z), byte(z)]).readonly()]);
type Colour = z.ZodType<number | Triple, number | readonly number[]>;
/** One value for all channels, or red, green and blue. */
export const COLOUR = kind(
  (z) => (z.isWide ? z.union([z.number(), triple(z)]) : rgbBytes(z)) as unknown as Colour,
  '0 to 255, or [red, green, blue]',
  'number | readonly number[]',
  'float | Sequence[float]',
);
export const RANGE = kind(positiveRange, '[low, high], more than 0', 'readonly [number, number]', 'Sequence[float]');
export const PARTS = kind(
  orderedPair(between0And1),
  '[low, high], 0 to 1',
  'readonly [number, number]',
  'Sequence[float]',
);
export const FROM_ONE = kind(
  orderedPair((z) => z.number().min(1)),
  '[low, high], at least 1',
  'readonly [number, number]',
  'Sequence[float]',
);
export const PART = kind((z) => z.number().positive().max(1), 'more than 0, up to 1', 'number', 'float');
export const POSITIVE = kind(positive, 'more than 0', 'number', 'float');
export const NOT_NEGATIVE = kind(notNegative, 'a number, at least 0', 'number', 'float');
export const COUNT = kind((z) => z.number().int().min(1).max(100), '1 to 100', 'number', 'int');
export const PARTS_LIST = kind(
  (z) => z.array(between0And1(z)).min(1).readonly(),
  'a list of numbers from 0 to 1',
  'readonly number[]',
  'Sequence[float]',
);
export const UP_TO_100 = kind((z) => z.number().int().min(0).max(100), '0 to 100', 'number', 'int');
export const BINS = kind((z) => z.number().int().min(2).max(1000), '2 to 1000', 'number', 'int');
/** Checked steps within a step. Their type depends on the step table, and so on every step. */
export type StepLists = readonly (readonly unknown[])[];
/** Nested steps. The parser has checked them before, and made each item a list. */
export const STEP_LISTS = kind(
  (z) => z.array(z.unknown()).readonly() as unknown as z.ZodType<StepLists>,
  'a list of steps or lists of steps',
  'readonly StepsInput[]',
  'Sequence[object]',
);
export const WEIGHTS = kind(
  (z) => z.array(notNegative(z)).readonly(),
  'a list of numbers of at least 0',
  'readonly number[]',
  'Sequence[float]',
);
export const SWITCH = kind((z) => z.boolean(), 'true or false', 'boolean', 'bool');
export const DEGREES = kind(
  (z) => z.union([notNegative(z), orderedPair(number)(z)]).transform(aroundZero),
  'a number of at least 0, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
/** Parts of width and height. */
export const SHARES = kind(pair(between0And1), '[x, y], 0 to 1', 'readonly [number, number]', 'Sequence[float]');
/** Ranges of angles along x and, if there are four numbers, along y. */
export const SHEAR = kind(
  (z) =>
    z
      .union([notNegative(z), orderedPair(number)(z), z.tuple([number(z), number(z), number(z), number(z)]).readonly()])
      .transform((given): readonly [readonly [number, number], (readonly [number, number])?] => {
        if (typeof given === 'number') return [[0 - given, given]];
        return given.length === 2
          ? [given]
          : [
              [given[0], given[1]],
              [given[2], given[3]],
            ];
      }),
  'a number of at least 0, [low, high] or [x low, x high, y low, y high]',
  `${PAIR} | readonly [number, number, number, number]`,
  'float | Sequence[float]',
);
/** One side, or several to draw from. */
export const SIDES = kind(
  (z) => z.union([side(z), z.array(side(z)).min(1).readonly()]).transform((given) => [given].flat()),
  `pixels, 1 to ${LARGEST_SIDE}, or a list of these`,
  'number | readonly number[]',
  'int | Sequence[int]',
);
export const NUMBER = kind(number, 'a number', 'number', 'float');
export const PART_OR_0 = kind(between0And1, '0 to 1', 'number', 'float');
export const POINT = kind(pair(number), '[x, y] in pixels', 'readonly [number, number]', 'Sequence[float]');
export const ODD = kind(
  (z) => z.union([odd(z), pair(odd)(z)]).transform(twice),
  'an odd number up to 255, or [x, y]',
  PAIR,
  'int | Sequence[int]',
);
export const SIGMA = kind(
  (z) => z.union([positive(z), positiveRange(z)]).transform(twice),
  'a number, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
const quality = (z: Zod) => z.number().int().min(1).max(100);
export const QUALITY = kind(
  (z) => z.union([quality(z), orderedPair(quality)(z)]).transform(twice),
  '1 to 100, or [low, high]',
  PAIR,
  'int | Sequence[int]',
);
export const FACTOR = kind(
  (z) => z.union([notNegative(z), orderedPair(notNegative)(z)]).transform(aroundOne),
  'a number of at least 0, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
const turn = (z: Zod) => z.number().min(-0.5).max(0.5);
/** A fraction of the hue circle. Null if it changes nothing. */
export const HUE = kind(
  (z) =>
    z
      .union([turn(z).min(0), orderedPair(turn)(z)])
      .transform(aroundZero)
      .transform(([low, high]) => (low === 0 && high === 0 ? null : ([low, high] as const))),
  '0 to 0.5, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
export const THREE = kind(triple, 'three numbers', 'readonly number[]', 'Sequence[float]');
export const THREE_POSITIVE = kind(
  (z) => triple(z).refine((values) => values.every((value) => value > 0), 'must have only values above 0'),
  'three numbers, each more than 0',
  'readonly number[]',
  'Sequence[float]',
);
export const ERASED = kind(
  (z) => z.union([z.number(), triple(z), z.literal('random')]),
  'a number, [red, green, blue], or "random"',
  "number | readonly number[] | 'random'",
  'float | Sequence[float] | Literal["random"]',
);

/** The name of a policy of timm, parsed. */
export const TIMM_CONFIG = kind(
  (z) =>
    z.string().transform((given, context): TimmPolicy => {
      const parsed = parseTimmConfig(given);
      if (typeof parsed !== 'string') return parsed;
      context.addIssue({ code: 'custom', message: parsed });
      return undefined as never;
    }),
  'a policy of timm such as rand-m9-mstd0.5-inc1',
  'string',
  'str',
);

/** A kind that allows exactly these words or numbers. */
export function oneOf<const Values extends readonly (string | number)[]>(
  ...values: Values
): Kind<z.ZodType<Values[number], Values[number]>> {
  const literals = values.map((value) => JSON.stringify(value));
  const last = values.at(-1)!;
  const takes = values.length === 1 ? String(last) : `${values.slice(0, -1).join(', ')} or ${last}`;
  return kind(
    (z) => z.literal(values as unknown as string[]) as unknown as z.ZodType<Values[number], Values[number]>,
    takes,
    literals.join(' | ').replaceAll('"', "'"),
    `Literal[${literals.join(', ')}]`,
  );
}
