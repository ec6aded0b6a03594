import { nameTable } from '@shardtool/format';
import { type DrawnName, valuesOfDrawn } from '../transform/drawn-steps.js';
import { drawnValues } from './slot-layout.js';

/**
 * Copies the recorded draws of the views of one group out of a slot, where they are float32 [rows, views, values]. The
 * arrays are [count, rows, 4] for crops and [count, rows] for flips.
 */
export function readDraws(
  drawn: Float32Array,
  names: readonly DrawnName[],
  {
    first,
    count,
    rows,
    views,
  }: { readonly first: number; readonly count: number; readonly rows: number; readonly views: number },
): Readonly<Record<string, Float32Array>> {
  const perView = drawnValues(names);
  const draws = nameTable<Float32Array>();
  let at = 0;
  for (const name of names) {
    const each = valuesOfDrawn(name);
    const values = new Float32Array(count * rows * each);
    for (let view = 0; view < count; view++) {
      for (let row = 0; row < rows; row++) {
        const from = (row * views + first + view) * perView + at;
        values.set(drawn.subarray(from, from + each), (view * rows + row) * each);
      }
    }
    draws[name] = values;
    at += each;
  }
  return draws;
}
