/**
 * A dataset as a page uses it. Shards and indexes are read by the modules that read them in Node; this class only chooses
 * which parts of an index to fetch, since every request of a page takes a round trip.
 */
import { CALL_OPTIONS, checkCallOptions, lastAtMost, OptionError, Recent, SampleDecodeError } from '@shardtool/base';
import {
  type ColumnType,
  type ColumnValue,
  type IndexPart,
  type PartOfIndex,
  type ShardIndex,
  sampleTooLarge,
  unknownColumns,
} from '@shardtool/format';
import { imageOf } from '../dataset/image-of.js';
import { fetchAgain, type Sample, sampleAt } from '../dataset/samples.js';
import { type GetOptions, SampleNotFoundError, type StoredDataset } from '../dataset/stored-dataset.js';
import { compileWhere, namesInWhere } from '../selection/where.js';

/** Parts of an index for showing a sample and reading it. */
const PARTS = ['key', 'offset', 'bytes', 'cls', 'width', 'height', 'orientation', 'fields', 'columns'] as const;
/** Parts of an index by column of an expression. Every other column is a label column. */
const PARTS_OF_COLUMN: ReadonlyMap<string, IndexPart> = new Map([
  ['key', 'key'],
  ['source', 'source'],
  ['bytes', 'bytes'],
  ['width', 'width'],
  ['height', 'height'],
  ['orientation', 'orientation'],
  ['cls', 'cls'],
  ['class', 'cls'],
]);
/** Number of samples of which indexes stay in memory, at some 150 bytes each. */
const KEPT_SAMPLES = 200_000;
/** Number of indexes that an expression fetches at a time: the number of connections that browsers open to a server. */
const INDEXES_AT_ONCE = 6;

/** The parts of an index that a page keeps. */
export type WebIndex = PartOfIndex<(typeof PARTS)[number]>;

/** A sample as described by the index. */
export interface WebRow {
  readonly index: number;
  readonly shard: string;
  readonly key: string;
  /** Class number; -1 if the sample has no class. */
  readonly label: number;
  /** Name of its class; null if it has none. */
  readonly className: string | null;
  /** Size of the sample in its shard, in bytes. */
  readonly bytes: number;
  /** Size of the stored image in pixels, before it is turned; 0 if unknown. */
  readonly width: number;
  readonly height: number;
  /** EXIF orientation 1..8; 0 if unknown. */
  readonly orientation: number;
  /** Values of the label columns, by name. */
  readonly columns: Readonly<Record<string, ColumnValue>>;
}

/** Which rows {@link WebDataset.rows} returns. */
export interface WebRowsOptions {
  /** Index of the first sample. Default: 0. */
  readonly from?: number | undefined;
  /** Index after the last sample. Default: all samples. */
  readonly to?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const ROWS_OPTIONS = {
  from: { kind: 'whole', from: 0, default: 0, help: 'Index of the first sample' },
  to: { kind: 'whole', from: 0, help: 'Index after the last sample' },
  signal: CALL_OPTIONS.signal,
} as const;

const GET_OPTIONS = {
  checksum: { kind: 'switch', default: true, help: 'Whether checksums are checked' },
  signal: CALL_OPTIONS.signal,
} as const;

const SIGNAL = { signal: CALL_OPTIONS.signal } as const;

/** `ImageBitmap` in a page; unknown if the types of browsers are not loaded. */
export type WebImage = typeof globalThis extends { createImageBitmap: (...given: never[]) => Promise<infer Bitmap> }
  ? Bitmap
  : unknown;

/** A dataset that {@link openDataset} opened. Opening reads the manifest; indexes and samples are fetched when they are needed. */
export class WebDataset implements AsyncDisposable {
  /** The same dataset as Node's reader has it, for modules that need more than this class offers. */
  readonly stored: StoredDataset;
  readonly #rows: Recent<number, WebIndex>;

  constructor(stored: StoredDataset) {
    this.stored = stored;
    const { shards, size } = stored;
    const mean = Math.max(1, size / Math.max(1, shards.length));
    this.#rows = new Recent(Math.ceil(KEPT_SAMPLES / mean), (shard) => shards[shard]!.loadParts(PARTS));
  }

  /** URL without its query, for messages. */
  get location(): string {
    return this.stored.location;
  }

  get format(): string {
    return this.stored.format;
  }

  /** Equal for equal data. */
  get identity(): string {
    return this.stored.identity;
  }

  /** Number of samples. */
  get size(): number {
    return this.stored.size;
  }

  /** Total size of the shards, in bytes. */
  get bytes(): number {
    return this.stored.bytes;
  }

  /** Names of the shards. */
  get shards(): readonly string[] {
    return this.stored.shards.map(({ name }) => name);
  }

  /** Names of the classes by number. Empty if the dataset does not name them. */
  get classes(): readonly string[] {
    return this.stored.classes;
  }

  /** Number of samples of each class, if known. */
  get classSamples(): readonly number[] {
    return this.stored.classSamples;
  }

  /** Names of the fields of all samples. */
  get fields(): readonly string[] {
    return this.stored.fields;
  }

  /** Label columns by name, with their types. They are those of the first shard that has samples. */
  async columns(): Promise<ReadonlyMap<string, ColumnType>> {
    const first = this.stored.shards.find(({ samples }) => samples > 0);
    return first === undefined ? new Map() : ((await first.loadParts(['columnTypes'])).columnTypes ?? new Map());
  }

  /** Returns the index of a shard, without the paths of the packed files. */
  indexOfShard(shard: number): Promise<WebIndex> {
    return this.#rows.get(shard);
  }

  /** Returns a sample as described by the index. Throws {@link SampleNotFoundError}. */
  async row(index: number): Promise<WebRow> {
    const { shard, row } = this.#placeOf(index);
    return this.#rowOf(await this.#rows.get(shard), shard, row);
  }

  /** Yields the samples as described by the indexes, in the order of the dataset. Images are not fetched. */
  async *rows(options: WebRowsOptions = {}): AsyncGenerator<WebRow> {
    const { from, to = this.size, signal } = checkCallOptions('rows', ROWS_OPTIONS, options) as WebRowsOptions;
    for (let index = from!; index < Math.min(to, this.size); index++) {
      (signal as AbortSignal | undefined)?.throwIfAborted();
      yield await this.row(index);
    }
  }

  /**
   * Returns the indices of the samples that match an expression such as `class = "cat" and width >= 256`, in rising order. Only
   * the columns that it names are fetched, of every index. Throws WhereError if the expression is invalid.
   */
  async where(text: string, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Uint32Array> {
    const { signal } = checkCallOptions('where', SIGNAL, options) as { readonly signal?: AbortSignal };
    const bind = compileWhere(text, this.classes);
    const parts = [...new Set([...namesInWhere(text)].map((name) => PARTS_OF_COLUMN.get(name) ?? 'columns'))];
    // A size of 0 means that the header was not read only if all are 0.
    if (parts.includes('width') || parts.includes('height')) parts.push('orientation', 'width');
    const { shards, files } = this.stored;
    const found = new Uint32Array(this.size);
    const matches = new Array<Uint32Array>(shards.length);
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let shard = next++; shard < shards.length; shard = next++) {
        signal?.throwIfAborted();
        const { samples } = shards[shard]!;
        if (samples === 0) continue;
        const index = { ...nothingOf(samples), ...(await shards[shard]!.loadParts([...new Set(parts)])) };
        const isWanted = bind(index as ShardIndex);
        const first = files.firstSample[shard]!;
        let count = 0;
        const rows = new Uint32Array(samples);
        for (let row = 0; row < samples; row++) if (isWanted(row)) rows[count++] = first + row;
        matches[shard] = rows.slice(0, count);
      }
    };
    await Promise.all(Array.from({ length: Math.min(INDEXES_AT_ONCE, shards.length) }, lane));
    let count = 0;
    for (const rows of matches) {
      if (rows === undefined) continue;
      found.set(rows, count);
      count += rows.length;
    }
    return found.slice(0, count);
  }

  /**
   * Returns one sample by key or index: the stored bytes of its fields. The first look-up by key fetches the keys of all
   * indexes. Throws {@link SampleNotFoundError}, and SampleChecksumError if a byte has changed.
   */
  async get(keyOrIndex: string | number, options: GetOptions = {}): Promise<Sample> {
    const { checksum, signal } = checkCallOptions('get', GET_OPTIONS, options) as Required<GetOptions>;
    signal?.throwIfAborted();
    const index = typeof keyOrIndex === 'number' ? keyOrIndex : await this.#indexOf(keyOrIndex);
    const { shard, row } = this.#placeOf(index);
    const rows = await this.#rows.get(shard);
    signal?.throwIfAborted();
    const { files, shards } = this.stored;
    const bytes = rows.bytes[row]!;
    const name = { shard: shards[shard]!.name, key: rows.key[row]!, index };
    if (bytes > files.mostBytes(shard)) throw sampleTooLarge(name.shard, name.key, bytes, files.mostBytes(shard));
    const offset = rows.offset[row]!;
    const buffer = new Uint8Array(bytes);
    await files.read(shard, offset, buffer);
    signal?.throwIfAborted();
    const read = () => sampleAt(name, { ...rows, source: [] }, row, { buffer, offset }, checksum!);
    try {
      return read();
    } catch (error) {
      await fetchAgain(error, files, shard, offset, buffer);
      return read();
    }
  }

  /**
   * Decodes the image of a sample with `createImageBitmap`, upright by its EXIF orientation. Throws SampleDecodeError if the
   * sample has no image, or if the browser cannot decode it.
   */
  async image(keyOrIndex: string | number, options: GetOptions = {}): Promise<WebImage> {
    const sample = await this.get(keyOrIndex, options);
    const image = imageOf(sample);
    if (image === null) throw new SampleDecodeError(sample, 'it has no image');
    const { createImageBitmap } = globalThis as unknown as { createImageBitmap(blob: Blob): Promise<WebImage> };
    try {
      return await createImageBitmap(new Blob([image.bytes], { type: image.type }));
    } catch (cause) {
      throw new SampleDecodeError(sample, `the browser cannot decode ${image.type}`, { cause });
    }
  }

  /** Ends reads that are still in progress with an error. */
  async close(): Promise<void> {
    await this.stored.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #indexOf(key: string): Promise<number> {
    if (typeof key !== 'string') throw new OptionError({}, `get takes the key or the index of a sample, not ${key}.`);
    const index = await this.stored.indexOf(key);
    if (index >= 0) return index;
    const hint = await this.stored.hintOnKey(key);
    throw new SampleNotFoundError(
      { path: this.location, key },
      `${this.location} has no sample with the key "${key}"${hint || '; rows() yields the keys that it has.'}`,
    );
  }

  #placeOf(index: number): { readonly shard: number; readonly row: number } {
    if (!Number.isInteger(index) || index < 0 || index >= this.size) {
      throw new SampleNotFoundError(
        { path: this.location },
        `${this.location} has no sample with the index ${index}: it has ${this.size} samples, counted from 0.`,
      );
    }
    const { firstSample } = this.stored.files;
    const shard = lastAtMost(firstSample, index);
    return { shard, row: index - firstSample[shard]! };
  }

  #rowOf(rows: WebIndex, shard: number, row: number): WebRow {
    const label = rows.cls[row]!;
    return {
      index: this.stored.files.firstSample[shard]! + row,
      shard: this.stored.shards[shard]!.name,
      key: rows.key[row]!,
      label,
      className: this.classes[label] ?? null,
      bytes: rows.bytes[row]!,
      width: rows.width[row]!,
      height: rows.height[row]!,
      orientation: rows.orientation[row]!,
      columns: Object.fromEntries(Array.from(rows.columns, ([name, values]) => [name, values[row] ?? null])),
    };
  }
}

/** An index of which nothing is known. */
function nothingOf(samples: number): ShardIndex {
  return {
    samples,
    key: [],
    offset: new Float64Array(0),
    bytes: new Float64Array(0),
    fields: new Map(),
    columns: new Map(),
    ...unknownColumns(samples),
  };
}
