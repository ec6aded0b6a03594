import { deserialize, serialize } from 'node:v8';
import { LabelsError, lastAtMost, TextRows } from '@shardtool/base';
import { ColumnKind, type ColumnValue, type LabelRow, type LabelRows, noRows } from '@shardtool/format';
import type { LabelChanges, LabelPage, LabelSource } from '../label-source.js';
import { type Block, BlockFile } from './block-file.js';
import { LineSet } from './line-set.js';
import { type IdentifiedShards, PageHashes } from './page-hashes.js';

/** A file of labels that is read row by row, because it is too large for memory. */
export interface LabelFile {
  /** The file, for messages. */
  readonly location: string;
  /** Whether a column `class` has the names of classes. */
  readonly hasClasses: boolean;
  /** Reads the rows. Each call begins at the first row. */
  rows(): AsyncIterable<LabelRows<string>>;
}

/** Limits of memory. */
interface SpoolLimits {
  /** Number of samples whose labels are in memory at a time, at some 200 bytes each. */
  readonly pageSamples: number;
  /** Number of rows that are collected before they are written. */
  readonly heldRows: number;
}

const LIMITS: SpoolLimits = { pageSamples: 500_000, heldRows: 1 << 18 };

/** Rows for one page: the values of each column, as the file has them. */
interface Rows {
  readonly id: string[];
  readonly line: number[];
  readonly columns: Map<string, ColumnValue[]>;
}

/**
 * The labels of a file of any size, sorted on disk by the shards of their samples. Memory: 6 bytes per sample of the dataset
 * while the file is read (a hash of each key, and where it is), then the labels of half a million samples at a time. Disk:
 * about the size of the labels, in a file without a name, so that a killed process leaves nothing behind. The caller must
 * close the labels.
 */
export class SpooledLabels implements LabelSource {
  readonly by: 'key' | 'path';
  readonly classes: ReadonlySet<string>;
  readonly #file: LabelFile;
  readonly #spool: BlockFile;
  readonly #blocks: readonly (readonly Block[])[];
  readonly #firstShards: readonly number[];
  readonly #classOf: ((value: ColumnValue) => string) | null;
  readonly #convert: ReadonlyMap<string, (value: ColumnValue) => ColumnValue>;
  readonly #isGiven: LineSet;
  readonly #isFound = new LineSet();
  #page: { readonly number: number; readonly labels: LabelPage } | null = null;

  private constructor(file: LabelFile, firstShards: readonly number[], drawn: Drawn, spool: BlockFile) {
    this.#file = file;
    this.by = drawn.by;
    this.classes = drawn.classes;
    this.#spool = spool;
    this.#blocks = drawn.blocks;
    this.#firstShards = firstShards;
    this.#classOf = drawn.classOf;
    this.#convert = drawn.convert;
    this.#isGiven = drawn.lines;
  }

  /**
   * Reads a file of labels. `folder`: for the file on disk. Throws {@link LabelsError} for a wrong line, and FileError if the
   * disk is full.
   */
  static async read(
    file: LabelFile,
    shards: IdentifiedShards,
    folder: string,
    { pageSamples, heldRows }: SpoolLimits = LIMITS,
  ): Promise<SpooledLabels> {
    const { firstShards, pageOfShard } = pagesOf(shards.counts, pageSamples);
    const spool = new BlockFile(folder);
    try {
      return new SpooledLabels(file, firstShards, await draw(file, shards, { pageOfShard, heldRows, spool }), spool);
    } catch (error) {
      spool.close();
      throw error;
    }
  }

  pageOf(shard: number): LabelPage {
    const number = lastAtMost(this.#firstShards, shard);
    if (this.#page?.number !== number) {
      this.#page = null;
      this.#page = { number, labels: this.#load(number) };
    }
    return this.#page.labels;
  }

  async lost() {
    const { count: rows } = this.#isGiven;
    if (this.#isFound.count === rows) return null;
    for await (const batch of this.#file.rows()) {
      const row = batch.rows.find(({ line }) => !this.#isFound.has(line));
      if (row !== undefined) return { rows, count: rows - this.#isFound.count, first: row.id };
    }
    throw changed(this.#file.location);
  }

  close(): void {
    this.#spool.close();
  }

  #load(number: number): LabelPage {
    const id: string[] = [];
    const line: number[] = [];
    const raw = new Map<string, ColumnValue[]>();
    for (const block of this.#blocks[number]!) {
      const rows = deserialize(this.#spool.read(block)) as Rows;
      for (const [name, values] of rows.columns) {
        const column = raw.get(name) ?? [];
        raw.set(name, column);
        extend(column, id.length);
        for (const value of values) column.push(value);
      }
      for (const one of rows.id) id.push(one);
      for (const one of rows.line) line.push(one);
    }
    const rowOf = new TextRows(id);
    if (rowOf.repeated !== null) throw this.#repeated(id, line, rowOf.repeated);
    const labels = this.#converted(id, raw);
    return {
      labels,
      rowOf: (text) => {
        const row = rowOf.get(text);
        if (row !== undefined) this.#isFound.add(line[row]!);
        return row;
      },
    };
  }

  #converted(id: readonly string[], raw: ReadonlyMap<string, ColumnValue[]>): LabelChanges {
    const columns = new Map<string, ColumnValue[]>();
    for (const [name, convert] of this.#convert) {
      const values = raw.get(name) ?? [];
      extend(values, id.length);
      columns.set(name, values.map(convert));
    }
    const classes = raw.get('class') ?? [];
    extend(classes, id.length);
    return { by: this.by, id, cls: this.#classOf && classes.map(this.#classOf), columns };
  }

  #repeated(id: readonly string[], line: readonly number[], [first, second]: readonly [number, number]): LabelsError {
    const { location } = this.#file;
    const message = `${location}:${line[second]} repeats the ${this.by} "${id[second]}" of line ${line[first]}. Remove one of them.`;
    return new LabelsError({ path: location, line: line[second]! }, message);
  }
}

/** What is known when all rows were read. */
interface Drawn {
  readonly by: 'key' | 'path';
  readonly classes: ReadonlySet<string>;
  readonly classOf: ((value: ColumnValue) => string) | null;
  readonly convert: ReadonlyMap<string, (value: ColumnValue) => ColumnValue>;
  readonly blocks: readonly (readonly Block[])[];
  readonly lines: LineSet;
}

/** Groups consecutive shards to pages. */
function pagesOf(
  counts: readonly number[],
  pageSamples: number,
): { firstShards: readonly number[]; pageOfShard: Uint16Array } {
  const firstShards = [0];
  const pageOfShard = new Uint16Array(counts.length);
  let samples = 0;
  counts.forEach((count, shard) => {
    if (samples > 0 && samples + count > pageSamples) {
      firstShards.push(shard);
      samples = 0;
    }
    samples += count;
    pageOfShard[shard] = firstShards.length - 1;
  });
  return { firstShards, pageOfShard };
}

/** Writes each row to the pages of all samples that may be meant: those whose key has the same hash. */
async function draw(
  file: LabelFile,
  shards: IdentifiedShards,
  {
    pageOfShard,
    heldRows,
    spool,
  }: { readonly pageOfShard: Uint16Array; readonly heldRows: number; readonly spool: BlockFile },
): Promise<Drawn> {
  const kinds = new Map<string, ColumnKind>();
  const classValues = new Set<ColumnValue>();
  const lines = new LineSet();
  const blocks: Block[][] = Array.from({ length: Math.max(1, (pageOfShard.at(-1) ?? 0) + 1) }, () => []);
  let pages = new Map<number, Rows>();
  let held = 0;
  let by: 'key' | 'path' | null = null;
  let id = '';
  let hashes: PageHashes | null = null;
  const flush = () => {
    for (const [page, rows] of pages) blocks[page]!.push(spool.append(serialize(rows)));
    pages = new Map();
    held = 0;
  };
  const take = (row: LabelRow, isJson: boolean) => {
    lines.add(row.line);
    row.names.forEach((name, at) => {
      if (name === id) return;
      const value = row.values[at]!;
      if (file.hasClasses && name === 'class') {
        if (classValues.has(value)) return;
        classValues.add(value);
      }
      const kind = kinds.get(name) ?? new ColumnKind(isJson);
      kinds.set(name, kind);
      kind.add(value);
    });
    hashes!.eachPage(row.id, (page) => {
      addRow(pages, page, row, id);
      held++;
    });
  };
  for await (const { by: named, isJson, rows } of file.rows()) {
    id = named;
    by = named === 'key' ? 'key' : 'path';
    hashes ??= await PageHashes.read(shards, by, pageOfShard);
    for (const row of rows) {
      take(row, isJson);
      if (held >= heldRows) flush();
    }
  }
  flush();
  if (by === null || lines.count === 0) throw noRows(file.location);
  const cls = file.hasClasses ? kinds.get('class') : undefined;
  const classOf = cls === undefined ? null : cls.classes();
  if (cls !== undefined) kinds.delete('class');
  return {
    by,
    classes: new Set(classOf === null ? [] : Array.from(classValues, classOf)),
    classOf,
    convert: new Map(Array.from(kinds, ([name, kind]) => [name, kind.values()] as const)),
    blocks,
    lines,
  };
}

function addRow(pages: Map<number, Rows>, page: number, { id, line, names, values }: LabelRow, by: string): void {
  const rows = pages.get(page) ?? { id: [], line: [], columns: new Map<string, ColumnValue[]>() };
  pages.set(page, rows);
  for (let at = 0; at < names.length; at++) {
    const name = names[at]!;
    if (name === by) continue;
    const column = rows.columns.get(name) ?? [];
    rows.columns.set(name, column);
    extend(column, rows.id.length);
    column.push(values[at]!);
  }
  rows.id.push(id);
  rows.line.push(line);
}

/** Rows without a value have null. */
function extend(values: ColumnValue[], rows: number): void {
  while (values.length < rows) values.push(null);
}

function changed(location: string): LabelsError {
  return new LabelsError({ path: location }, `${location} was changed while it was read; run the same command again.`);
}
