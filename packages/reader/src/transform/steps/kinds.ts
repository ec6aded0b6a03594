/** What parameters of steps may be: how each kind is checked, and how it is written in messages, TypeScript and Python. */
import { z } from 'zod';
import { LARGEST_SIDE } from '../crops.js';

/** One kind of value. */
export interface Kind<Check extends z.ZodType = z.ZodType> {
  readonly check: Check;
  /** What is allowed, as a sentence of an error and the docs have it. */
  readonly takes: string;
  readonly typescript: string;
  readonly python: string;
}

function kind<Check extends z.ZodType>(check: Check, takes: string, typescript: string, python: string): Kind<Check> {
  return { check, takes, typescript, python };
}

const ordered = ([low, high]: readonly [number, number]) => low <= high;
const DISORDER = 'must have the smaller value first';
const pair = <Item extends z.ZodType<number>>(item: Item) => z.tuple([item, item]).readonly();
const PAIR = 'number | readonly [number, number]';

const side = z.number().int().min(1).max(LARGEST_SIDE);
const pixels = z.number().int().min(0).max(LARGEST_SIDE);
const byte = z.number().int().min(0).max(255);
const between0And1 = z.number().min(0).max(1);
const positiveRange = pair(z.number().positive()).refine(ordered, DISORDER);
const triple = z.tuple([z.number(), z.number(), z.number()]).readonly();
const odd = z
  .number()
  .int()
  .min(1)
  .max(255)
  .refine((value) => value % 2 === 1, 'must be odd');

/** One number stands for two. */
const twice = <Pair extends readonly [number, number]>(value: number | Pair) =>
  typeof value === 'number' ? ([value, value] as const) : value;
/** A factor by how far it may be from 1; null changes nothing (v2.ColorJitter `_check_input`). */
const aroundOne = (value: number | readonly [number, number]) => {
  const [low, high] = typeof value === 'number' ? ([Math.max(0, 1 - value), 1 + value] as const) : value;
  return low === 1 && high === 1 ? null : ([low, high] as const);
};
const aroundZero = (value: number | readonly [number, number]) =>
  typeof value === 'number' ? ([0 - value, value] as const) : value;

export const SIDE = kind(side, `pixels, 1 to ${LARGEST_SIDE}`, 'number', 'int');
export const SIZE = kind(
  z.union([side, pair(side)]),
  `a number or [height, width], 1 to ${LARGEST_SIDE}`,
  PAIR,
  'int | Sequence[int]',
);
export const CROP_PART = kind(
  z.enum(['center', 'random']),
  'center or random',
  "'center' | 'random'",
  'Literal["center", "random"]',
);
export const PADDING = kind(
  z.union([pixels, pair(pixels), z.tuple([pixels, pixels, pixels, pixels]).readonly()]),
  'a number, [x, y] or [left, top, right, bottom]',
  `${PAIR} | readonly [number, number, number, number]`,
  'int | Sequence[int]',
);
export const PROBABILITY = kind(between0And1, 'a probability', 'number', 'float');
export const BYTE = kind(byte, '0 to 255', 'number', 'int');
/** One value for all channels, or red, green and blue. */
export const COLOUR = kind(
  z.union([byte, z.tuple([byte, byte, byte]).readonly()]),
  '0 to 255, or three of them',
  'number | readonly [number, number, number]',
  'int | Sequence[int]',
);
export const RANGE = kind(positiveRange, '[low, high], more than 0', 'readonly [number, number]', 'Sequence[float]');
export const PARTS = kind(
  pair(between0And1).refine(ordered, DISORDER),
  '[low, high], parts of the area',
  'readonly [number, number]',
  'Sequence[float]',
);
export const FROM_ONE = kind(
  pair(z.number().min(1)).refine(ordered, DISORDER),
  '[low, high], from 1 on',
  'readonly [number, number]',
  'Sequence[float]',
);
export const PART = kind(z.number().positive().max(1), 'more than 0, up to 1', 'number', 'float');
export const POSITIVE = kind(z.number().positive(), 'more than 0', 'number', 'float');
export const NOT_NEGATIVE = kind(z.number().min(0), 'a number from 0 on', 'number', 'float');
export const COUNT = kind(z.number().int().min(1).max(100), '1 to 100', 'number', 'int');
export const PARTS_LIST = kind(
  z.array(between0And1).min(1).readonly(),
  'a list of numbers from 0 to 1',
  'readonly number[]',
  'Sequence[float]',
);
export const SWITCH = kind(z.boolean(), 'true or false', 'boolean', 'bool');
export const DEGREES = kind(
  z.union([z.number().min(0), pair(z.number()).refine(ordered, DISORDER)]).transform(aroundZero),
  'a number from 0 on, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
export const POINT = kind(pair(z.number()), '[x, y] in pixels', 'readonly [number, number]', 'Sequence[float]');
export const ODD = kind(
  z.union([odd, pair(odd)]).transform(twice),
  'an odd number up to 255, or [x, y]',
  PAIR,
  'int | Sequence[int]',
);
export const SIGMA = kind(
  z.union([z.number().positive(), positiveRange]).transform(twice),
  'a number, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
export const FACTOR = kind(
  z.union([z.number().min(0), pair(z.number().min(0)).refine(ordered, DISORDER)]).transform(aroundOne),
  'a number from 0 on, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
const turn = z.number().min(-0.5).max(0.5);
/** A part of the circle of hues. */
export const HUE = kind(
  z
    .union([turn.min(0), pair(turn).refine(ordered, DISORDER)])
    .transform(aroundZero)
    .transform(([low, high]) => (low === 0 && high === 0 ? null : ([low, high] as const))),
  '0 to 0.5, or [low, high]',
  PAIR,
  'float | Sequence[float]',
);
export const THREE = kind(triple, 'three numbers', 'readonly [number, number, number]', 'Sequence[float]');
export const THREE_POSITIVE = kind(
  triple.refine((values) => values.every((value) => value > 0), 'must have values above 0 only'),
  'three numbers, each more than 0',
  'readonly [number, number, number]',
  'Sequence[float]',
);
export const ERASED = kind(
  z.union([z.number(), triple, z.literal('random')]),
  'a number, three of them, or "random"',
  "number | readonly [number, number, number] | 'random'",
  'float | Sequence[float] | Literal["random"]',
);

/** One of these words or numbers. */
export function oneOf<const Values extends readonly (string | number)[]>(
  ...values: Values
): Kind<z.ZodType<Values[number], Values[number]>> {
  const literals = values.map((value) => JSON.stringify(value));
  const last = values.at(-1)!;
  const takes = values.length === 1 ? String(last) : `${values.slice(0, -1).join(', ')} or ${last}`;
  return kind(
    z.literal(values as unknown as string[]) as unknown as z.ZodType<Values[number], Values[number]>,
    takes,
    literals.join(' | ').replaceAll('"', "'"),
    `Literal[${literals.join(', ')}]`,
  );
}
