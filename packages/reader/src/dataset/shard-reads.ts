import { FileChangedError, FileError, ReadsInFlight, Recent, ShardtoolError } from '@shardtool/base';
import { openSource, type Source } from '@shardtool/format';
import {
  type Expected,
  isRemote,
  LocalThreads,
  type ReadCosts,
  RemoteThreads,
  type StorageCounts,
  shownLocation,
} from '@shardtool/storage';
import type { ReadFile, ShardFile } from './shard-file.js';

/** A shard is shorter than its index says: it was cut, or replaced, since it was packed. */
export class ShardLengthError extends ShardtoolError {
  static override readonly kind: string = 'ShardLengthError';
}

/** A dataset was closed while something was being read from it. */
export class DatasetClosedError extends ShardtoolError {
  static override readonly kind: string = 'DatasetClosedError';
}

/** Open files are few and large; this stays far below the usual limit of 1,024. */
const OPEN_FILES = 128;
/** What reads cost on this machine. Long ones are cut into pieces that run side by side. */
const LOCAL: ReadCosts = { gapBytes: 64 << 10, maxReadBytes: 4 << 20, parallel: 4 };
/** On a slow file system each call waits, and each read is many of them. */
const SLOW: ReadCosts = { gapBytes: 128 << 10, maxReadBytes: 1 << 20, parallel: 64 };
const REMOTE: ReadCosts = { gapBytes: 1 << 20, maxReadBytes: 8 << 20, parallel: 128 };
/** Reads that are under way at first, where more are tried then. */
const START_READS = 16;
/** Many of the slow ones are waiting for their files to be opened. */
const SLOW_START_READS = 24;
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
/** Threads for slow files: starting one costs as much processor time as decoding a batch. */
const SLOW_THREADS = 32;
/** So long a thread has something to do before it is handed more, since that takes a moment of the main thread. */
const HANDED_MS = 10;
/** A slow file system gets another thread where all have been busy for so long. */
const THREAD_GROW_MS = 60;

/** What is known of a remote file need not be asked for. */
function expectedOf({ path, bytes, version }: ShardFile): Expected | undefined {
  return isRemote(path) ? { size: bytes, version } : undefined;
}

/** Reads shards: here, or by threads where each read takes a while. The files used last stay open. */
export class ShardReads {
  /** Shards lie where each request takes a while. */
  readonly isRemote: boolean;
  readonly #files: readonly ShardFile[];
  readonly #sources: Recent<number, Source>;
  /** How long the quickest of the first openings took, of how many. */
  #quickestOpenMs = Number.POSITIVE_INFINITY;
  #opens = 0;
  /** Of those that are needed: shards lie here or there. */
  #remote: RemoteThreads | null = null;
  #slow: LocalThreads | null = null;
  #inFlight: ReadsInFlight | null = null;
  /** Of remote shards, those that were read first. */
  readonly #versions = new Map<number, string>();
  #closed = false;

  constructor(files: readonly ShardFile[]) {
    this.#files = files;
    this.isRemote = files.some(({ path }) => isRemote(path));
    this.#sources = new Recent(
      OPEN_FILES,
      (shard) => this.#open(files[shard]!),
      (source) => source.close(),
    );
  }

  /** Each read takes a while, on this machine or elsewhere: many are worth having under way, and bytes are worth choosing. */
  get isSlow(): boolean {
    return this.isRemote || this.#isSlow;
  }

  /** What reads cost here. */
  get costs(): ReadCosts {
    if (this.isRemote) return REMOTE;
    return this.#isSlow ? SLOW : LOCAL;
  }

  /** Reads that are worth having under way now. */
  get parallel(): number {
    return this.isSlow ? this.#flight.limit : LOCAL.parallel;
  }

  /** What came from afar so far; null where nothing does. */
  get fetched(): StorageCounts | null {
    return this.isRemote ? (this.#remote?.counts ?? { requests: 0, bytes: 0, retries: 0, hedges: 0 }) : null;
  }

  get #isSlow(): boolean {
    return this.#opens >= OPENS_MEASURED && this.#quickestOpenMs > SLOW_OPEN_MS;
  }

  get #flight(): ReadsInFlight {
    this.#inFlight ??= new ReadsInFlight(this.isRemote ? START_READS : SLOW_START_READS, this.costs.parallel);
    return this.#inFlight;
  }

  /** A loader is going to read: finds out whether the shards are far, by opening some where they are on this machine. */
  async measure(): Promise<void> {
    if (this.isRemote) {
      this.#remoteThreads().start();
      return;
    }
    for (let shard = 0; shard < Math.min(OPENS_MEASURED, this.#files.length); shard++) {
      await this.#sources.get(shard).catch(() => {});
    }
    // One of few files is opened again.
    while (this.#opens > 0 && this.#opens < OPENS_MEASURED) {
      await this.#open(this.#files[0]!).then((source) => source.close());
    }
    for (let more = 0; more < DOUBTFUL_OPENS && this.#isSlow && this.#quickestOpenMs < DOUBTFUL_OPEN_MS; more++) {
      await this.#open(this.#files[0]!).then((source) => source.close());
    }
    // Threads read files as they are.
    if (this.#isSlow && this.#files.some(({ open }) => open === undefined)) this.#slowThreads().start();
  }

  async #open(file: ShardFile): Promise<Source> {
    const began = performance.now();
    const source = await (file.open?.() ?? openSource(file.path, expectedOf(file), file.storage));
    this.#quickestOpenMs = Math.min(this.#quickestOpenMs, performance.now() - began);
    this.#opens++;
    return source;
  }

  /** Reads whole files beside shards, where that is not to be this thread. */
  get readFile(): ReadFile | undefined {
    return this.#isSlow ? (path) => this.#slowThreads().readFile(path) : undefined;
  }

  /** Fills `target` from `offset` on. Throws {@link ShardLengthError}, FileChangedError, {@link FileError}, {@link DatasetClosedError}. */
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

  async #readPiece(shard: number, offset: number, target: Uint8Array): Promise<void> {
    if (!this.isSlow) return this.#readFrom(shard, offset, target);
    return this.#flight.run(target.length, () => this.#readFrom(shard, offset, target));
  }

  /** Into shared memory by threads, where that is slow work; else here. */
  async #readBytes(shard: number, offset: number, target: Uint8Array): Promise<number> {
    const file = this.#files[shard]!;
    if (!this.isSlow || file.open !== undefined || !(target.buffer instanceof SharedArrayBuffer)) {
      const source = await this.#sources.get(shard);
      const got = await source.readAt(offset, target);
      if (this.isRemote) this.#checkVersion(shard, source.version);
      return got;
    }
    if (!this.isRemote) return (await this.#slowThreads().read(file.path, offset, target)).got;
    const expected = { ...expectedOf(file), version: this.#versions.get(shard) ?? file.version };
    const place = { location: file.path, expected, options: file.storage };
    const { got, version } = await this.#remoteThreads().read(place, offset, target);
    this.#checkVersion(shard, version);
    return got;
  }

  #remoteThreads(): RemoteThreads {
    this.#remote ??= new RemoteThreads({ most: REMOTE_THREADS, each: READS_A_THREAD });
    return this.#remote;
  }

  #slowThreads(): LocalThreads {
    const each = Math.max(1, Math.min(READS_A_THREAD, Math.round(THREAD_START_MS / this.#quickestOpenMs)));
    const opens = Math.max(1, Math.round(HANDED_MS / this.#quickestOpenMs));
    this.#slow ??= new LocalThreads({ most: SLOW_THREADS, each, growMs: THREAD_GROW_MS, opens, opensApart: true });
    return this.#slow;
  }

  /** Each thread knows the files that it has opened last; all of them have to read the same ones. */
  #checkVersion(shard: number, version: string | undefined): void {
    if (version === undefined) return;
    const known = this.#versions.get(shard) ?? this.#files[shard]!.version;
    if (known === undefined) this.#versions.set(shard, version);
    else if (known !== version) {
      const { name, path } = this.#files[shard]!;
      throw new FileChangedError(
        { shard: name, path: shownLocation(path) },
        `${shownLocation(path)} has changed: it was replaced since it was first read. Open the dataset again, or restore the file.`,
      );
    }
  }

  async #readFrom(shard: number, offset: number, target: Uint8Array): Promise<void> {
    const { name, path } = this.#files[shard]!;
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
      throw new ShardLengthError(
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
    await Promise.all([this.#sources.clear(), this.#remote?.close(), this.#slow?.close()]);
  }
}
