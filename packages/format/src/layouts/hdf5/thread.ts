import { DamagedShardError, type ErrorRecord, reviveError, WorkerThread } from '@shardtool/base';

/** A dataset as the thread lists it. */
export interface ListedDataset {
  readonly path: string;
  readonly shape: readonly number[];
  readonly kind: HdfKind;
  /** Why it cannot be read, to continue "its dataset ..."; and whether the cause is damage. */
  readonly fault: { readonly what: string; readonly isDamage: boolean } | null;
}

/** The value types of a dataset. `bytes`: uint8 of variable length. */
export type HdfKind = 'byte' | 'integer' | 'float' | 'text' | 'bytes' | 'other';

/** The numbers of all rows in sequence; or one value per row. */
export type HdfValues = ArrayLike<number | bigint> | readonly string[] | readonly Uint8Array[];

/** A request to the thread: list the datasets of a file, or read `count` rows of one from `first` on. */
export interface HdfRequest {
  readonly location: string;
  /** Absent: list all datasets of the current file. */
  readonly rows?: HdfRows;
}

interface HdfRows {
  /** The version of the file whose datasets were listed. */
  readonly version: string;
  readonly path: string;
  readonly first: number;
  readonly count: number;
}

export type HdfAnswer =
  | { readonly kind: 'listed'; readonly version: string; readonly datasets: readonly ListedDataset[] }
  | { readonly kind: 'read'; readonly values: HdfValues }
  | { readonly kind: 'failed'; readonly error: ErrorRecord };

export interface HdfThreadData {
  /** A counter of one word, which the thread increments with each read of a file. */
  readonly reads: Int32Array;
}

/** In a damaged file the library may loop forever: the thread is ended after this time without an answer or a read of the file. */
export const PATIENCE = { ms: 60_000 };
/** The thread stays for this time after the last file was closed: it takes a moment to start, and a file is often opened again soon. */
const IDLE_MS = 10_000;
const YOUNG_GENERATION_MB = 16;

/**
 * The HDF5 library in its own thread: one for all files of this process, one request at a time. Every request gets an
 * answer or an error. After a fault the thread is ended, and the next request starts another one.
 */
class HdfThread {
  #thread: WorkerThread<HdfAnswer> | null = null;
  #reads = new Int32Array(new SharedArrayBuffer(4));
  #settle: ((answer: HdfAnswer | Error) => void) | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #users = 0;
  #leaving: NodeJS.Timeout | undefined;

  /** Throws {@link DamagedShardError}, also if the thread has to be ended, UnsupportedShardError, and FileError. */
  ask(request: HdfRequest): Promise<Exclude<HdfAnswer, { kind: 'failed' }>> {
    const asked = this.#last.then(() => this.#answerTo(request));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  /** Counts an opened file. */
  use(): void {
    this.#users++;
    clearTimeout(this.#leaving);
  }

  /** Counts a closed file. If none is open for some time, the thread is ended. It does not keep the process alive. */
  leave(): void {
    this.#users--;
    if (this.#users === 0) this.#leaving = setTimeout(() => void this.#end(), IDLE_MS).unref();
  }

  async #answerTo(request: HdfRequest): Promise<Exclude<HdfAnswer, { kind: 'failed' }>> {
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const { location: shard } = request;
    thread.ref();
    let last = Atomics.load(this.#reads, 0);
    const watch = setInterval(() => {
      const reads = Atomics.load(this.#reads, 0);
      if (reads === last) {
        const message = `${shard}: the HDF5 library does not finish reading it; it is damaged: fetch or write it again.`;
        this.#settle?.(new DamagedShardError({ shard }, message));
        void this.#end();
      }
      last = reads;
    }, PATIENCE.ms);
    const answer = await new Promise<HdfAnswer | Error>((resolve) => {
      this.#settle = resolve;
      thread.post(request);
    });
    clearInterval(watch);
    this.#settle = null;
    thread.unref();
    if (answer instanceof Error) throw answer;
    if (answer.kind === 'failed') throw reviveError(answer.error);
    return answer;
  }

  #start(): WorkerThread<HdfAnswer> {
    this.#reads = new Int32Array(new SharedArrayBuffer(4));
    const thread = new WorkerThread<HdfAnswer>({
      script: new URL('./hdf5-thread.js', import.meta.url),
      workerData: { reads: this.#reads } satisfies HdfThreadData,
      name: 'HDF5 thread',
      youngGenerationMb: YOUNG_GENERATION_MB,
      onMessage: (answer) => this.#settle?.(answer),
      onEnd: (reason) => {
        if (this.#thread !== thread) return;
        this.#thread = null;
        this.#settle?.(reason);
      },
    });
    return thread;
  }

  async #end(): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    if (thread === null) return;
    thread.post(null);
    await WorkerThread.whenEnded([thread]);
  }
}

/** The thread of this process, or of the worker thread that converts. */
export const hdfThread = new HdfThread();
