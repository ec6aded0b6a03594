import { closeSync, openSync } from 'node:fs';
import {
  FileChangedError,
  FileError,
  FileNotFoundError,
  inLanes,
  openErrorOf,
  openFileLimit,
  ReadsInFlight,
  Recent,
  reasonOf,
  ShardtoolError,
} from '@shardtool/base';
import { openSource, type Source } from '@shardtool/format';
import {
  type Expected,
  isRemote,
  LocalThreads,
  RemoteThreads,
  type StorageCounts,
  shownLocation,
} from '@shardtool/storage';
import { DETECTION, LOCAL, READING_THREADS, REMOTE, type ReadProfile, SLOW } from './read-profiles.js';
import type { ReadFile, ShardFile } from './shard-file.js';
import { shardTooShort } from './shard-length-error.js';
import type { ReadingCosts } from './shard-store.js';

/** A dataset was closed while something was being read from it. */
export class DatasetClosedError extends ShardtoolError {
  static override readonly kind: string = 'DatasetClosedError';
}

/** Classes of errors that tell a caller more than that a shard cannot be read. */
const KEPT: readonly (typeof FileError)[] = [FileNotFoundError, FileChangedError];

/** Whether other threads can write the memory. Browsers lack the class on most pages. */
function isShared({ buffer }: Uint8Array): boolean {
  return typeof SharedArrayBuffer !== 'undefined' && buffer instanceof SharedArrayBuffer;
}

/** Number of open files. They are few and large. This stays far below the usual limit of 1,024. */
const OPEN_FILES = 128;
/** The part of the limit of the process that they may be. */
const PART_OF_LIMIT = 1 / 8;

/** Returns the size and version of a remote file from the manifest, so that no request is needed. */
function expectedOf({ path, bytes, version }: ShardFile): Expected | undefined {
  return isRemote(path) ? { size: bytes, version } : undefined;
}

/** Reads shards: in this thread, or in reading threads if storage is slow or remote. Recently used files stay open. */
export class ShardReads implements ReadingCosts {
  /** True if a shard is on a server or in a bucket. */
  readonly isRemote: boolean;
  readonly #files: readonly ShardFile[];
  readonly #sources: Recent<number, Source>;
  /** Time of the fastest open so far, and number of opens. */
  #fastestOpenMs = Number.POSITIVE_INFINITY;
  #opens = 0;
  /** Threads are started when they are first needed. */
  #remote: RemoteThreads | null = null;
  #slow: LocalThreads | null = null;
  #inFlight: ReadsInFlight | null = null;
  /** By shard: the version of a remote file when it was first read. */
  readonly #versions = new Map<number, string>();
  #closed = false;

  constructor(files: readonly ShardFile[]) {
    this.#files = files;
    this.isRemote = files.some(({ path }) => isRemote(path));
    this.#sources = new Recent(
      Math.min(OPEN_FILES, Math.ceil(openFileLimit() * PART_OF_LIMIT)),
      async (shard) => {
        // A source that is opened after close() would never be closed.
        this.throwIfClosed();
        return this.#open(files[shard]!);
      },
      (source) => source.close(),
    );
  }

  /** True if storage is slow or remote: see {@link ReadProfile.isSlow}. */
  get isSlow(): boolean {
    return this.profile.isSlow;
  }

  get profile(): ReadProfile {
    if (this.isRemote) return REMOTE;
    return this.#opens >= DETECTION.opens && this.#fastestOpenMs > DETECTION.slowOpenMs ? SLOW : LOCAL;
  }

  get parallel(): number {
    return this.isSlow ? this.#flight.limit : LOCAL.parallel;
  }

  /** Counts of what was fetched from remote storage so far. Null if all shards are local. */
  get fetched(): StorageCounts | null {
    return this.isRemote ? (this.#remote?.counts ?? { requests: 0, bytes: 0, retries: 0, hedges: 0 }) : null;
  }

  get #flight(): ReadsInFlight {
    this.#inFlight ??= new ReadsInFlight(this.profile.startReads, this.profile.parallel);
    return this.#inFlight;
  }

  /**
   * Prepares for a loader: starts threads for remote reads, or opens some files to detect a slow file system. Throws
   * {@link DatasetClosedError}.
   */
  async measure(): Promise<void> {
    if (this.isRemote) {
      this.#remoteThreads().start();
      return;
    }
    for (let shard = 0; shard < Math.min(DETECTION.opens, this.#files.length); shard++) {
      await this.#sources.get(shard).catch(() => {});
    }
    // If a dataset has few files, one of them is opened again.
    while (this.#opens > 0 && this.#opens < DETECTION.opens) {
      await this.#open(this.#files[0]!).then((source) => source.close());
    }
    if (this.isSlow) this.#confirmSlow();
    // Threads cannot read files that need their own kind of source.
    if (this.isSlow && this.#files.some(({ open }) => open === undefined)) this.#slowThreads().start();
  }

  /**
   * Opens a file in this thread until one open is fast. An asynchronous open also waits for libuv's threads and for the event loop:
   * on a busy machine, a local disk looks slow.
   */
  #confirmSlow(): void {
    const file = this.#files.find(({ open }) => open === undefined);
    if (file === undefined) return;
    for (let opens = 0; opens < DETECTION.confirmingOpens && this.isSlow; opens++) {
      const began = performance.now();
      try {
        closeSync(openSync(file.path, 'r'));
      } catch {
        // The read reports it.
        return;
      }
      this.#fastestOpenMs = Math.min(this.#fastestOpenMs, performance.now() - began);
      if (opens + 1 >= DETECTION.opens && this.#fastestOpenMs > DETECTION.certainOpenMs) return;
    }
  }

  async #open(file: ShardFile): Promise<Source> {
    const began = performance.now();
    const source = await (file.open?.() ?? openSource(file.path, expectedOf(file), file.storage));
    this.#fastestOpenMs = Math.min(this.#fastestOpenMs, performance.now() - began);
    this.#opens++;
    return source;
  }

  /** Reads whole files next to shards in threads. Undefined: this thread reads them. */
  get readFile(): ReadFile | undefined {
    return this.profile === SLOW ? (path) => this.#slowThreads().readFile(path) : undefined;
  }

  /**
   * Fills `target` from `offset` on. After an error, no read is in progress. Throws ShardLengthError,
   * FileChangedError, {@link FileError}, {@link DatasetClosedError}.
   */
  async read(shard: number, offset: number, target: Uint8Array): Promise<void> {
    this.throwIfClosed();
    const { maxReadBytes } = this.profile;
    if (target.length <= maxReadBytes) return this.#readPiece(shard, offset, target);
    const starts = Array.from({ length: Math.ceil(target.length / maxReadBytes) }, (_, i) => i * maxReadBytes);
    await inLanes(starts, starts.length, (at) =>
      this.#readPiece(shard, offset + at, target.subarray(at, at + maxReadBytes)),
    );
  }

  async #readPiece(shard: number, offset: number, target: Uint8Array): Promise<void> {
    if (!this.isSlow) return this.#readFrom(shard, offset, target);
    return this.#flight.run(target.length, () => this.#readFrom(shard, offset, target));
  }

  /** Threads read slow and remote shards, into shared memory only; this thread reads everything else. */
  async #readBytes(shard: number, offset: number, target: Uint8Array): Promise<number> {
    const file = this.#files[shard]!;
    if (!this.isSlow || file.open !== undefined || !isShared(target)) {
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

  /** Throws if the dataset is closed: nothing would end the threads. */
  #remoteThreads(): RemoteThreads {
    this.throwIfClosed();
    this.#remote ??= new RemoteThreads({ most: READING_THREADS.remote, each: READING_THREADS.turnsPerThread });
    return this.#remote;
  }

  /** Throws if the dataset is closed: nothing would end the threads. */
  #slowThreads(): LocalThreads {
    this.throwIfClosed();
    const { slow, readsPerThread, startMs, handedMs, growMs } = READING_THREADS;
    const each = Math.max(1, Math.min(readsPerThread, Math.round(startMs / this.#fastestOpenMs)));
    const opens = Math.max(1, Math.round(handedMs / this.#fastestOpenMs));
    this.#slow ??= new LocalThreads({ most: slow, each, growMs, opens, opensApart: true });
    return this.#slow;
  }

  /** Threads open remote files separately: all of them have to read the same version. */
  #checkVersion(shard: number, version: string | undefined): void {
    if (version === undefined) return;
    const known = this.#versions.get(shard) ?? this.#files[shard]!.version;
    if (known === undefined) this.#versions.set(shard, version);
    else if (known !== version) {
      const { name, path } = this.#files[shard]!;
      throw new FileChangedError(
        { shard: name, path: shownLocation(path) },
        `${shownLocation(path)} has changed: it has been replaced since it was first read. Open the dataset again, or restore the file.`,
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
      const shown = shownLocation(path);
      // The message of such an error is a sentence that names the file.
      const isSaid = cause instanceof FileError && cause.message.startsWith(shown);
      const message = isSaid ? cause.message : `${shown} cannot be read at byte ${offset}: ${reasonOf(cause)}.`;
      const Kind = KEPT.find((kind) => cause instanceof kind) ?? openErrorOf(cause);
      throw new Kind({ shard: name, path: shown, offset }, message, { cause });
    }
    if (got < target.length) {
      throw shardTooShort({ name, path: shownLocation(path) }, offset + got, offset + target.length);
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

  /** Closes the files after the reads in progress have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#sources.clear(), this.#remote?.close(), this.#slow?.close()]);
  }
}
