/** Answers queries. The most recent results are kept, because the page asks for one piece of a list after the other. */
import { setImmediate } from 'node:timers/promises';
import { Recent } from '@shardtool/base';
import { Histograms } from './histograms.js';
import type { Marks } from './marks.js';
import type { Histogram, Query, Row, Rows } from './protocol.js';
import { cellValue, columnOf, filteredRows, sortRows, type WhereRows } from './query.js';
import type { SampleTable } from './sample-table.js';

/** Number of lists of rows (4 bytes per sample) and of results of expressions (1 byte per sample) that are kept. */
const KEPT = 4;
/** Maximum number of rows of one answer. */
const MOST_ROWS = 1000;

export class Queries {
  readonly #table: SampleTable;
  readonly #marks: Pick<Marks, 'of'>;
  readonly #where: Recent<string, WhereRows>;
  readonly #rows: Recent<string, Uint32Array>;
  /** Rows before sorting, and for histograms without the filter of one column. */
  readonly #filtered: Recent<string, Uint32Array>;
  readonly #histograms: Histograms;

  /** `whereRows` evaluates an expression for every sample. */
  constructor(whereRows: (text: string) => Promise<WhereRows>, table: SampleTable, marks: Pick<Marks, 'of'>) {
    this.#table = table;
    this.#marks = marks;
    this.#histograms = new Histograms(table);
    this.#where = new Recent(KEPT, whereRows);
    this.#rows = new Recent(KEPT, (text) => this.#sorted(JSON.parse(text) as Query));
    this.#filtered = new Recent(KEPT, (text) => this.#filteredBy(JSON.parse(text) as Omit<Query, 'sort'>));
  }

  async rows(query: Query, from: number, count: number): Promise<Rows> {
    const rows = await this.#rows.get(JSON.stringify(query));
    const column = query.sort === null ? null : columnOf(this.#table, query.sort.column);
    const { key, cls, width, height } = this.#table;
    const shown = rows.subarray(from, from + Math.min(count, MOST_ROWS));
    return {
      total: rows.length,
      from,
      rows: Array.from(shown, (index): Row => {
        return {
          index,
          key: key.get(index),
          cls: cls.names[cls.codes[index]!] ?? null,
          width: width[index]!,
          height: height[index]!,
          value: column && cellValue(column, index),
          mark: this.#marks.of(index),
        };
      }),
    };
  }

  async histogram(query: Query, column: string): Promise<Histogram> {
    const { [column]: _range, ...ranges } = query.ranges;
    const { [column]: _values, ...values } = query.values;
    return this.#histograms.of(column, await this.#filter({ where: query.where, ranges, values }));
  }

  /** Counts the columns that the page asks for first, one at a time, while there are no requests. */
  async prepare(): Promise<void> {
    for (const [name, { kind }] of this.#table.columns) {
      await setImmediate();
      if (kind !== 'text') this.#histograms.whole(name);
    }
  }

  async #sorted(query: Query): Promise<Uint32Array> {
    const filtered = await this.#filter(query);
    // Sorting is in place, and other queries share the filtered rows.
    return query.sort === null ? filtered : sortRows(this.#table, filtered.slice(), query.sort);
  }

  #filter({ where, ranges, values }: Omit<Query, 'sort'>): Promise<Uint32Array> {
    return this.#filtered.get(JSON.stringify({ where, ranges, values }));
  }

  async #filteredBy({ where, ranges, values }: Omit<Query, 'sort'>): Promise<Uint32Array> {
    const text = where.trim();
    return filteredRows(this.#table, { ranges, values }, text === '' ? null : await this.#where.get(text));
  }
}
