/** Random perspective: the image seen from another side. */

import type { Size } from '../../../codec/codec.js';
import type { Values } from '../../../codec/wide/png-values.js';
import { roundHalfEven } from '../../crops.js';
import { type EffectEntry, type Rgb, rgb } from '../../effects.js';
import { HALF_THE_TIME } from '../../parameters/chance.js';
import { COLOUR, oneOf, PART_OR_0 } from '../../parameters/kinds.js';
import { MASK_FILL } from '../../parameters/mask-fill.js';
import { defaulted } from '../../parameters/parameter.js';
import { integerBelow } from '../../random.js';
import { step } from '../step.js';

/** (x, y) of the result becomes ((a x + b y + c) / (g x + h y + 1), (d x + e y + f) / (g x + h y + 1)) of the source. */
export type Homography = readonly [number, number, number, number, number, number, number, number];

export interface PerspectiveEffect {
  readonly kind: 'perspective';
  /** Relative to the upper left corner; the center of the first pixel is (0.5, 0.5). */
  readonly map: Homography;
  readonly interpolation: 'nearest' | 'bilinear';
  readonly fill: Rgb;
  readonly maskFill: number;
}

/** Draws one random number for p, then x and y of the four corners, clockwise from the upper left one (v2.RandomPerspective `make_params`). */
export const randomPerspective = step(
  'randomPerspective',
  {
    help: 'Changes the perspective: moves the corners of the image inwards by random distances.',
    like: 'RandomPerspective',
    tolerance: 'bilinear: within 1 level; nearest: equal, except for positions exactly between two pixels',
    parameters: {
      distortionScale: defaulted(PART_OR_0, 0.5, 'Largest distance, as a part of half of the side.'),
      p: HALF_THE_TIME,
      interpolation: defaulted(
        oneOf('nearest', 'bilinear'),
        'bilinear',
        'Interpolation of the image. Masks always use the nearest pixel.',
      ),
      fill: defaulted(COLOUR, 0, 'Value of the pixels outside the image.'),
      maskFill: MASK_FILL,
    },
  },
  {
    isEffect: true,
    extraPictures: 3,
    draw: ({ distortionScale, p, interpolation, fill, maskFill }, canvas, random) => {
      if (random.next() >= p) return;
      const { width, height } = canvas.size;
      const boundX = Math.trunc(distortionScale * (width >> 1)) + 1;
      const boundY = Math.trunc(distortionScale * (height >> 1)) + 1;
      const near = (bound: number) => integerBelow(bound, random);
      const far = (length: number, bound: number) => length - bound + integerBelow(bound, random);
      const corners = [
        [near(boundX), near(boundY)],
        [far(width, boundX), near(boundY)],
        [far(width, boundX), far(height, boundY)],
        [near(boundX), far(height, boundY)],
      ] as const;
      const from = [
        [0, 0],
        [width - 1, 0],
        [width - 1, height - 1],
        [0, height - 1],
      ] as const;
      const map = homography(corners, from);
      // Images of one row or column have no perspective.
      if (map === null) return;
      canvas.warp({ kind: 'perspective', map, interpolation, fill: rgb(fill), maskFill: maskFill ?? 0 }, movedBy(map));
    },
  },
);

type Point = readonly [number, number];

/** The map of four points to four others (v2.functional `_get_perspective_coeffs`). Null if there is none. */
function homography(points: readonly Point[], to: readonly Point[]): Homography | null {
  const rows = points.flatMap(([x, y], i) => {
    const [toX, toY] = to[i]!;
    return [
      [x, y, 1, 0, 0, 0, -toX * x, -toX * y, toX],
      [0, 0, 0, x, y, 1, -toY * x, -toY * y, toY],
    ];
  });
  // Gaussian elimination with pivots.
  for (let column = 0; column < 8; column++) {
    const rest = rows.slice(column).map((row) => Math.abs(row[column]!));
    const pivot = column + rest.indexOf(Math.max(...rest));
    if (rows[pivot]![column]! === 0) return null;
    [rows[column], rows[pivot]] = [rows[pivot]!, rows[column]!];
    const own = rows[column]!;
    for (const row of rows) {
      if (row === own) continue;
      const factor = row[column]! / own[column]!;
      for (let i = column; i < 9; i++) row[i]! -= factor * own[i]!;
    }
  }
  return rows.map((row, i) => row[8]! / row[i]!) as unknown as Homography;
}

/** Where a point of the source is in the result: the inverse of the map. */
function movedBy([a, b, c, d, e, f, g, h]: Homography): (x: number, y: number) => Point {
  return (x, y) => {
    const scale = (d * h - e * g) * x + (b * g - a * h) * y + a * e - b * d;
    const movedX = (e - f * h) * x + (c * h - b) * y + b * f - c * e;
    const movedY = (f * g - d) * x + (a - c * g) * y + c * d - a * f;
    return [movedX / scale, movedY / scale];
  };
}

/** The position in the source of each pixel of the result, x and y: whole numbers are the centers of pixels. */
function positionsOf([a, b, c, d, e, f, g, h]: Homography, { width, height }: Size, positions: Float32Array): void {
  let at = 0;
  for (let row = 0; row < height; row++) {
    const y = row + 0.5;
    for (let column = 0; column < width; column++) {
      const x = column + 0.5;
      const scale = 1 / (g * x + h * y + 1);
      positions[at++] = (a * x + b * y + c) * scale - 0.5;
      positions[at++] = (d * x + e * y + f) * scale - 0.5;
    }
  }
}

export const perspective: EffectEntry<PerspectiveEffect> = {
  makes: (picture) => picture,
  run: (from, to, { map, interpolation, fill }, { effects, scratch }) => {
    const count = 2 * from.width * from.height;
    const address = scratch.allocate(4 * count);
    positionsOf(map, from, new Float32Array(scratch.memory.buffer, address, count));
    effects.mapPixels(from, to, address, interpolation, fill);
  },
  mask: (mask, { map, maskFill }) => {
    const positions = new Float32Array(2 * mask.width * mask.height);
    positionsOf(map, mask, positions);
    return mappedMask(mask, positions, maskFill);
  },
};

/** Takes each pixel of a mask from the nearest pixel to its position, x and y, in the source. */
export function mappedMask(mask: Values, positions: Float32Array, maskFill: number): Values {
  const { width, height } = mask;
  const values = new Uint8Array(width * height).fill(maskFill);
  for (let pixel = 0; pixel < values.length; pixel++) {
    const x = roundHalfEven(positions[2 * pixel]!);
    const y = roundHalfEven(positions[2 * pixel + 1]!);
    if (x >= 0 && y >= 0 && x < width && y < height) values[pixel] = mask.values[y * width + x]!;
  }
  return { width, height, values };
}
