/** Mosaics: each row of a batch becomes a picture of parts of four rows. */
import { range } from '@shardtool/base';
import type { Rect, Size } from '../../codec/codec.js';
import { type Random, shuffled, uniform } from '../random.js';

/** Which objects a mix keeps, after they were clipped to the visible part of their image. */
export interface ObjectRule {
  /** Smallest width and height of a box, in pixels. */
  readonly minSize: number;
  /** Smallest part of the area of a box that must remain, 0 to 1. */
  readonly minVisibility: number;
}

/** The checked parameters of the mix `mosaic`. */
export interface Mosaic extends ObjectRule {
  readonly name: 'mosaic';
  /** Probability that a row becomes a mosaic. */
  readonly p: number;
  /** Range of the point where the four parts meet, as fractions of the width and of the height. */
  readonly centerRange: readonly [number, number];
}

/** A rectangle of a row that is copied from another row, or from another place of the same row. */
export interface MosaicPart {
  /** The row from which the part is copied. */
  readonly row: number;
  /** Position of the part in that row. */
  readonly from: { readonly x: number; readonly y: number };
  readonly to: Rect;
}

/** How one row is made. */
export interface MosaicRow {
  /** Share of the area that shows the row's own image. */
  readonly weight: number;
  /** The parts: top left (of the row itself), top right, bottom left, bottom right. Empty if the row does not change. */
  readonly parts: readonly MosaicPart[];
}

export interface DrawnMosaic {
  readonly kind: 'mosaic';
  /** Index of the mix in the list of the loader. */
  readonly index: number;
  readonly rule: ObjectRule;
  /** The rows that have an image, in random order. Each row takes its other parts from the three rows after it, cyclically. */
  readonly order: readonly number[];
  /** One for each row of the batch. */
  readonly rows: readonly MosaicRow[];
}

/** Number of parts of a mosaic. */
export const MOSAIC_PARTS = 4;
const UNCHANGED: MosaicRow = { weight: 1, parts: [] };

/**
 * Draws the mosaics of a batch. `usable` are the rows that have an image. Each image is part of as many mosaics as any other, and with four
 * images or more the images of a mosaic are different ones. Order of random numbers: the order of the rows; then for each row in this order
 * whether it becomes a mosaic, and y and x of the center.
 */
export function drawMosaic(
  { p, centerRange, minSize, minVisibility }: Mosaic,
  { size, rows, usable, index }: { size: Size; rows: number; usable: readonly number[]; index: number },
  random: Random,
): DrawnMosaic {
  const order = shuffled(usable, random);
  const drawn = Array<MosaicRow>(rows).fill(UNCHANGED);
  for (const [at, row] of order.entries()) {
    const isMosaic = random.next() < p;
    const y = Math.floor(uniform(centerRange, random) * size.height);
    const x = Math.floor(uniform(centerRange, random) * size.width);
    if (!isMosaic) continue;
    const sources = range(MOSAIC_PARTS).map((part) => order[(at + part) % order.length]!);
    drawn[row] = { weight: (x * y) / (size.width * size.height), parts: mosaicParts(size, { x, y }, sources) };
  }
  return { kind: 'mosaic', index, rule: { minSize, minVisibility }, order, rows: drawn };
}

/**
 * The parts of a mosaic whose images meet at `center`. Each image has one corner there, and keeps its scale: the center is the bottom right
 * corner of the first image, the bottom left corner of the second, the top right of the third, the top left of the fourth. This is the middle
 * of the mosaic of twice the size that YOLO trains on. Parts without area are omitted.
 */
export function mosaicParts(
  { width, height }: Size,
  center: { readonly x: number; readonly y: number },
  sources: readonly number[],
): MosaicPart[] {
  return sources
    .map((row, part): MosaicPart => {
      const isRight = part % 2 === 1;
      const isBottom = part >= 2;
      return {
        row,
        from: { x: isRight ? 0 : width - center.x, y: isBottom ? 0 : height - center.y },
        to: {
          x: isRight ? center.x : 0,
          y: isBottom ? center.y : 0,
          width: isRight ? width - center.x : center.x,
          height: isBottom ? height - center.y : center.y,
        },
      };
    })
    .filter(({ to }) => to.width > 0 && to.height > 0);
}
