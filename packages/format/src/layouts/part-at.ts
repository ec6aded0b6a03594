/**
 * Which of the parts that lie one behind the other holds the byte at `offset`: the last that begins at or before it, so none
 * without bytes. `starts` has the begin of each part, ascending, and the end of the last behind them.
 */
export function partAt(starts: Float64Array, offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (starts[middle]! <= offset) low = middle;
    else high = middle;
  }
  return low;
}
