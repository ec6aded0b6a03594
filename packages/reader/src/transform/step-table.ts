import { z } from 'zod';
import { LARGEST_SIDE } from './crops.js';

const side = z.number().int().min(1).max(LARGEST_SIDE);
/** One number for a square, or [height, width]. */
const size = z.union([side, z.tuple([side, side]).readonly()]);
const pixels = z.number().int().min(0).max(LARGEST_SIDE);
const sides = z.tuple([pixels, pixels]).readonly();
const ordered = ([low, high]: readonly [number, number]) => low <= high;
const DISORDER = 'the first must not be the larger';
const range = z.tuple([z.number().positive(), z.number().positive()]).readonly().refine(ordered, DISORDER);
const perChannel = z.tuple([z.number(), z.number(), z.number()]).readonly();
const probability = z.number().min(0).max(1);
const byte = z.number().int().min(0).max(255);
/** One value for all channels, or red, green and blue. */
const colour = z.union([byte, z.tuple([byte, byte, byte]).readonly()]);
const odd = z
  .number()
  .int()
  .min(1)
  .max(255)
  .refine((value) => value % 2 === 1, 'it must be odd');

/** A factor by how far it may be from 1, or as [low, high]; null changes nothing (v2.ColorJitter `_check_input`). */
const factor = z
  .union([
    z.number().min(0),
    z
      .tuple([z.number().min(0), z.number().min(0)])
      .readonly()
      .refine(ordered, DISORDER),
  ])
  .default(0)
  .transform((value) => (typeof value === 'number' ? ([Math.max(0, 1 - value), 1 + value] as const) : value))
  .transform(([low, high]) => (low === 1 && high === 1 ? null : ([low, high] as const)));

const turn = z.number().min(-0.5).max(0.5);
/** A part of the circle of hues. */
const hue = z
  .union([turn.min(0), z.tuple([turn, turn]).readonly().refine(ordered, DISORDER)])
  .default(0)
  .transform((value) => (typeof value === 'number' ? ([0 - value, value] as const) : value))
  .transform(([low, high]) => (low === 0 && high === 0 ? null : ([low, high] as const)));

/** The steps of a transform by name, with torchvision v2's names, parameters and defaults. */
export const STEPS = {
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
      'size (a number or [height, width]), padding (a number, [x, y] or [left, top, right, bottom]), padIfNeeded, fill ' +
      'and maskFill (0 to 255)',
    schema: z.strictObject({
      name: z.literal('randomCrop'),
      size,
      padding: z.union([pixels, sides, z.tuple([pixels, pixels, pixels, pixels]).readonly()]).default(0),
      padIfNeeded: z.boolean().default(false),
      fill: byte.default(0),
      maskFill: byte.optional(),
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
    schema: z.strictObject({ name: z.literal('randomHorizontalFlip'), p: probability.default(0.5) }),
  },
  randomVerticalFlip: {
    takes: 'p (a probability)',
    schema: z.strictObject({ name: z.literal('randomVerticalFlip'), p: probability.default(0.5) }),
  },
  randomRotation: {
    takes:
      'degrees (a number from 0 on, or [low, high]; counter-clockwise), interpolation (nearest or bilinear), expand, ' +
      'center ([x, y] in pixels), fill (0 to 255, or three of them) and maskFill (0 to 255)',
    schema: z.strictObject({
      name: z.literal('randomRotation'),
      degrees: z
        .union([z.number().min(0), z.tuple([z.number(), z.number()]).readonly().refine(ordered, DISORDER)])
        .transform((value) => (typeof value === 'number' ? ([0 - value, value] as const) : value)),
      interpolation: z.enum(['nearest', 'bilinear']).default('nearest'),
      expand: z.boolean().default(false),
      center: z.tuple([z.number(), z.number()]).readonly().optional(),
      fill: colour.default(0),
      maskFill: byte.optional(),
    }),
  },
  gaussianBlur: {
    takes: 'kernelSize (an odd number up to 255, or [x, y]) and sigma (a number, or [low, high])',
    schema: z.strictObject({
      name: z.literal('gaussianBlur'),
      kernelSize: z
        .union([odd, z.tuple([odd, odd]).readonly()])
        .transform((value) => (typeof value === 'number' ? ([value, value] as const) : value)),
      sigma: z
        .union([z.number().positive(), range])
        .default([0.1, 2])
        .transform((value) => (typeof value === 'number' ? ([value, value] as const) : value)),
    }),
  },
  colorJitter: {
    takes:
      'brightness, contrast, saturation (each a number from 0 on, or [low, high]) and hue (0 to 0.5, or [low, high])',
    schema: z.strictObject({
      name: z.literal('colorJitter'),
      brightness: factor,
      contrast: factor,
      saturation: factor,
      hue,
    }),
  },
  grayscale: {
    takes: 'numOutputChannels, which is 3: the channels of every batch',
    schema: z.strictObject({ name: z.literal('grayscale'), numOutputChannels: z.literal(3).default(3) }),
  },
  randomGrayscale: {
    takes: 'p (a probability)',
    schema: z.strictObject({ name: z.literal('randomGrayscale'), p: probability.default(0.1) }),
  },
  randomErasing: {
    takes:
      'p (a probability), scale ([low, high], parts of the area), ratio ([low, high], height / width) and value (a number, ' +
      'three of them, or "random"; 0 to 255 before normalize and toDtype)',
    schema: z.strictObject({
      name: z.literal('randomErasing'),
      p: probability.default(0.5),
      scale: z.tuple([probability, probability]).readonly().refine(ordered, DISORDER).default([0.02, 0.33]),
      ratio: range.default([0.3, 3.3]),
      value: z.union([z.number(), perChannel, z.literal('random')]).default(0),
    }),
  },
  toDtype: {
    takes: 'dtype (uint8, float32 or float16) and scale (true: floats from 0 to 1 instead of 0 to 255)',
    schema: z.strictObject({
      name: z.literal('toDtype'),
      dtype: z.enum(['uint8', 'float32', 'float16']),
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
