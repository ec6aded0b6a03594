import { lastAtMost } from '@shardtool/base';

/**
 * Which of the parts that lie one behind the other holds the byte at `offset`: the last that begins at or before it, so none
 * without bytes. `starts` has the begin of each part, ascending, and the end of the last behind them.
 */
export function partAt(starts: Float64Array, offset: number): number {
  return lastAtMost(starts, offset, starts.length - 1);
}
