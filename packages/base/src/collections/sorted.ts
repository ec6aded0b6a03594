/** Binary searches. Every sorted list is ascending. */

/**
 * The first index in `[from, to)` for which `isBefore` is false, or `to`. `isBefore` must hold for a leading part of the range
 * and for no index after it.
 */
export function partitionPoint(from: number, to: number, isBefore: (index: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first index whose value is at least `value`, or `count`. Searches only the first `count` values. */
export function lowerBound(sorted: ArrayLike<number>, value: number, count = sorted.length): number {
  return partitionPoint(0, count, (index) => sorted[index]! < value);
}

/**
 * The last index whose value is at most `value`, or 0 if every value is greater. Searches only the first `count`
 * values. If several values are equal, it returns the last of them, so parts without bytes and shards without samples
 * are skipped.
 */
export function lastAtMost(sorted: ArrayLike<number>, value: number, count = sorted.length): number {
  return Math.max(0, partitionPoint(0, count, (index) => sorted[index]! <= value) - 1);
}
