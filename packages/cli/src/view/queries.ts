/** Answers to queries, the last few kept: the page asks for one piece after the other of the same list. */
import { setImmediate } from 'node:timers/promises';
import type { Dataset } from '@shardtool/reader';
import { Histograms } from './histograms.js';
import type { Marks } from './marks.js';
import type { Histogram, Query, Row, Rows } from './protocol.js';
import { cellValue, columnOf, filteredRows, sortRows, type WhereRows, whereRows } from './query.js';
import type { SampleTable } from './sample-table.js';

/** Lists of rows (4 bytes a sample) and results of expressions (1 byte a sample) that are kept. */
const KEPT = 4;
/** Rows that one answer has at most. */
const MOST_ROWS = 1000;

export class Queries {
  readonly #dataset: Dataset;
  readonly #table: SampleTable;
  readonly #marks: Marks;
  readonly #where = new Kept<WhereRows>();
  readonly #rows = new Kept<Uint32Array>();
  /** Before sorting, and for histograms without the filter of one column. */
  readonly #filtered = new Kept<Uint32Array>();
  readonly #histograms: Histograms;

  constructor(dataset: Dataset, table: SampleTable, marks: Marks) {
    this.#dataset = dataset;
    this.#table = table;
    this.#marks = marks;
    this.#histograms = new Histograms(table);
  }

  async rows(query: Query, from: number, count: number): Promise<Rows> {
    const rows = await this.#rows.get(JSON.stringify(query), async () => {
      const filtered = await this.#filter(query);
      // Sorting is in place, and others have the same rows.
      return query.sort === null ? filtered : sortRows(this.#table, filtered.slice(), query.sort);
    });
    const column = query.sort === null ? null : columnOf(this.#table, query.sort.column);
    const { key, cls, width, height } = this.#table;
    const shown = rows.subarray(from, from + Math.min(count, MOST_ROWS));
    return {
      total: rows.length,
      from,
      rows: Array.from(shown, (number): Row => {
        return {
          number,
          key: key.get(number),
          cls: cls.names[cls.codes[number]!] ?? null,
          width: width[number]!,
          height: height[number]!,
          value: column && cellValue(column, number),
          mark: this.#marks.of(number),
        };
      }),
    };
  }

  async histogram(query: Query, column: string): Promise<Histogram> {
    const { [column]: _range, ...ranges } = query.ranges;
    const { [column]: _values, ...values } = query.values;
    return this.#histograms.of(column, await this.#filter({ where: query.where, ranges, values }));
  }

  /** Counts what the page asks for first, a column at a time, while nobody asks. */
  async prepare(): Promise<void> {
    for (const [name, { kind }] of this.#table.columns) {
      await setImmediate();
      if (kind !== 'text') this.#histograms.whole(name);
    }
  }

  #filter({ where, ranges, values }: Omit<Query, 'sort'>): Promise<Uint32Array> {
    return this.#filtered.get(JSON.stringify([where, ranges, values]), async () =>
      filteredRows(this.#table, { ranges, values }, await this.#whereOf(where)),
    );
  }

  #whereOf(where: string): Promise<WhereRows | null> {
    const text = where.trim();
    return text === '' ? Promise.resolve(null) : this.#where.get(text, () => whereRows(this.#dataset, text));
  }
}

/** The last few of what was asked for; what fails is not kept. */
class Kept<T> {
  readonly #made = new Map<string, Promise<T>>();

  get(name: string, make: () => Promise<T>): Promise<T> {
    const made = this.#made.get(name) ?? make();
    this.#made.delete(name);
    this.#made.set(name, made);
    made.catch(() => {
      if (this.#made.get(name) === made) this.#made.delete(name);
    });
    const [oldest] = this.#made.keys();
    if (this.#made.size > KEPT) this.#made.delete(oldest!);
    return made;
  }
}
