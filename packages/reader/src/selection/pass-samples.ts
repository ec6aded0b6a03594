import { lastAtMost, lowerBound } from '@shardtool/base';
import { firstNumbers } from '../order/units.js';
import type { Selection } from './selection.js';

/** The samples of one pass over a dataset, by their numbers in the pass. */
export interface PassSamples {
  /** Number of the dataset's first shard among the shards of all datasets of a mixture. */
  readonly firstShard: number;
  /** For each shard of the dataset, the number of its first sample in the pass. */
  readonly first: Float64Array;
  /** True if these are all samples of the dataset, each once. */
  readonly isWhole: boolean;
  /** Selected rows of a shard of the dataset, as in {@link Selection}. */
  rows(shard: number): Uint32Array | null;
}

/** Finds the samples of a pass over a dataset. `source` is its number in a mixture, otherwise 0. */
export type SamplesOf = (source: number, pass: number) => PassSamples;

export function passSamples({ counts, rows }: Selection, firstShard: number): PassSamples {
  let isWhole = true;
  for (let shard = 0; shard < counts.length; shard++) isWhole &&= rows(shard) === null;
  return { firstShard, first: firstNumbers(counts), isWhole, rows };
}

/** Returns the row of a sample number, its shard among those of all datasets, and how often the row occurred before. */
export function shardRow(
  { firstShard, first, rows }: PassSamples,
  number: number,
): { readonly shard: number; readonly row: number; readonly occurrence: number } {
  const own = lastAtMost(first, number);
  const selected = rows(own);
  const at = number - first[own]!;
  if (selected === null) return { shard: firstShard + own, row: at, occurrence: 0 };
  return { shard: firstShard + own, row: selected[at]!, occurrence: occurrenceOf(selected, at) };
}

/** Returns the number of equal rows before this row: weights repeat rows in place. `rows` is ascending. */
export function occurrenceOf(rows: Uint32Array, at: number): number {
  const row = rows[at]!;
  if (at === 0 || rows[at - 1] !== row) return 0;
  return at - lowerBound(rows, row, at);
}
