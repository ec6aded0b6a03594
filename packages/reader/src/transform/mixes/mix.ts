/** The random values with which a batch is mixed. */
import { range } from '@shardtool/base';
import type { Rect, Size } from '../../codec/codec.js';
import { beta } from '../distributions.js';
import { drawOne, integerBelow, KeyedRandom, type Random } from '../random.js';
import { type DrawnCopyPaste, drawCopyPaste } from './copy-paste.js';
import type { LabelMix, Mixes, PlainMix, SingleMix, TimmMix } from './mix-option.js';
import { type DrawnMosaic, drawMosaic } from './mosaic.js';

/** How one row is mixed. */
export interface RowMix {
  readonly name: 'mixup' | 'cutmix';
  /** Weight of the row's own label. The label of the other row has 1 - weight. */
  readonly weight: number;
  /** The rectangle that cutmix takes from the other image. Null for mixup. */
  readonly rect: Rect | null;
}

/** Which other row each row is mixed with: the one before it (the first with the last), or the one at the same distance from the end. */
export type MixPartner = 'previous' | 'mirrored';

/** The row with which row `row` of `rows` rows is mixed. */
export function otherRow(partner: MixPartner, row: number, rows: number): number {
  return partner === 'previous' ? (row + rows - 1) % rows : rows - 1 - row;
}

/** The rows with which a mix of this name mixes. */
export function partnerOf({ name }: Pick<LabelMix, 'name'>): MixPartner {
  return name === 'timmMixup' ? 'mirrored' : 'previous';
}

/** How one mix changes a batch. */
export type DrawnSingleMix = DrawnLabelMix | DrawnMosaic | DrawnCopyPaste;

/** How a batch is mixed. */
export type DrawnMix = DrawnSingleMix | DrawnSequence;

/** Mixes that are applied one after another. */
interface DrawnSequence {
  readonly kind: 'sequence';
  /** Index of the sequence in the list of the loader. */
  readonly index: number;
  readonly mixes: readonly DrawnSingleMix[];
}

/** The mixes of a batch in their order. */
export function drawnParts(mix: DrawnMix | null): readonly DrawnSingleMix[] {
  if (mix === null) return [];
  return mix.kind === 'sequence' ? mix.mixes : [mix];
}

/** How each row is mixed with one other row. */
export interface DrawnLabelMix {
  readonly kind: 'labels';
  /** Index of the mix in the list of the loader. */
  readonly index: number;
  readonly partner: MixPartner;
  /** One for each row. */
  readonly rows: readonly RowMix[];
}

/**
 * Draws how to mix a batch of `rows` images, of which the rows `usable` have an image. Order of random numbers: the choice, if there are
 * several mixes; the weight; for cutmix the center of the rectangle. timmMixup: see {@link drawTimmMix}. mosaic: see
 * {@link drawMosaic}. copyPaste: see {@link drawCopyPaste}. A sequence draws a key, whose numbers are keys, one for each of its mixes.
 */
export function drawMix(
  mixes: Mixes,
  size: Size,
  rows: number,
  random: Random,
  usable: readonly number[] = range(rows),
): DrawnMix | null {
  if (mixes.length === 0) return null;
  const mix = mixes.length === 1 ? mixes[0]! : drawOne(mixes, random);
  const batch = { size, rows, usable, index: mixes.indexOf(mix) };
  if (mix.name !== 'sequence') return drawSingleMix(mix, batch, random);
  const keys = moreRandom(random);
  return {
    kind: 'sequence',
    index: batch.index,
    mixes: mix.mixes.map((one) => drawSingleMix(one, batch, moreRandom(keys))),
  };
}

/** More random numbers than a batch has, for mixes that draw some for each row. Takes two numbers. */
function moreRandom(random: Random): Random {
  return new KeyedRandom(random.next(), random.next());
}

function drawSingleMix(
  mix: SingleMix,
  batch: { size: Size; rows: number; usable: readonly number[]; index: number },
  random: Random,
): DrawnSingleMix {
  const { size, rows, index } = batch;
  if (mix.name === 'copyPaste') return drawCopyPaste(mix, batch, moreRandom(random));
  if (mix.name === 'mosaic') return drawMosaic(mix, batch, moreRandom(random));
  const partner = partnerOf(mix);
  if (mix.name === 'timmMixup')
    return { kind: 'labels', index, partner, rows: drawTimmMix(mix, size, rows, moreRandom(random)) };
  const row = drawPlainMix(mix, size, random);
  return { kind: 'labels', index, partner, rows: Array<RowMix>(rows).fill(row) };
}

function drawPlainMix({ name, alpha }: PlainMix, { width, height }: Size, random: Random): RowMix {
  const weight = beta(alpha, random);
  if (name === 'mixup') return { name, weight, rect: null };
  // v2.CutMix `make_params`: a rectangle with the remaining share of the area, clipped at the edges.
  const centerX = integerBelow(width, random);
  const centerY = integerBelow(height, random);
  const half = 0.5 * Math.sqrt(1 - weight);
  const [halfWidth, halfHeight] = [Math.trunc(half * width), Math.trunc(half * height)];
  const [x, y] = [Math.max(0, centerX - halfWidth), Math.max(0, centerY - halfHeight)];
  const rect = {
    x,
    y,
    width: Math.min(width, centerX + halfWidth) - x,
    height: Math.min(height, centerY + halfHeight) - y,
  };
  return { name, weight: 1 - (rect.width * rect.height) / (width * height), rect };
}

/** Draws one mix for the batch, for each pair of rows, or for each row (timm 1.0, data/mixup.py). */
export function drawTimmMix(mix: TimmMix, size: Size, rows: number, random: Random): RowMix[] {
  if (mix.mode === 'batch') return Array<RowMix>(rows).fill(drawTimmRow(mix, size, random));
  if (mix.mode === 'elem') return Array.from({ length: rows }, () => drawTimmRow(mix, size, random));
  const half = Array.from({ length: rows >> 1 }, () => drawTimmRow(mix, size, random));
  // A row in the middle has no other row.
  const middle = rows % 2 === 1 ? [UNMIXED] : [];
  return [...half, ...middle, ...half.toReversed()];
}

const UNMIXED: RowMix = { name: 'mixup', weight: 1, rect: null };

/**
 * Draws one mix. Order of random numbers: whether to mix; whether it is cutmix, if there are both; the weight; for cutmix the rectangle: y
 * and x of its center, or with `cutmixMinmax` its height, width, y and x.
 */
function drawTimmRow(mix: TimmMix, size: Size, random: Random): RowMix {
  if (random.next() >= mix.prob) return UNMIXED;
  const { mixupAlpha, cutmixAlpha, cutmixMinmax, switchProb, correctLam } = mix;
  const isCutmix = cutmixAlpha > 0 && (mixupAlpha === 0 || random.next() < switchProb);
  const weight = beta(isCutmix ? cutmixAlpha : mixupAlpha, random);
  if (weight === 1) return UNMIXED;
  if (!isCutmix) return { name: 'mixup', weight, rect: null };
  const rect = cutmixMinmax === undefined ? squareRect(size, weight, random) : rangeRect(size, cutmixMinmax, random);
  const remaining = 1 - (rect.width * rect.height) / (size.width * size.height);
  return { name: 'cutmix', weight: correctLam || cutmixMinmax !== undefined ? remaining : weight, rect };
}

/** timm's `rand_bbox`: a rectangle with the image's aspect ratio and the share 1 - weight of its area, clipped at the edges. */
function squareRect({ width, height }: Size, weight: number, random: Random): Rect {
  const ratio = Math.sqrt(1 - weight);
  const [cutHeight, cutWidth] = [Math.trunc(height * ratio), Math.trunc(width * ratio)];
  const centerY = integerBelow(height, random);
  const centerX = integerBelow(width, random);
  const y = Math.max(0, centerY - (cutHeight >> 1));
  const x = Math.max(0, centerX - (cutWidth >> 1));
  return {
    x,
    y,
    width: Math.min(width, centerX + ((cutWidth + 1) >> 1)) - x,
    height: Math.min(height, centerY + ((cutHeight + 1) >> 1)) - y,
  };
}

/** timm's `rand_bbox_minmax`. If its range of sides contains no whole number, the lower limit is used. */
function rangeRect({ width, height }: Size, [low, high]: readonly [number, number], random: Random): Rect {
  const side = (length: number) => {
    const least = Math.trunc(length * low);
    return least + integerBelow(Math.max(1, Math.trunc(length * high) - least), random);
  };
  const cutHeight = side(height);
  const cutWidth = side(width);
  const y = integerBelow(height - cutHeight + 1, random);
  const x = integerBelow(width - cutWidth + 1, random);
  return { x, y, width: cutWidth, height: cutHeight };
}
