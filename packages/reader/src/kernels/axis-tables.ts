/** The tables of the last axes of resizes. Most images of a dataset have few sizes. */
import type { Axis } from './taps.js';

/** Makes the table of an axis once. If all tables together are larger than a limit, they are dropped. */
export class AxisTables<T> {
  readonly #tables = new Map<string, T>();
  readonly #make: (axis: Axis) => T;
  readonly #sizeOf: (table: T) => number;
  readonly #most: number;
  #size = 0;

  constructor(make: (axis: Axis) => T, sizeOf: (table: T) => number, most: number) {
    this.#make = make;
    this.#sizeOf = sizeOf;
    this.#most = most;
  }

  of(axis: Axis): T {
    const { source, output, first, count, flip, boxStart, boxLength, filter } = axis;
    const key = [source, output, first, count, flip, boxStart, boxLength, filter].join();
    let table = this.#tables.get(key);
    if (table === undefined) {
      table = this.#make(axis);
      if (this.#size > this.#most) {
        this.#tables.clear();
        this.#size = 0;
      }
      this.#size += this.#sizeOf(table);
      this.#tables.set(key, table);
    }
    return table;
  }
}
