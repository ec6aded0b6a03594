/**
 * The rows of all indexes of a dataset as typed columns, some 100 bytes per sample. The page filters, counts and sorts
 * them.
 */

import { inTurn } from '@shardtool/base';
import { imageFields, kindOfField, type PartOfIndex } from '@shardtool/format';
import type { Dataset } from '@shardtool/reader';
import { type CategoryColumn, ColumnBuilder, type NumberColumn, type TableColumn, Texts } from './label-columns.js';

export interface SampleTable {
  readonly rows: number;
  readonly key: Texts;
  /** Codes of classes, with their names; -1 for none. */
  readonly cls: CategoryColumn;
  /** Size as stored, in pixels; 0 if it is unknown. */
  readonly width: Int32Array;
  readonly height: Int32Array;
  /** All columns that samples can be filtered and sorted by, by name. */
  readonly columns: ReadonlyMap<string, TableColumn>;
  /** Label columns beyond {@link MOST_COLUMNS}. */
  readonly omitted: readonly string[];
}

/** Maximum number of columns from labels or `inspect`. Each takes some 8 bytes per sample. */
const MOST_COLUMNS = 64;
const READ_AT_ONCE = 4;
const PARTS = ['key', 'bytes', 'cls', 'width', 'height', 'orientation', 'fields', 'columns'] as const;
const LABEL_PARTS = ['key', 'cls', 'columns'] as const;

type Parts = PartOfIndex<(typeof LABEL_PARTS)[number]> & Partial<PartOfIndex<(typeof PARTS)[number]>>;

/**
 * Reads every index once. `onProgress` receives the number of samples read. Throws FileError, ShardIndexError or
 * VersionError of an index.
 */
export async function readSampleTable(
  dataset: Pick<Dataset, 'shards' | 'size' | 'classes'>,
  onProgress: (done: number) => void = () => undefined,
): Promise<SampleTable> {
  const { shards, size, classes } = dataset;
  const filling = new Filling(size);
  const indexes = inTurn(shards, READ_AT_ONCE, async (file): Promise<Parts> => {
    // If reading offsets costs much more than reading labels, they are read when a picture is requested.
    const index = await (file.hasLabelsApart ? file.loadParts(LABEL_PARTS) : file.loadParts(PARTS));
    const inspected = (await file.loadInspection?.()) ?? null;
    if (inspected === null) return index;
    const more = Array.from(inspected.columns, ([name, { values }]) => [name, values] as const);
    return { ...index, columns: new Map([...index.columns, ...more]) };
  });
  for await (const index of indexes) {
    filling.add(index);
    onProgress(filling.rows);
  }
  return filling.finish(classes);
}

/** Builds the table shard by shard. */
class Filling {
  readonly #size: number;
  readonly #key: Texts;
  readonly #cls: Int32Array;
  readonly #width: Int32Array;
  readonly #height: Int32Array;
  readonly #bytes: Float64Array;
  readonly #orientation: Float64Array;
  readonly #kinds: Int32Array;
  readonly #kindNames: string[] = [];
  readonly #labels = new Map<string, ColumnBuilder>();
  readonly #omitted = new Set<string>();
  rows = 0;

  constructor(size: number) {
    this.#size = size;
    this.#key = new Texts(size);
    this.#cls = new Int32Array(size).fill(-1);
    this.#width = new Int32Array(size);
    this.#height = new Int32Array(size);
    this.#bytes = new Float64Array(size).fill(Number.NaN);
    this.#orientation = new Float64Array(size).fill(Number.NaN);
    this.#kinds = new Int32Array(size).fill(-1);
  }

  add({ samples, key, cls, width, height, orientation, bytes, fields, columns }: Parts): void {
    const first = this.rows;
    for (let row = 0; row < samples; row++) this.#key.push(key[row]!);
    this.#cls.set(cls, first);
    if (width !== undefined) this.#width.set(width, first);
    if (height !== undefined) this.#height.set(height, first);
    if (bytes !== undefined) this.#bytes.set(bytes, first);
    orientation?.forEach((value, row) => {
      if (value > 0) this.#orientation[first + row] = value;
    });
    if (fields !== undefined) this.#addKinds(fields, samples);
    for (const [name, values] of columns) {
      const builder = this.#builderOf(name);
      builder?.skipTo(first);
      for (let row = 0; row < samples; row++) builder?.push(values[row] ?? null);
    }
    this.rows += samples;
  }

  #builderOf(name: string): ColumnBuilder | undefined {
    let builder = this.#labels.get(name);
    if (builder !== undefined) return builder;
    if (this.#labels.size === MOST_COLUMNS) {
      this.#omitted.add(name);
      return undefined;
    }
    builder = new ColumnBuilder(this.#size);
    this.#labels.set(name, builder);
    return builder;
  }

  /** A sample with several images counts by the first of their names, as everywhere. */
  #addKinds(fields: NonNullable<Parts['fields']>, samples: number): void {
    for (const name of imageFields(fields.keys())) {
      const { offset } = fields.get(name)!;
      const code = this.#kindCode(kindOfField(name) ?? 'npy');
      for (let row = 0; row < samples; row++) {
        if (offset[row]! >= 0 && this.#kinds[this.rows + row] === -1) this.#kinds[this.rows + row] = code;
      }
    }
  }

  #kindCode(kind: string): number {
    const known = this.#kindNames.indexOf(kind);
    return known >= 0 ? known : this.#kindNames.push(kind) - 1;
  }

  finish(classes: readonly string[]): SampleTable {
    const cls = namedClasses(this.#cls, classes);
    const width = knownSides(this.#width);
    const height = knownSides(this.#height);
    const aspect = width.map((one, row) => one / height[row]!);
    const columns = new Map<string, TableColumn>([
      ['class', cls],
      ['kind', { kind: 'category', codes: this.#kinds, names: this.#kindNames }],
      ['width', number(width)],
      ['height', number(height)],
      ['aspect', number(aspect)],
      ['bytes', number(this.#bytes)],
      ['orientation', number(this.#orientation)],
      ['key', { kind: 'text', texts: this.#key }],
    ]);
    for (const [name, builder] of this.#labels) {
      const column = builder.finish();
      if (column !== null && !columns.has(name)) columns.set(name, column);
    }
    const { rows } = this;
    const omitted = [...this.#omitted];
    return { rows, key: this.#key, cls, width: this.#width, height: this.#height, columns, omitted };
  }
}

/** Returns the column of classes. Classes without names are named by their numbers, which may have gaps. */
function namedClasses(cls: Int32Array, classes: readonly string[]): CategoryColumn {
  if (classes.length > 0) return { kind: 'category', codes: cls, names: classes };
  const numbers = [...new Set(cls)].filter((one) => one >= 0).sort((a, b) => a - b);
  const codeOf = new Map(numbers.map((one, code) => [one, code]));
  return { kind: 'category', codes: cls.map((one) => codeOf.get(one) ?? -1), names: numbers.map(String) };
}

function number(values: Float64Array): NumberColumn {
  return { kind: 'number', values };
}

function knownSides(sides: Int32Array): Float64Array {
  return Float64Array.from(sides, (side) => (side > 0 ? side : Number.NaN));
}
