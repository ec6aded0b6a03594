import { Recent } from '@shardtool/base';
import {
  type LoadedIndex,
  MAX_SAMPLE_BYTES,
  openSource,
  type ShardIndex,
  type Source,
  sampleTooLarge,
} from '@shardtool/format';
import type { StorageCounts } from '@shardtool/storage';
import { type CropColumns, readCrops, type ShardCrops } from '../crop-columns.js';
import type { ShardFile } from './shard-file.js';
import { ShardReads } from './shard-reads.js';
import type { ShardIndexes, ShardStore } from './shard-store.js';

/** Number of open crop indexes. */
const OPEN_FILES = 128;
const KEPT_INDEXES = 64;
const KEPT_SOURCES = 4;
/** Number of indexes that are requested ahead while the shards are read in turn. */
const INDEXES_AHEAD = 24;

/** The shards of a dataset with their open files and indexes. The most recently used stay open. */
export class ShardFiles implements ShardIndexes {
  /** The shards as a loader reads them. */
  readonly store: ShardStore;
  readonly files: readonly ShardFile[];
  /** Samples of each shard. */
  readonly samples: Float64Array;
  /** Index in the dataset of each shard's first sample; the last entry is the number of all samples. */
  readonly firstSample: Float64Array;
  readonly #reads: ShardReads;
  readonly #indexes: Recent<number, LoadedIndex>;
  /** Paths of the packed files, for indexes without them. */
  readonly #sources: Recent<number, readonly string[]>;
  #lastIndex = -1;
  readonly #crops: Recent<number, ShardCrops | null>;
  /** On slow storage, only one crop index is looked for at first. If it is missing, no other is looked for. */
  #firstCrops: Promise<unknown> | null = null;
  #lacksCrops = false;
  readonly #cropSources: Recent<number, Source | null>;

  constructor(files: readonly ShardFile[]) {
    this.files = files;
    const reads = new ShardReads(files);
    this.#reads = reads;
    this.store = {
      bytes: {
        read: ({ shard, file, offset }, target) =>
          file === 'shard' ? this.read(shard, offset, target) : this.#readCrops(shard, offset, target),
        get mayDiffer() {
          return reads.isSlow;
        },
      },
      indexes: this,
      crops: { columns: (shard) => this.crops(shard) },
      costs: reads,
    };
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

  /** Keeps at least this number of indexes in memory, which is the number of shards that are read in turn. */
  keepIndexes(count: number): void {
    this.#indexes.reserve(count);
    this.#crops.reserve(count);
  }

  async index(shard: number): Promise<LoadedIndex> {
    this.#reads.throwIfClosed();
    const isInTurn = shard === this.#lastIndex + 1 && this.isRemote;
    this.#lastIndex = shard;
    if (isInTurn) {
      for (let next = shard + 1; next <= Math.min(shard + INDEXES_AHEAD, this.files.length - 1); next++) {
        this.#indexes.get(next).catch(() => {});
      }
    }
    return this.#indexes.get(shard);
  }

  /** Returns the index including the paths of the packed files. */
  async wholeIndex(shard: number): Promise<ShardIndex> {
    const index = await this.index(shard);
    return { ...index, source: index.source ?? (await this.#sources.get(shard)) };
  }

  /** True if storage is slow or remote: many reads run at a time, and only the bytes that are needed are read. */
  get isSlow(): boolean {
    return this.#reads.isSlow;
  }

  /** True if a shard is on a server or in a bucket. */
  get isRemote(): boolean {
    return this.#reads.isRemote;
  }

  /** Counts of what was fetched from remote storage so far. Null if all shards are local. */
  get fetched(): StorageCounts | null {
    return this.#reads.fetched;
  }

  /** Prepares for a loader, and detects whether storage is slow. */
  measure(): Promise<void> {
    return this.#reads.measure();
  }

  async #findCrops(shard: number): Promise<ShardCrops | null> {
    if (this.isSlow && this.#firstCrops !== null) await this.#firstCrops;
    if (this.#lacksCrops) return null;
    const found = this.files[shard]!.findCropIndex().then(async (path) => {
      const crops = await readCrops(path, () => this.index(shard), this.files[shard]!.storage);
      this.#lacksCrops ||= crops === null && this.isSlow;
      return crops;
    });
    this.#firstCrops ??= found.catch(() => {});
    return found;
  }

  /** Largest size of a sample of this shard, in bytes. */
  mostBytes(shard: number): number {
    return this.files[shard]!.maxSampleBytes ?? MAX_SAMPLE_BYTES;
  }

  checkSizes(shard: number, index: Pick<LoadedIndex, 'bytes' | 'key'>, rows: Iterable<number>): void {
    const most = this.mostBytes(shard);
    const { bytes } = index;
    for (const row of rows) {
      if (bytes[row]! > most) throw sampleTooLarge(this.files[shard]!.name, index.key[row]!, bytes[row]!, most);
    }
  }

  read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    return this.#reads.read(shard, offset, target);
  }

  async crops(shard: number): Promise<CropColumns | null> {
    this.#reads.throwIfClosed();
    return (await this.#crops.get(shard))?.columns ?? null;
  }

  async #readCrops(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.#reads.throwIfClosed();
    const source = await this.#cropSources.get(shard);
    // If bytes cannot be read, they become zeros, which match no crop index.
    const got = (await source?.readAt(offset, target).catch(() => 0)) ?? 0;
    if (got < target.length) target.fill(0, got);
  }

  /** Throws {@link DatasetClosedError}. */
  throwIfClosed(): void {
    this.#reads.throwIfClosed();
  }

  /** Closes the files after the reads in progress have ended. */
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
