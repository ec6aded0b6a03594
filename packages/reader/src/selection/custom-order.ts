import { createHash } from 'node:crypto';
import { OptionError, total } from '@shardtool/base';
import { firstNumbers } from '../order/units.js';
import type { Selection, Subset } from './selection.js';

/** The samples that a custom order lists. A sample may be listed several times. */
export interface CustomOrder {
  readonly subset: Subset;
  /**
   * For each position of a pass: the number of its sample among the selected ones. A sample that is listed several
   * times has several numbers.
   */
  readonly positions: Uint32Array;
  /** Number of samples that stay together on one rank and in one batch; 1 without groups. */
  readonly groupSize: number;
}

/** Sample indices, or groups of them that stay together. */
export type Indices = ArrayLike<number> | readonly ArrayLike<number>[];

const MOST_POSITIONS = 2 ** 32 - 1;

/**
 * Selects the samples of the option `indices`: indices of samples in the order on disk, from 0. An index may be
 * repeated. `counts`: samples of each shard. Throws {@link OptionError} for an empty order, for groups of several
 * sizes, and for values that are not sample indices.
 */
export function selectInOrder(indices: Indices, counts: ArrayLike<number>): CustomOrder {
  const first = firstNumbers(counts);
  const samples = first[counts.length]!;
  const { order, groupSize } = flat(indices);
  if (order.length === 0) throw new OptionError({}, 'indices is empty: give at least one sample, or remove it.');
  if (order.length > MOST_POSITIONS) {
    throw new OptionError({}, `indices has ${order.length} entries, more than the limit of ${MOST_POSITIONS}.`);
  }
  const next = countTimes(order, samples, isGrouped(indices) ? groupSize : null);
  const rows = Array.from({ length: counts.length }, (_, k) => repeated(next.subarray(first[k]!, first[k + 1]!)));
  let number = 0;
  for (let sample = 0; sample < samples; sample++) {
    const times = next[sample]!;
    next[sample] = number;
    number += times;
  }
  const positions = Uint32Array.from(order, (sample) => next[sample]!++);
  const all: Selection = {
    counts: Float64Array.from(rows, ({ length }) => length),
    rows: (shard) => rows[shard]!,
  };
  const subset = { identity: identityOf(positions, rows, groupSize), all, weight: order.length, draw: () => all };
  return { subset, positions, groupSize };
}

export function isGrouped(indices: Indices): indices is readonly ArrayLike<number>[] {
  return Array.isArray(indices) && typeof indices[0] === 'object';
}

/** The samples of all groups in sequence. */
function flat(indices: Indices): { readonly order: ArrayLike<number>; readonly groupSize: number } {
  if (!isGrouped(indices)) return { order: indices, groupSize: 1 };
  const groupSize = indices[0]!.length;
  const other = indices.findIndex(({ length }) => length !== groupSize);
  if (other >= 0) {
    throw new OptionError(
      {},
      `indices[${other}] has ${indices[other]!.length} samples, but indices[0] has ${groupSize}: all groups must have the same size.`,
    );
  }
  const order = new Float64Array(indices.length * groupSize);
  indices.forEach((group, i) => {
    order.set(group, i * groupSize);
  });
  return { order, groupSize: Math.max(1, groupSize) };
}

/** `groupSize`: number of samples per group for the position in the error; null without groups. */
function countTimes(order: ArrayLike<number>, samples: number, groupSize: number | null): Uint32Array {
  const times = new Uint32Array(samples);
  for (let at = 0; at < order.length; at++) {
    const sample = order[at]!;
    if (!Number.isInteger(sample) || sample < 0 || sample >= samples) {
      const range = `the dataset has the samples 0 to ${samples - 1}`;
      const place = groupSize === null ? `[${at}]` : `[${Math.floor(at / groupSize)}][${at % groupSize}]`;
      throw new OptionError({}, `indices${place} is ${String(sample)}, which is not the index of a sample: ${range}.`);
    }
    times[sample]!++;
  }
  return times;
}

/** The rows of a shard in ascending order. A row is repeated as often as it occurs in the order. */
function repeated(times: Uint32Array): Uint32Array {
  const rows = new Uint32Array(total(times));
  for (let row = 0, at = 0; row < times.length; row++) {
    rows.fill(row, at, at + times[row]!);
    at += times[row]!;
  }
  return rows;
}

function identityOf(positions: Uint32Array, rows: readonly Uint32Array[], groupSize: number): string {
  const groups = groupSize === 1 ? '' : ` in groups of ${groupSize}`;
  const hash = createHash('sha256').update(`order ${positions.length}${groups};`).update(positions);
  for (const selected of rows) hash.update(`${selected.length};`).update(selected);
  return hash.digest('hex').slice(0, 16);
}
