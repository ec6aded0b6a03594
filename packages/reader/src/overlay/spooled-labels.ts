import { randomUUID } from 'node:crypto';
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import path from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { FileError, LabelsError, lastAtMost, readFullySync, reasonOf, remedyOf, TextRows } from '@shardtool/base';
import { ColumnKind, type ColumnValue, type LabelRow, type LabelRows, noRows } from '@shardtool/format';
import { keyHash } from '../dataset/keys/key-hash.js';
import { SortedHashes } from '../dataset/keys/key-hashes.js';
import type { LabelChanges, LabelPage, LabelSource } from './label-source.js';

/** A file of labels that is read row by row, because it is too large for memory. */
export interface LabelFile {
  /** The file, for messages. */
  readonly location: string;
  /** Whether a column `class` has the names of classes. */
  readonly hasClasses: boolean;
  /** Reads the rows. Each call begins at the first row. */
  rows(): AsyncIterable<LabelRows<string>>;
}

/** Number of samples whose labels are in memory at a time, at some 200 bytes each. */
const PAGE_SAMPLES = 500_000;
/** Number of rows that are collected before they are written. */
const HELD_ROWS = 1 << 18;

/** Shards with the column that labels refer to. */
export interface IdentifiedShards {
  /** Number of samples of each shard. */
  readonly counts: readonly number[];
  /** Yields the keys or paths of all samples, one shard after the other. */
  idsOfShards(by: 'key' | 'path'): AsyncIterable<readonly string[]>;
}

/** Where a block of rows is in the file. */
interface Block {
  readonly offset: number;
  readonly bytes: number;
}

/** Rows for one page: the values of each column, as the file has them. */
interface Rows {
  readonly id: string[];
  readonly line: number[];
  readonly columns: Map<string, ColumnValue[]>;
}

/**
 * The labels of a file of any size, sorted on disk by the shards of their samples. Memory: 8 bytes per sample of the dataset
 * while the file is read (a hash of each key, and their order), then the labels of half a million samples at a time. Disk:
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
  static async read(file: LabelFile, shards: IdentifiedShards, folder: string): Promise<SpooledLabels> {
    const { firstShards, pageOfShard } = pagesOf(shards.counts);
    const spool = new BlockFile(folder);
    try {
      return new SpooledLabels(file, firstShards, await draw(file, shards, pageOfShard, spool), spool);
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
function pagesOf(counts: readonly number[]): { firstShards: readonly number[]; pageOfShard: Uint32Array } {
  const firstShards = [0];
  const pageOfShard = new Uint32Array(counts.length);
  let samples = 0;
  counts.forEach((count, shard) => {
    if (samples > 0 && samples + count > PAGE_SAMPLES) {
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
  pageOfShard: Uint32Array,
  spool: BlockFile,
): Promise<Drawn> {
  const kinds = new Map<string, ColumnKind>();
  const classValues = new Set<ColumnValue>();
  const lines = new LineSet();
  const blocks: Block[][] = Array.from({ length: Math.max(1, (pageOfShard.at(-1) ?? 0) + 1) }, () => []);
  let pages = new Map<number, Rows>();
  let held = 0;
  let by: 'key' | 'path' | null = null;
  let id = '';
  let hashes: ShardHashes | null = null;
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
      if (file.hasClasses && name === 'class') classValues.add(value);
      const kind = kinds.get(name) ?? new ColumnKind(isJson);
      kinds.set(name, kind);
      kind.add(value);
    });
    let last = -1;
    for (const shard of hashes!.shardsOf(row.id)) {
      const page = pageOfShard[shard]!;
      if (page === last) continue;
      last = page;
      addRow(pages, page, row, id);
      held++;
    }
  };
  for await (const { by: named, isJson, rows } of file.rows()) {
    id = named;
    by = named === 'key' ? 'key' : 'path';
    hashes ??= await ShardHashes.read(shards, by);
    for (const row of rows) {
      take(row, isJson);
      if (held >= HELD_ROWS) flush();
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

/** Finds the shards that may have a key or path by the hashes of all of them. */
class ShardHashes {
  readonly #sorted: SortedHashes;
  readonly #firstSample: Float64Array;

  private constructor(hashes: Uint32Array, firstSample: Float64Array) {
    this.#sorted = new SortedHashes(hashes);
    this.#firstSample = firstSample;
  }

  static async read({ counts, idsOfShards }: IdentifiedShards, by: 'key' | 'path'): Promise<ShardHashes> {
    const firstSample = new Float64Array(counts.length + 1);
    counts.forEach((count, shard) => {
      firstSample[shard + 1] = firstSample[shard]! + count;
    });
    const hashes = new Uint32Array(firstSample[counts.length]!);
    let at = 0;
    for await (const ids of idsOfShards(by)) for (const id of ids) hashes[at++] = keyHash(id);
    return new ShardHashes(hashes, firstSample);
  }

  /** Yields shards in ascending order; one can be repeated. */
  *shardsOf(id: string): Generator<number> {
    const shards = this.#firstSample.length - 1;
    for (const sample of this.#sorted.find(keyHash(id))) yield lastAtMost(this.#firstSample, sample, shards);
  }
}

/** A set of line numbers, one bit each. */
class LineSet {
  count = 0;
  #bits = new Uint8Array(1 << 16);

  has(line: number): boolean {
    return (((this.#bits[line >>> 3] ?? 0) >> (line & 7)) & 1) === 1;
  }

  add(line: number): void {
    if (this.has(line)) return;
    if (line >>> 3 >= this.#bits.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bits.length, (line >>> 3) + 1));
      larger.set(this.#bits);
      this.#bits = larger;
    }
    this.#bits[line >>> 3]! |= 1 << (line & 7);
    this.count++;
  }
}

/** Blocks of bytes in a file that has no name. */
class BlockFile {
  readonly #folder: string;
  readonly #fd: number;
  #length = 0;

  constructor(folder: string) {
    this.#folder = folder;
    const file = path.join(folder, `.labels-${randomUUID()}`);
    try {
      this.#fd = openSync(file, 'wx+');
      unlinkSync(file);
    } catch (cause) {
      throw unwritten(folder, cause);
    }
  }

  append(bytes: Uint8Array): Block {
    const block = { offset: this.#length, bytes: bytes.length };
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(this.#fd, bytes, done, bytes.length - done, this.#length + done);
      }
    } catch (cause) {
      throw unwritten(this.#folder, cause);
    }
    this.#length += bytes.length;
    return block;
  }

  read({ offset, bytes }: Block): Buffer {
    const buffer = Buffer.allocUnsafe(bytes);
    readFullySync(this.#fd, buffer, offset);
    return buffer;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function unwritten(folder: string, cause: unknown): FileError {
  const message = `The labels cannot be sorted in ${folder}: ${reasonOf(cause)}; ${remedyOf(cause as Error)}.`;
  return new FileError({ path: folder }, message, { cause });
}

function changed(location: string): LabelsError {
  return new LabelsError({ path: location }, `${location} was changed while it was read; run the same command again.`);
}
