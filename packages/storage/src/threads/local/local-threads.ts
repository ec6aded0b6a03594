import { close } from 'node:fs';
import { promisify } from 'node:util';
import type { LocalCall, OpenedFile, ReadBytes, ReadValue } from '../calls.js';
import { type OpenCall, ReadingThread, readingHasEnded, threadEnded } from '../reading-thread.js';
import { OpenFiles } from './open-files.js';
import { OpenerEndedError } from './opener/child.js';
import { Opener } from './opener/opener.js';

/** So many files stay open for all threads: one for each stream of a usual order, and far fewer than a process may have. */
const OPEN_FILES = 512;
/** However many datasets share those, and the threads. */
const LEAST_OPEN_FILES = 16;
const LEAST_THREADS = 4;
/** So many reads of open files take a thread no longer than one, since it announces all of them before it waits. */
const READS_TOGETHER = 4;

const closeFile = promisify(close);
/** What scripts/bundle.mjs makes of local-thread.ts. */
const SCRIPT = new URL('./local-thread.cjs', import.meta.url);

/** Each dataset of a mixture has some, and the system lets a process have so many files and threads. */
const everyones = new Set<LocalThreads>();

/** How many threads read, and when there is another one. */
export interface LocalThreadsOptions {
  /** All that are open together share these. */
  readonly most: number;
  /** So many reads wait for each thread before there is another one: starting one takes as long. */
  readonly each: number;
  /** Where all have something to do for so long, in milliseconds, there is another one, too. */
  readonly growMs?: number;
  /** One thread is to open so many files in a row: as many as take longer than it takes to ask for them. Default: 1. */
  readonly opens?: number;
  /** Whether a process of its own opens files, where it can be had. */
  readonly opensApart?: boolean;
}

type Call = OpenCall<LocalCall>;

/** Threads that read files of this machine into shared memory, where each call takes a while. They start when they are needed. */
export class LocalThreads {
  readonly #options: LocalThreadsOptions;
  readonly #threads: ReadingThread<LocalCall>[] = [];
  readonly #files = new OpenFiles({
    most: () => Math.max(LEAST_OPEN_FILES, Math.floor(OPEN_FILES / everyones.size)),
    open: async (path) => (await this.#open(path)).file,
    close: closeFile,
  });
  /** Opens files, where somebody else than the threads is to do it and can. */
  #opener: Opener | null = null;
  /** Calls that no thread has yet. */
  readonly #soon: Call[] = [];
  /** Files that are to be read as a whole, which are indexes, and of samples that come later. */
  readonly #later: Call[] = [];
  /** Since when no thread was idle, as far as anybody looked. */
  #busySince = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: LocalThreadsOptions) {
    this.#options = options;
    if (options.opensApart) this.#opener = Opener.get();
    everyones.add(this);
    for (const one of everyones) one.#files.closeOldest();
  }

  /** Starts a thread before there is anything to read: loading what it needs takes a while. */
  start(): void {
    if (this.#threads.length === 0 && !this.#closed) this.#start();
  }

  /** Fills `target`, which lies in shared memory, as far as there are bytes. */
  read(path: string, offset: number, target: Uint8Array): Promise<ReadBytes> {
    return this.#files.use(path, async (file) => {
      return (await this.#ask({ kind: 'read', location: path, file, offset, target })) as ReadBytes;
    });
  }

  /** All of a file. */
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

  /** Calls that are under way are waited for: what they have opened has to be closed. */
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

  /** Null where no other process opens files: threads do it then. */
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

  /** Gives calls to threads that have nothing to do. */
  #handOut(): void {
    const idle = this.#threads.filter(({ isReady, open }) => isReady && open === 0);
    for (let left = idle.length; left > 0 && this.#queued > 0; left--) {
      idle[left - 1]!.give(this.#takeSome(Math.ceil(this.#queued / left)));
    }
    for (const thread of this.#threads) if (!thread.isReady) thread.isAwaited(this.#queued > 0);
  }

  /** The next calls for one thread, `most` at most. */
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
    // Where others open files, a thread has reads alone.
    const calls = this.#opener === null ? each : each * READS_TOGETHER;
    if (given + this.#queued >= calls * threads.length) return true;
    const now = performance.now();
    // Those that start have nothing to do yet.
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
        // Nobody else does what no thread has yet.
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
