import { Recent } from '@shardtool/base';
import {
  type LoadedIndex,
  MAX_SAMPLE_BYTES,
  openSource,
  type ShardIndex,
  type Source,
  sampleTooLarge,
} from '@shardtool/format';
import type { ReadCosts, StorageCounts } from '@shardtool/storage';
import type { ShardStore } from '../loader/read/load-shards.js';
import { type CropColumns, readCrops, type ShardCrops } from './crop-columns.js';
import type { ShardFile } from './shard-file.js';
import { ShardReads } from './shard-reads.js';

/** Open files of crop indexes. */
const OPEN_FILES = 128;
const KEPT_INDEXES = 64;
const KEPT_SOURCES = 4;
const INDEXES_AHEAD = 24;

/** The shards of a dataset with their open files and indexes, of which the most recently used are kept. */
export class ShardFiles implements ShardStore {
  readonly files: readonly ShardFile[];
  /** Samples of each shard. */
  readonly samples: Float64Array;
  /** Number in the dataset of each shard's first sample, and the total behind the last. */
  readonly firstSample: Float64Array;
  readonly #reads: ShardReads;
  readonly #indexes: Recent<number, LoadedIndex>;
  /** Paths of the packed files, of indexes that lack them. */
  readonly #sources: Recent<number, readonly string[]>;
  #lastIndex = -1;
  readonly #crops: Recent<number, ShardCrops | null>;
  /** Where it takes a while to find a crop index, nobody looks for one before the first look has ended, nor once one was missing. */
  #firstCrops: Promise<unknown> | null = null;
  #lacksCrops = false;
  readonly #cropSources: Recent<number, Source | null>;

  constructor(files: readonly ShardFile[]) {
    this.files = files;
    this.#reads = new ShardReads(files);
    this.samples = Float64Array.from(files, ({ samples }) => samples);
    this.firstSample = new Float64Array(files.length + 1);
    for (let k = 0; k < files.length; k++) this.firstSample[k + 1] = this.firstSample[k]! + files[k]!.samples;
    this.#indexes = new Recent(KEPT_INDEXES, (shard) => files[shard]!.loadIndex(this.#reads.readFile));
    this.#sources = new Recent(KEPT_SOURCES, async (shard) => (await files[shard]!.loadParts(['source'])).source);
    this.#crops = new Recent(KEPT_INDEXES, (shard) => this.#findCrops(shard));
    this.#cropSources = new Recent(
      OPEN_FILES,
      async (shard) => {
        const crops = await this.#crops.get(shard);
        return crops && openSource(crops.path, undefined, files[shard]!.storage).catch(() => null);
      },
      (source) => source?.close(),
    );
  }

  /** At least so many indexes stay in memory: as many shards as are read in turn. */
  keepIndexes(count: number): void {
    this.#indexes.reserve(count);
    this.#crops.reserve(count);
  }

  async index(shard: number): Promise<LoadedIndex> {
    this.#reads.throwIfClosed();
    // Whoever walks through all of them does not wait for one after the other.
    const walks = shard === this.#lastIndex + 1 && this.isRemote;
    this.#lastIndex = shard;
    if (walks) {
      for (let next = shard + 1; next <= Math.min(shard + INDEXES_AHEAD, this.files.length - 1); next++) {
        this.#indexes.get(next).catch(() => {});
      }
    }
    return this.#indexes.get(shard);
  }

  /** With the paths of the packed files. */
  async wholeIndex(shard: number): Promise<ShardIndex> {
    const index = await this.index(shard);
    return { ...index, source: index.source ?? (await this.#sources.get(shard)) };
  }

  /** Each read takes a while, on this machine or elsewhere: many are worth having under way, and bytes are worth choosing. */
  get isSlow(): boolean {
    return this.#reads.isSlow;
  }

  /** Shards lie where each request takes a while. */
  get isRemote(): boolean {
    return this.#reads.isRemote;
  }

  /** What reads cost here. */
  get costs(): ReadCosts {
    return this.#reads.costs;
  }

  /** Reads that are worth having under way now. */
  get parallel(): number {
    return this.#reads.parallel;
  }

  /** What came from afar so far; null where nothing does. */
  get fetched(): StorageCounts | null {
    return this.#reads.fetched;
  }

  /** A loader is going to read: finds out whether the shards are far. */
  measure(): Promise<void> {
    return this.#reads.measure();
  }

  async #findCrops(shard: number): Promise<ShardCrops | null> {
    if (this.isSlow && this.#firstCrops !== null) await this.#firstCrops;
    if (this.#lacksCrops) return null;
    const found = this.files[shard]!.findCropIndex().then(async (path) => {
      const crops = await readCrops(path, await this.index(shard), this.files[shard]!.storage);
      this.#lacksCrops ||= crops === null && this.isSlow;
      return crops;
    });
    this.#firstCrops ??= found.catch(() => {});
    return found;
  }

  /** Bytes of a sample that are still read. */
  mostBytes(shard: number): number {
    return this.files[shard]!.maxSampleBytes ?? MAX_SAMPLE_BYTES;
  }

  checkSizes(shard: number, { bytes, key }: Pick<LoadedIndex, 'bytes' | 'key'>, rows: Iterable<number>): void {
    const most = this.mostBytes(shard);
    for (const row of rows) {
      if (bytes[row]! > most) throw sampleTooLarge(this.files[shard]!.name, key[row]!, bytes[row]!, most);
    }
  }

  read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    return this.#reads.read(shard, offset, target);
  }

  /** Bytes that came wrong from afar may come right another time. */
  get readAgain(): ShardStore['readAgain'] {
    return this.isSlow ? (shard, offset, target) => this.read(shard, offset, target) : undefined;
  }

  async crops(shard: number): Promise<CropColumns | null> {
    this.#reads.throwIfClosed();
    return (await this.#crops.get(shard))?.columns ?? null;
  }

  async readCrops(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.#reads.throwIfClosed();
    const source = await this.#cropSources.get(shard);
    // What cannot be read is filled with nothing, which is the crop index of no image.
    const got = (await source?.readAt(offset, target).catch(() => 0)) ?? 0;
    if (got < target.length) target.fill(0, got);
  }

  /** Throws {@link DatasetClosedError}. */
  throwIfClosed(): void {
    this.#reads.throwIfClosed();
  }

  /** Closes the files; reads that are under way end first. */
  async close(): Promise<void> {
    await Promise.all([
      this.#reads.close(),
      this.#indexes.clear(),
      this.#sources.clear(),
      this.#crops.clear(),
      this.#cropSources.clear(),
    ]);
  }
}
