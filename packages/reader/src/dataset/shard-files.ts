import {
  FileError,
  type IndexPart,
  MAX_SAMPLE_BYTES,
  openSource,
  type PartOfIndex,
  type ShardIndex,
  ShardtoolError,
  type Source,
  sampleTooLarge,
} from '@shardtool/format';
import {
  FileChangedError,
  isRemote,
  type ReadCosts,
  ReadsInFlight,
  ReadThreads,
  type StorageCounts,
  shownLocation,
} from '@shardtool/storage';
import type { ShardStore } from '../loader/read/load-shards.js';
import { type CropColumns, readCrops, type ShardCrops } from './crop-columns.js';
import type { LoadInspection } from './inspection-columns.js';
import { Recent } from './keys/recent.js';

/** A shard is shorter than its index says: it was cut, or replaced, since it was packed. */
export class ShardCutError extends ShardtoolError {}

/** A dataset was closed while something was being read from it. */
export class DatasetClosedError extends ShardtoolError {}

/** Reads all of a file of this machine. Throws {@link FileError}. */
export type ReadFile = (path: string) => Promise<Uint8Array>;

/** One shard of a dataset. */
export interface ShardFile {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  readonly bytes: number;
  readonly samples: number;
  /** A sample of more bytes is not read. Default: 1 GiB. */
  readonly maxSampleBytes?: number | undefined;
  /** Opens a file whose payloads do not lie in it as they are: all reading goes through this. Absent: `path` is read as it is. */
  readonly open?: (() => Promise<Source>) | undefined;
  /** Labels can be had without finding out where payloads lie, which costs much more. */
  readonly hasLabelsApart?: true;
  /** Reads the index, or has it from when it was made. `read`: what reads its file, where that is not to be this thread. */
  loadIndex(read?: ReadFile): Promise<ShardIndex>;
  /** Reads some parts of it, which costs less. */
  loadParts<P extends IndexPart>(parts: readonly P[]): Promise<PartOfIndex<P>>;
  /** Where its crop index is, if it has one; there may be no such file. */
  findCropIndex(): Promise<string | null>;
  /** Reads what `shardtool inspect` keeps beside it. Absent: nothing can lie beside it. */
  readonly loadInspection?: LoadInspection | undefined;
}

/** Open files are few and large; this stays far below the usual limit of 1,024. */
const OPEN_FILES = 128;
const KEPT_INDEXES = 64;
const INDEXES_AHEAD = 24;
/** What reads cost on this machine. Long ones are cut into pieces that run side by side. */
const LOCAL: ReadCosts = { gapBytes: 64 << 10, maxReadBytes: 4 << 20, parallel: 4 };
/** On a slow file system each call waits, and each read is many of them. */
const SLOW: ReadCosts = { gapBytes: 256 << 10, maxReadBytes: 512 << 10, parallel: 32 };
const REMOTE: ReadCosts = { gapBytes: 1 << 20, maxReadBytes: 8 << 20, parallel: 128 };
/** Reads that are under way at first, where more are tried then. */
const START_READS = 16;
/** Threads for remote reads, and how many each has before there is another one. */
const REMOTE_THREADS = 2;
const READS_A_THREAD = 32;
/** Opening a file that is on this machine takes a tenth of this; the quickest of the first few says which it is. */
const SLOW_OPEN_MS = 0.8;
const OPENS_MEASURED = 3;
/** Slow ones may be the work of a machine under load, if they do not take as long as this: then so many are tried, more. */
const DOUBTFUL_OPEN_MS = 5;
const DOUBTFUL_OPENS = 10;
/** While a thread starts, those that are there do what they can: as many reads as take this long wait for each of them. */
const THREAD_START_MS = 200;
/** A slow file system gets another thread where all have been busy for so long. */
const THREAD_GROW_MS = 30;

/** What is known of a remote file need not be asked for. */
function sizeOf({ path, bytes }: ShardFile): { readonly size: number } | undefined {
  return isRemote(path) ? { size: bytes } : undefined;
}

/** The shards of a dataset with their open files and indexes, of which the most recently used are kept. */
export class ShardFiles implements ShardStore {
  readonly files: readonly ShardFile[];
  /** Samples of each shard. */
  readonly samples: Float64Array;
  /** Number in the dataset of each shard's first sample, and the total behind the last. */
  readonly firstSample: Float64Array;
  readonly #sources: Recent<number, Source>;
  readonly #indexes: Recent<number, ShardIndex>;
  /** Shards lie where each request takes a while. */
  readonly isRemote: boolean;
  #lastIndex = -1;
  /** How long the quickest of the first openings took, of how many. */
  #quickestOpenMs = Number.POSITIVE_INFINITY;
  #opens = 0;
  #threads: ReadThreads | null = null;
  #inFlight: ReadsInFlight | null = null;
  readonly #crops: Recent<number, ShardCrops | null>;
  /** Where it takes a while to find a crop index, nobody looks for one before the first look has ended, nor once one was missing. */
  #firstCrops: Promise<unknown> | null = null;
  #lacksCrops = false;
  /** Of remote shards, those that were read first. */
  readonly #versions = new Map<number, string>();
  readonly #cropSources: Recent<number, Source | null>;
  #closed = false;

  constructor(files: readonly ShardFile[]) {
    this.files = files;
    this.isRemote = files.some(({ path }) => isRemote(path));
    this.samples = Float64Array.from(files, ({ samples }) => samples);
    this.firstSample = new Float64Array(files.length + 1);
    for (let k = 0; k < files.length; k++) this.firstSample[k + 1] = this.firstSample[k]! + files[k]!.samples;
    this.#sources = new Recent(
      OPEN_FILES,
      (shard) => this.#open(files[shard]!),
      (source) => source.close(),
    );
    this.#indexes = new Recent(KEPT_INDEXES, (shard) =>
      files[shard]!.loadIndex(this.#isSlow ? (path) => this.#slowThreads().readFile(path) : undefined),
    );
    this.#crops = new Recent(KEPT_INDEXES, (shard) => this.#findCrops(shard));
    this.#cropSources = new Recent(
      OPEN_FILES,
      async (shard) => {
        const crops = await this.#crops.get(shard);
        return crops && openSource(crops.path).catch(() => null);
      },
      (source) => source?.close(),
    );
  }

  /** At least so many indexes stay in memory: as many shards as are read in turn. */
  keepIndexes(count: number): void {
    this.#indexes.reserve(count);
    this.#crops.reserve(count);
  }

  async index(shard: number): Promise<ShardIndex> {
    this.throwIfClosed();
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

  /** Each read takes a while, on this machine or elsewhere: many are worth having under way, and bytes are worth choosing. */
  get isFar(): boolean {
    return this.isRemote || this.#isSlow;
  }

  /** What reads cost here. */
  get costs(): ReadCosts {
    if (this.isRemote) return REMOTE;
    return this.#isSlow ? SLOW : LOCAL;
  }

  /** Reads that are worth having under way now. */
  get parallel(): number {
    return this.isFar ? this.#flight.limit : LOCAL.parallel;
  }

  /** What came from afar so far; null where nothing does. */
  get fetched(): StorageCounts | null {
    return this.isRemote ? (this.#threads?.counts ?? { requests: 0, bytes: 0, retries: 0, hedges: 0 }) : null;
  }

  get #isSlow(): boolean {
    return this.#opens >= OPENS_MEASURED && this.#quickestOpenMs > SLOW_OPEN_MS;
  }

  get #flight(): ReadsInFlight {
    this.#inFlight ??= new ReadsInFlight(START_READS, this.costs.parallel);
    return this.#inFlight;
  }

  /** A loader is going to read: finds out whether the shards are far, by opening some where they are on this machine. */
  async measure(): Promise<void> {
    if (this.isRemote) {
      this.#remoteThreads().start();
      return;
    }
    for (let shard = 0; shard < Math.min(OPENS_MEASURED, this.files.length); shard++) {
      await this.#sources.get(shard).catch(() => {});
    }
    // One of few files is opened again.
    while (this.#opens > 0 && this.#opens < OPENS_MEASURED) {
      await this.#open(this.files[0]!).then((source) => source.close());
    }
    for (let more = 0; more < DOUBTFUL_OPENS && this.#isSlow && this.#quickestOpenMs < DOUBTFUL_OPEN_MS; more++) {
      await this.#open(this.files[0]!).then((source) => source.close());
    }
    if (this.#isSlow) this.#slowThreads().start();
  }

  async #findCrops(shard: number): Promise<ShardCrops | null> {
    if (this.isFar && this.#firstCrops !== null) await this.#firstCrops;
    if (this.#lacksCrops) return null;
    const found = this.files[shard]!.findCropIndex().then(async (path) => {
      const crops = await readCrops(path, await this.index(shard));
      this.#lacksCrops ||= crops === null && this.isFar;
      return crops;
    });
    this.#firstCrops ??= found.catch(() => {});
    return found;
  }

  async #open(file: ShardFile): Promise<Source> {
    const began = performance.now();
    const source = await (file.open?.() ?? openSource(file.path, sizeOf(file)));
    this.#quickestOpenMs = Math.min(this.#quickestOpenMs, performance.now() - began);
    this.#opens++;
    return source;
  }

  /** Bytes of a sample that are still read. */
  mostBytes(shard: number): number {
    return this.files[shard]!.maxSampleBytes ?? MAX_SAMPLE_BYTES;
  }

  checkSizes(shard: number, { bytes, key }: Pick<ShardIndex, 'bytes' | 'key'>, rows: Iterable<number>): void {
    const most = this.mostBytes(shard);
    for (const row of rows) {
      if (bytes[row]! > most) throw sampleTooLarge(this.files[shard]!.name, key[row]!, bytes[row]!, most);
    }
  }

  async read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.throwIfClosed();
    const { maxReadBytes } = this.costs;
    if (target.length <= maxReadBytes) return this.#readPiece(shard, offset, target);
    const pieces: Promise<void>[] = [];
    for (let at = 0; at < target.length; at += maxReadBytes) {
      pieces.push(this.#readPiece(shard, offset + at, target.subarray(at, at + maxReadBytes)));
    }
    await Promise.all(pieces);
  }

  /** Bytes that came wrong from afar may come right another time. */
  get readAnew(): ShardStore['readAnew'] {
    return this.isFar ? (shard, offset, target) => this.read(shard, offset, target) : undefined;
  }

  async crops(shard: number): Promise<CropColumns | null> {
    this.throwIfClosed();
    return (await this.#crops.get(shard))?.columns ?? null;
  }

  async readCrops(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.throwIfClosed();
    const source = await this.#cropSources.get(shard);
    // What cannot be read is filled with nothing, which is the crop index of no image.
    const got = (await source?.readAt(offset, target).catch(() => 0)) ?? 0;
    if (got < target.length) target.fill(0, got);
  }

  async #readPiece(shard: number, offset: number, target: Uint8Array): Promise<void> {
    if (!this.isFar) return this.#readFrom(shard, offset, target);
    return this.#flight.run(target.length, () => this.#readFrom(shard, offset, target));
  }

  /** Into shared memory by threads, where that is slow work; else here. */
  async #readBytes(shard: number, offset: number, target: Uint8Array): Promise<number> {
    const file = this.files[shard]!;
    if (!this.isFar || file.open !== undefined || !(target.buffer instanceof SharedArrayBuffer)) {
      const source = await this.#sources.get(shard);
      const got = await source.readAt(offset, target);
      this.#checkVersion(shard, source.version);
      return got;
    }
    const threads = this.isRemote ? this.#remoteThreads() : this.#slowThreads();
    const size = sizeOf(file);
    const expected = size && { ...size, version: this.#versions.get(shard) };
    const { got, version } = await threads.read(file.path, expected, offset, target);
    this.#checkVersion(shard, version);
    return got;
  }

  #remoteThreads(): ReadThreads {
    this.#threads ??= new ReadThreads({ remote: true, most: REMOTE_THREADS, each: READS_A_THREAD });
    return this.#threads;
  }

  #slowThreads(): ReadThreads {
    const each = Math.max(1, Math.min(READS_A_THREAD, Math.round(THREAD_START_MS / this.#quickestOpenMs)));
    this.#threads ??= new ReadThreads({ remote: false, most: SLOW.parallel, each, growMs: THREAD_GROW_MS });
    return this.#threads;
  }

  /** Each thread knows the files that it has opened last; all of them have to read the same ones. */
  #checkVersion(shard: number, version: string | undefined): void {
    if (version === undefined) return;
    const known = this.#versions.get(shard);
    if (known === undefined) this.#versions.set(shard, version);
    else if (known !== version) {
      const { name, path } = this.files[shard]!;
      throw new FileChangedError(
        { shard: name, path: shownLocation(path) },
        `${shownLocation(path)} has changed: it was replaced since it was first read. Open the dataset again, or restore the file.`,
      );
    }
  }

  async #readFrom(shard: number, offset: number, target: Uint8Array): Promise<void> {
    const { name, path } = this.files[shard]!;
    let got: number;
    try {
      got = await this.#readBytes(shard, offset, target);
    } catch (cause) {
      this.throwIfClosed();
      if (cause instanceof FileError && isRemote(path)) throw cause;
      throw new FileError(
        { shard: name, path: shownLocation(path), offset },
        `${shownLocation(path)} cannot be read at byte ${offset} (${(cause as Error).message}).`,
        {
          cause,
        },
      );
    }
    if (got < target.length) {
      throw new ShardCutError(
        { shard: name, path: shownLocation(path), offset: offset + got },
        `${name} ends at byte ${offset + got}, but its index names bytes up to ${offset + target.length}: it was cut or ` +
          'replaced since it was packed. Run "shardtool verify" on the dataset.',
      );
    }
  }

  /** Throws {@link DatasetClosedError}. */
  throwIfClosed(): void {
    if (this.#closed) {
      throw new DatasetClosedError(
        {},
        'The dataset was closed while it was in use: end its loops first, or open it again.',
      );
    }
  }

  /** Closes the files; reads that are under way end first. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([
      this.#sources.clear(),
      this.#indexes.clear(),
      this.#crops.clear(),
      this.#cropSources.clear(),
      this.#threads?.close(),
    ]);
  }
}
