import { lastAtMost } from '@shardtool/base';

/**
 * The part that contains the byte at `offset`, among parts in sequence: the last one that begins at or before it, so
 * never one without bytes. `starts` has the start of each part, ascending, and the end of the last one.
 */
export function partAt(starts: Float64Array, offset: number): number {
  return lastAtMost(starts, offset, starts.length - 1);
}
