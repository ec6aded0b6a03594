/** Where the views of a batch are in its slot. */
import { totalOf } from '@shardtool/base';
import { type DrawnName, valuesOfDrawn } from '../transform/drawn-steps.js';
import { valueBytes } from '../transform/values.js';
import type { CheckedViews, ViewGroup } from './options.js';

/**
 * The parts of a slot that hold views. The first group is stored in the place of the images, so `batch.images` is its
 * first view. Each further group has its own part, [count, rows, ...], where `rows` is the number of rows of the batch.
 * If draws are recorded, the last part holds them: float32 [rows, views, values].
 */
export interface ViewLayout extends CheckedViews {
  /** Index of the second group's part among the extra parts of a slot. The parts of the others follow it. */
  readonly firstPart: number;
  /** The steps whose draws are recorded. */
  readonly draws: readonly DrawnName[];
}

/** Bytes of one view of one image. */
export function viewBytes({ size, channels, dtype }: ViewGroup): number {
  return size.width * size.height * channels * valueBytes(dtype);
}

/** Bytes that the views of one image take in each part of a slot: the images, then the extra parts. */
export function viewPartBytes({ groups, transforms }: CheckedViews, draws: readonly DrawnName[]) {
  const [image, ...others] = groups.map((group) => group.count * viewBytes(group));
  const drawn = transforms.length * drawnValues(draws) * 4;
  return { image: image!, extraParts: draws.length === 0 ? others : [...others, drawn] };
}

/** Number of values that are recorded for each view. */
export function drawnValues(draws: readonly DrawnName[]): number {
  return totalOf(draws, valuesOfDrawn);
}

/** Addresses within a slot. `parts` are the offsets of its extra parts. */
export function viewAddress(
  { firstPart, groups }: ViewLayout,
  parts: readonly number[],
  {
    group,
    view,
    row,
    rows,
  }: { readonly group: number; readonly view: number; readonly row: number; readonly rows: number },
): number {
  const part = group === 0 ? 0 : parts[firstPart + group - 1]!;
  return part + (view * rows + row) * viewBytes(groups[group]!);
}

/** The offset of the recorded draws of a row. */
export function drawsAddress(
  { firstPart, groups, transforms, draws }: ViewLayout,
  parts: readonly number[],
  row: number,
) {
  return parts[firstPart + groups.length - 1]! + row * transforms.length * drawnValues(draws) * 4;
}
