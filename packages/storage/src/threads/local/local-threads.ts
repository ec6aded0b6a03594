import { close } from 'node:fs';
import { promisify } from 'node:util';
import type { LocalCall, OpenedFile, ReadBytes, ReadValue } from '../calls.js';
import { type OpenCall, ReadingThread, readingHasEnded, threadEnded } from '../reading-thread.js';
import { OpenFiles } from './open-files.js';
import { OpenerEndedError } from './opener/child.js';
import { Opener } from './opener/opener.js';

/**
 * Number of files that stay open for all threads together: one per stream of a typical order, and far fewer than the
 * limit of a process.
 */
const OPEN_FILES = 512;
/** Minimum number of open files and of threads per dataset, however many datasets are open. */
const LEAST_OPEN_FILES = 16;
const LEAST_THREADS = 4;
/**
 * A thread takes up to this many reads of open files at a time. It announces all of them before it waits, so they take
 * no longer than one.
 */
const READS_TOGETHER = 4;

const closeFile = promisify(close);
/** The output of scripts/bundle.mjs for local-thread.ts. */
const SCRIPT = new URL('./local-thread.cjs', import.meta.url);

/** All instances: each dataset of a mixture has its own, and together they must respect the limits of the process. */
const everyones = new Set<LocalThreads>();

/** Limits for the number of threads, and when another thread is started. */
export interface LocalThreadsOptions {
  /** Maximum number of threads of all instances together. */
  readonly most: number;
  /**
   * Number of waiting reads per thread at which another thread is started. Starting a thread takes as long as this many
   * reads.
   */
  readonly each: number;
  /** If all threads are busy for this many milliseconds, another thread is started as well. */
  readonly growMs?: number;
  /**
   * Number of files that a thread opens one after the other per message: enough to outlast sending the message.
   * Default: 1.
   */
  readonly opens?: number;
  /** True if a separate process should open files, on systems that allow it. */
  readonly opensApart?: boolean;
}

type Call = OpenCall<LocalCall>;

/**
 * Threads that read local files into shared memory, for file systems on which each call takes time. They are started
 * when they are needed.
 */
export class LocalThreads {
  readonly #options: LocalThreadsOptions;
  readonly #threads: ReadingThread<LocalCall>[] = [];
  readonly #files = new OpenFiles({
    most: () => Math.max(LEAST_OPEN_FILES, Math.floor(OPEN_FILES / everyones.size)),
    open: async (path) => (await this.#open(path)).file,
    close: closeFile,
  });
  /** The process that opens files, or null if the threads open them. */
  #opener: Opener | null = null;
  /** Calls that have not been given to a thread yet. */
  readonly #soon: Call[] = [];
  /**
   * Calls with lower priority: files that are read as a whole, which are the indexes, for samples that are needed
   * later.
   */
  readonly #later: Call[] = [];
  /** Time at which all threads were first seen busy. */
  #busySince = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: LocalThreadsOptions) {
    this.#options = options;
    if (options.opensApart) this.#opener = Opener.get();
    everyones.add(this);
    for (const one of everyones) one.#files.closeOldest();
  }

  /** Starts a thread before the first read, because loading its code takes time. */
  start(): void {
    if (this.#threads.length === 0 && !this.#closed) this.#start();
  }

  /** Fills `target`, which is in shared memory, up to the end of the file. */
  read(path: string, offset: number, target: Uint8Array): Promise<ReadBytes> {
    return this.#files.use(path, async (file) => {
      return (await this.#ask({ kind: 'read', location: path, file, offset, target })) as ReadBytes;
    });
  }

  /** Returns all bytes of a file. */
  async readFile(path: string): Promise<Uint8Array> {
    const whole = await this.#byOpener((opener) => opener.readFile(path));
    if (whole !== null) return whole;
    const { file, size } = (await this.#ask({ kind: 'open', location: path }, this.#later)) as OpenedFile;
    try {
      const target = new Uint8Array(new SharedArrayBuffer(size));
      const { got } = (await this.#ask({ kind: 'read', location: path, file, offset: 0, target })) as ReadBytes;
      return target.slice(0, got);
    } finally {
      await closeFile(file);
    }
  }

  /** Waits for calls in progress, because files that they open have to be closed. */
  async close(): Promise<void> {
    this.#closed = true;
    everyones.delete(this);
    this.#rejectQueued(readingHasEnded());
    this.#leaveOpener();
    await Promise.all(this.#threads.map((thread) => thread.end()));
    await this.#files.close();
  }

  async #open(path: string): Promise<OpenedFile> {
    const opened = await this.#byOpener((opener) => opener.open(path));
    return opened ?? ((await this.#ask({ kind: 'open', location: path })) as OpenedFile);
  }

  /** Returns null if no other process opens files, so that the threads have to do it. */
  async #byOpener<Result>(work: (opener: Opener) => Promise<Result>): Promise<Result | null> {
    if (this.#closed) throw readingHasEnded();
    if (this.#opener === null) return null;
    try {
      return await work(this.#opener);
    } catch (error) {
      if (!(error instanceof OpenerEndedError)) throw error;
      this.#leaveOpener();
      return null;
    }
  }

  #leaveOpener(): void {
    this.#opener?.release();
    this.#opener = null;
  }

  #ask(asked: LocalCall, queue = this.#soon): Promise<ReadValue> {
    if (this.#closed) return Promise.reject(readingHasEnded());
    return new Promise((resolve, reject) => {
      queue.push({ asked, resolve, reject });
      if (this.#wantsAnother()) this.#start();
      this.#handOut();
    });
  }

  get #queued(): number {
    return this.#soon.length + this.#later.length;
  }

  /** Gives calls to idle threads. */
  #handOut(): void {
    const idle = this.#threads.filter(({ isReady, open }) => isReady && open === 0);
    for (let left = idle.length; left > 0 && this.#queued > 0; left--) {
      idle[left - 1]!.give(this.#takeSome(Math.ceil(this.#queued / left)));
    }
    for (const thread of this.#threads) if (!thread.isReady) thread.isAwaited(this.#queued > 0);
  }

  /** Removes the next calls for one thread from the queue, at most `most`. */
  #takeSome(most: number): Call[] {
    const { opens = 1 } = this.#options;
    const queue = this.#soon.length > 0 ? this.#soon : this.#later;
    const left = { read: READS_TOGETHER, open: opens };
    const end = queue.findIndex(({ asked }, at) => at === most || --left[asked.kind] < 0);
    return queue.splice(0, end < 0 ? queue.length : end);
  }

  #wantsAnother(): boolean {
    const { most, each, growMs = Number.POSITIVE_INFINITY } = this.#options;
    const threads = this.#threads;
    if (threads.length === 0) return true;
    if (threads.length >= Math.max(Math.min(most, LEAST_THREADS), Math.floor(most / everyones.size))) return false;
    const given = threads.reduce((sum, { open }) => sum + open, 0);
    // With an opener process, threads only get reads.
    const calls = this.#opener === null ? each : each * READS_TOGETHER;
    if (given + this.#queued >= calls * threads.length) return true;
    const now = performance.now();
    // Threads that are starting have no calls yet.
    const isBusy = threads.every(({ open }) => open > 0);
    this.#busySince = isBusy ? Math.min(this.#busySince, now) : Number.POSITIVE_INFINITY;
    if (now - this.#busySince < growMs || !isBusy) return false;
    this.#busySince = Number.POSITIVE_INFINITY;
    return true;
  }

  #start(): void {
    const thread: ReadingThread<LocalCall> = new ReadingThread(SCRIPT, {
      free: () => this.#handOut(),
      ended: (how) => {
        this.#threads.splice(this.#threads.indexOf(thread), 1);
        const error = this.#closed ? readingHasEnded() : threadEnded(how);
        // No thread is left to take the queued calls.
        if (this.#threads.length === 0) this.#rejectQueued(error);
        return error;
      },
    });
    this.#threads.push(thread);
  }

  #rejectQueued(error: Error): void {
    for (const { reject } of [...this.#soon.splice(0), ...this.#later.splice(0)]) reject(error);
  }
}
