import { lastAtMost, OptionError } from '@shardtool/base';
import type { CategoryColumn, NumberColumn } from './label-columns.js';
import type { CategoryHistogram, Histogram, NumberHistogram } from './protocol.js';
import { columnOf } from './query.js';
import type { SampleTable } from './sample-table.js';

/** Approximate number of bins. Their edges are round numbers. */
const BINS = 24;
/** If the largest value is at least this many times the smallest, the width of bins grows by a factor. */
const LONG_TAIL = 50;
/** Maximum number of values of a category that are listed. */
const LISTED = 2000;

/** Histograms of the columns of a table. Counts over all samples are computed once. */
export class Histograms {
  readonly #table: SampleTable;
  readonly #whole = new Map<string, Histogram>();

  constructor(table: SampleTable) {
    this.#table = table;
  }

  /**
   * `rows` are the rows that the query selects without the column's own filter. Throws {@link OptionError} for a column
   * of texts.
   */
  of(name: string, rows: Uint32Array): Histogram {
    const whole = this.whole(name);
    // Filters only remove rows, so an equal number means all rows.
    if (rows.length === this.#table.rows) return whole;
    const column = columnOf(this.#table, name);
    if (whole.kind === 'number') return selectedNumbers(whole, column as NumberColumn, rows);
    return selectedNames(whole, column as CategoryColumn, rows);
  }

  /** Returns the histogram of all samples. */
  whole(name: string): Histogram {
    let whole = this.#whole.get(name);
    if (whole === undefined) {
      whole = wholeHistogram(this.#table, name);
      this.#whole.set(name, whole);
    }
    return whole;
  }
}

function wholeHistogram(table: SampleTable, name: string): Histogram {
  const column = columnOf(table, name);
  if (column.kind === 'number') return allNumbers(name, column);
  if (column.kind === 'category') return allNames(name, column);
  throw new OptionError(
    {},
    `The column "${name}" has too many different values for a histogram: sort by it, or use where.`,
  );
}

function allNumbers(name: string, { values }: NumberColumn): NumberHistogram {
  const edges = edgesOf(values);
  const counts = new Float64Array(edges.length + 1);
  for (let row = 0; row < values.length; row++) counts[placeOf(edges, values[row]!)]!++;
  const bins = edges.slice(1).map((to, i) => ({ from: edges[i]!, to, all: counts[i]!, selected: counts[i]! }));
  const missing = counts[edges.length]!;
  return { kind: 'number', column: name, bins, missing: { all: missing, selected: missing } };
}

function selectedNumbers(
  { column, bins, missing }: NumberHistogram,
  { values }: NumberColumn,
  rows: Uint32Array,
): NumberHistogram {
  const edges = bins.length === 0 ? [] : [bins[0]!.from, ...bins.map(({ to }) => to)];
  const counts = new Float64Array(edges.length + 1);
  for (let i = 0; i < rows.length; i++) counts[placeOf(edges, values[rows[i]!]!)]!++;
  return {
    kind: 'number',
    column,
    bins: bins.map((bin, i) => ({ ...bin, selected: counts[i]! })),
    missing: { ...missing, selected: counts[edges.length]! },
  };
}

/** Returns the bin of a value. The position after the last edge is for values that are not a number. */
function placeOf(edges: readonly number[], value: number): number {
  return Number.isFinite(value) ? binOf(edges, value) : edges.length;
}

/** Returns the position of the last edge that is not above the value. */
function binOf(edges: readonly number[], value: number): number {
  return lastAtMost(edges, value, edges.length - 1);
}

/**
 * Returns rising edges, of which the last is above every value. There is one bin if all values are equal, and none
 * without values.
 */
export function edgesOf(values: Float64Array): number[] {
  let [least, most, isWhole] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, true];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
    if (isWhole && !Number.isInteger(value)) isWhole = false;
  }
  if (least > most) return [];
  if (least > 0 && most / least >= LONG_TAIL) return growing(least, most, isWhole);
  const step = Math.max(isWhole ? 1 : 0, roundStep((most - least) / BINS));
  // All values are equal, or so close that no step fits between them.
  if (step === 0 || least + step === least) return [least, nextAbove(most)];
  const first = Math.floor(least / step);
  const bins = Math.floor(most / step) - first + 1;
  const edges = Array.from({ length: bins + 1 }, (_, i) => rounded((first + i) * step));
  if (edges.at(-1)! <= most) edges.push(rounded((first + bins + 1) * step));
  return edges;
}

/** Returns edges that are 1, 2 and 5 times powers of ten, or only powers of ten if those would be too many. */
function growing(least: number, most: number, isWhole: boolean): number[] {
  const factors = Math.log10(most / least) * 3 > BINS ? [1] : [1, 2, 5];
  const edges: number[] = [];
  for (let exponent = Math.floor(Math.log10(least)) - 1; ; exponent++) {
    for (const factor of factors) {
      const edge = Number(`${factor}e${exponent}`);
      if (edge <= least) edges[0] = edge;
      else edges.push(edge);
      if (edge > most) return isWhole ? edges.filter((one, i) => i === 0 || Number.isInteger(one)) : edges;
    }
  }
}

/** Returns 1, 2 or 5 times a power of ten, the smallest that is not below `step`. */
function roundStep(step: number): number {
  if (step === 0) return 0;
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].find((factor) => factor * power >= step) ?? 10);
}

/** Removes the rounding error of adding decimal fractions. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}

function nextAbove(value: number): number {
  return value + Math.max(1, Math.abs(value)) * 2 ** -20;
}

function allNames(name: string, column: CategoryColumn): CategoryHistogram {
  const { names } = column;
  const counts = countNames(column, null);
  const values = names
    .map((value, code) => ({ value, all: counts[code]!, selected: counts[code]! }))
    .sort((a, b) => b.all - a.all || (a.value < b.value ? -1 : 1));
  const missing = { all: counts[names.length]!, selected: counts[names.length]! };
  const more = Math.max(0, values.length - LISTED);
  return { kind: 'category', column: name, values: values.slice(0, LISTED), more, missing };
}

function selectedNames(whole: CategoryHistogram, column: CategoryColumn, rows: Uint32Array): CategoryHistogram {
  const counts = countNames(column, rows);
  const codeOf = new Map(column.names.map((name, code) => [name, code]));
  return {
    ...whole,
    values: whole.values.map((one) => ({ ...one, selected: counts[codeOf.get(one.value)!]! })),
    missing: { ...whole.missing, selected: counts[column.names.length]! },
  };
}

/**
 * Returns counts by code. The count after the last is for samples without a name. With `rows` null, all rows are
 * counted.
 */
function countNames({ codes, names }: CategoryColumn, rows: Uint32Array | null): Float64Array {
  const counts = new Float64Array(names.length + 1);
  const count = (code: number) => counts[code < 0 || code >= names.length ? names.length : code]!++;
  if (rows === null) for (let row = 0; row < codes.length; row++) count(codes[row]!);
  else for (let i = 0; i < rows.length; i++) count(codes[rows[i]!]!);
  return counts;
}
