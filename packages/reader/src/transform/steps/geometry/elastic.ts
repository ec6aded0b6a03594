/** Elastic deformation: each pixel is taken from a position that a smooth random field moves. */

import { philox, SampleDecodeError, sentence, total } from '@shardtool/base';
import type { Size } from '../../../codec/codec.js';
import type { Values } from '../../../codec/wide/png-values.js';
import { type EffectEntry, type Rgb, rgb } from '../../effects.js';
import { ALWAYS, applies } from '../../parameters/chance.js';
import { COLOUR, NOT_NEGATIVE, oneOf } from '../../parameters/kinds.js';
import { MASK_FILL } from '../../parameters/mask-fill.js';
import { defaulted } from '../../parameters/parameter.js';
import { step } from '../step.js';
import { mappedMask } from './perspective.js';

export interface ElasticEffect {
  readonly kind: 'elastic';
  readonly alpha: number;
  readonly sigma: number;
  /** The key of the random numbers of the field. */
  readonly key: readonly [number, number];
  readonly interpolation: 'nearest' | 'bilinear';
  readonly fill: Rgb;
  readonly maskFill: number;
}

/** Draws one random number for p, then two for the key of the field. */
export const elasticTransform = step(
  'elasticTransform',
  {
    help: 'Moves each pixel by a smooth random field.',
    like: 'ElasticTransform',
    tolerance:
      'for the same field: bilinear within 1 level; nearest equal, except for positions exactly between two pixels',
    parameters: {
      alpha: defaulted(
        NOT_NEGATIVE,
        50,
        'Strength of the field before it is smoothed; 50 moves most pixels by up to 4.',
      ),
      sigma: defaulted(NOT_NEGATIVE, 5, 'Standard deviation in pixels of the blur that smooths the field.'),
      interpolation: defaulted(
        oneOf('nearest', 'bilinear'),
        'bilinear',
        'Interpolation of the image. Masks always use the nearest pixel.',
      ),
      fill: defaulted(COLOUR, 0, 'Value of the pixels outside the image.'),
      maskFill: MASK_FILL,
      p: ALWAYS,
    },
  },
  {
    isEffect: true,
    extraPictures: 3,
    refusesAnnotations: (_step, option) =>
      option === 'masks' ? undefined : 'moves each pixel by itself, which boxes, keypoints and polygons cannot follow',
    draw: ({ alpha, sigma, interpolation, fill, maskFill, p }, canvas, random) => {
      if (!applies(p, random)) return;
      const { width, height } = canvas.size;
      const key = [random.next() * 2 ** 32, random.next() * 2 ** 32] as const;
      if (halfKernel(sigma) >= Math.min(width, height)) {
        throw new SampleDecodeError(
          {},
          sentence`it is ${width}x${height} pixels, too small for elasticTransform with a sigma of ${sigma}: resize it first, or choose a smaller sigma`,
        );
      }
      canvas.applyEffects([
        { kind: 'elastic', alpha, sigma, key, interpolation, fill: rgb(fill), maskFill: maskFill ?? 0 },
      ]);
    },
  },
);

export const elastic: EffectEntry<ElasticEffect> = {
  makes: (picture) => picture,
  run: (from, to, effect, { effects, scratch }) => {
    const count = 2 * from.width * from.height;
    const address = scratch.allocate(4 * count);
    elasticPositions(effect, from, new Float32Array(scratch.memory.buffer, address, count));
    effects.mapPixels(from, to, address, effect.interpolation, effect.fill);
  },
  mask: (mask: Values, effect) => {
    const positions = new Float32Array(2 * mask.width * mask.height);
    elasticPositions(effect, mask, positions);
    return mappedMask(mask, positions, effect.maskFill);
  },
};

/** Pixels on each side of the middle of the blur (v2.ElasticTransform `make_params`: a kernel of 8 sigma + 1, made odd). */
function halfKernel(sigma: number): number {
  return Math.floor((8 * sigma + 1) / 2);
}

/** The position in the source of each pixel of the result, x and y: whole numbers are the centers of pixels. */
function elasticPositions(
  { alpha, sigma, key }: ElasticEffect,
  { width, height }: Size,
  positions: Float32Array,
): void {
  const count = width * height;
  // The fields are parts of half of the side, and torchvision divides that of x by the height and that of y by the width.
  const movedX = blurred(uniformField(key, 0, count), { width, height }, sigma);
  const movedY = blurred(uniformField(key, count, count), { width, height }, sigma);
  const scaleX = (alpha / height) * (width / 2);
  const scaleY = (alpha / width) * (height / 2);
  for (let at = 0, y = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at++) {
      positions[2 * at] = x + movedX[at]! * scaleX;
      positions[2 * at + 1] = y + movedY[at]! * scaleY;
    }
  }
}

/** Numbers from -1 to 1: the words from number `from` on of Philox4x32-10 with this key. */
function uniformField([low, high]: readonly [number, number], from: number, count: number): Float32Array {
  const field = new Float32Array(count);
  const words = new Uint32Array(4);
  for (let i = 0; i < count; i++) {
    const word = (from + i) & 3;
    if (word === 0 || i === 0) philox((from + i) >>> 2, 0, 0, 0, low | 0, high | 0, words);
    field[i] = words[word]! * 2 ** -31 - 1;
  }
  return field;
}

/** A Gaussian blur whose edges are mirrored, without the outermost pixel. */
function blurred(field: Float32Array, { width, height }: Size, sigma: number): Float32Array {
  if (sigma === 0) return field;
  const half = halfKernel(sigma);
  const weights = Float32Array.from({ length: 2 * half + 1 }, (_, i) => Math.exp(-0.5 * ((i - half) / sigma) ** 2));
  const sum = total(weights);
  for (let i = 0; i < weights.length; i++) weights[i]! /= sum;
  const rows = new Float32Array(field.length);
  const line = new Float32Array(width + 2 * half);
  for (let start = 0; start < field.length; start += width) {
    for (let x = 0; x < line.length; x++) line[x] = field[start + mirrored(x - half, width)]!;
    for (let x = 0; x < width; x++) {
      let value = 0;
      for (let i = 0; i < weights.length; i++) value += weights[i]! * line[x + i]!;
      rows[start + x] = value;
    }
  }
  const result = new Float32Array(field.length);
  for (let y = 0; y < height; y++) {
    for (let i = 0; i < weights.length; i++) {
      const from = mirrored(y + i - half, height) * width;
      const weight = weights[i]!;
      for (let x = 0; x < width; x++) result[y * width + x]! += weight * rows[from + x]!;
    }
  }
  return result;
}

function mirrored(at: number, length: number): number {
  if (at < 0) return -at;
  return at < length ? at : 2 * (length - 1) - at;
}
