import { close } from 'node:fs';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { FileError } from '../errors.js';
import { tellRetry } from '../http/retry.js';
import { optionsOf } from '../schemes.js';
import type { Expected, Retry, StorageCounts, StorageOptions } from '../storage.js';
import { type Failed, revived } from './failed.js';
import { OpenFiles } from './open-files.js';
import { OpenerEndedError } from './opener/child.js';
import { Opener } from './opener/opener.js';

/** Of servers' files, each thread knows so many. */
export const OPEN_SOURCES = 16;
/** Of this machine's files so many stay open for all threads: one for each stream of a usual order, and far fewer than a process may have. */
const OPEN_FILES = 512;
/** However many datasets share those, and the threads. */
const LEAST_OPEN_FILES = 16;
const LEAST_THREADS = 4;
/** So many reads of open files take a thread no longer than one, since it announces all of them before it waits. */
const READS_TOGETHER = 4;

interface Asked {
  readonly id: number;
  readonly location: string;
}

/** What a thread is asked for. Targets lie in shared memory. */
export type ReadRequest =
  | (Asked & {
      readonly kind: 'fetch';
      readonly expected: Expected | undefined;
      readonly options: StorageOptions;
      readonly offset: number;
      readonly target: Uint8Array;
    })
  /** All of a file of a server, in memory of its own. */
  | (Asked & { readonly kind: 'whole'; readonly options: StorageOptions })
  /** A file of this machine. */
  | (Asked & { readonly kind: 'open' })
  /** Of an open file of this machine. */
  | (Asked & { readonly kind: 'read'; readonly file: number; readonly offset: number; readonly target: Uint8Array })
  /** There is nothing more to do. */
  | { readonly kind: 'end' };

type Wanted = Exclude<ReadRequest, { kind: 'end' }>;
/** A request without its number. */
type Ask = Wanted extends infer One ? (One extends Wanted ? Omit<One, 'id'> : never) : never;

export type ReadAnswer =
  | {
      readonly kind: 'done';
      readonly id: number;
      readonly value: ReadValue;
      /** What servers were asked for meanwhile. */
      readonly counts?: StorageCounts;
    }
  | Failed
  | { readonly kind: 'retry'; readonly retry: Retry }
  /** It has loaded what it needs. */
  | { readonly kind: 'ready' };

/** What a read gave. */
export interface ReadBytes {
  readonly got: number;
  /** Of the remote file that the bytes are of. */
  readonly version?: string | undefined;
}

/** A file of this machine, by the number that all threads of the process know it by. */
export interface OpenedFile {
  readonly file: number;
  readonly size: number;
}

/** Bytes that were read into a target; those of a whole file; a file that was opened. */
export type ReadValue = ReadBytes | Uint8Array | OpenedFile;

const closeFile = promisify(close);
const REMOTE_THREAD = new URL('./remote-thread.js', import.meta.url);
/** What scripts/bundle.mjs makes of local-thread.ts. */
const LOCAL_THREAD = new URL('./local-thread.cjs', import.meta.url);

/** All that read files of this machine: each dataset of a mixture does, and the system lets a process have so many files and threads. */
const local = new Set<ReadThreads>();

/** How many threads read, and when there is another one. */
export interface ReadThreadsOptions {
  /** Whether they ask servers, where many reads of a thread are under way at once; else each call waits. */
  readonly remote: boolean;
  /** Of this machine's files all that are open together share these. */
  readonly most: number;
  /** So many reads wait for each thread before there is another one: starting one takes as long. */
  readonly each: number;
  /** Where all have something to do for so long, in milliseconds, there is another one, too. */
  readonly growMs?: number;
  /** Of this machine's files one thread is to open so many in a row: as many as take longer than it takes to ask for them. Default: 1. */
  readonly opens?: number;
  /** Whether a process of its own opens files of this machine, where it can be had. */
  readonly opensApart?: boolean;
}

interface Call {
  readonly asked: Ask;
  resolve(value: ReadValue): void;
  reject(error: Error): void;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  /** What it has read last; of servers it may still know these files. */
  readonly read: Set<string>;
  readonly waiting: Map<number, Call>;
}

/** Threads that read into shared memory. They start when they are needed, and keep a process alive only while they read. */
export class ReadThreads {
  readonly counts: StorageCounts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #options: ReadThreadsOptions;
  readonly #threads: Thread[] = [];
  readonly #files = new OpenFiles({
    most: () => Math.max(LEAST_OPEN_FILES, Math.floor(OPEN_FILES / local.size)),
    open: async (location) => (await this.#open(location)).file,
    close: closeFile,
  });
  /** Opens files of this machine, where somebody else than the threads is to do it and can. */
  #opener: Opener | null = null;
  /** Calls of this machine that no thread has yet. */
  readonly #soon: Call[] = [];
  /** Files that are to be read as a whole, which are indexes, and of samples that come later. */
  readonly #later: Call[] = [];
  #next = 0;
  /** Since when no thread was idle, as far as anybody looked. */
  #busySince = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: ReadThreadsOptions) {
    this.#options = options;
    if (options.remote) return;
    if (options.opensApart) this.#opener = Opener.get();
    local.add(this);
    for (const one of local) one.#files.closeOldest();
  }

  /** Starts a thread before there is anything to read: loading what it needs takes a while. */
  start(): void {
    if (this.#threads.length === 0 && !this.#closed) this.#start();
  }

  /** Fills `target`, which lies in shared memory, as far as there are bytes. */
  async read(location: string, expected: Expected | undefined, offset: number, target: Uint8Array): Promise<ReadBytes> {
    if (this.#options.remote) {
      const options = optionsOf(location);
      return (await this.#ask({ kind: 'fetch', location, expected, options, offset, target })) as ReadBytes;
    }
    return this.#files.use(location, async (file) => {
      return (await this.#ask({ kind: 'read', location, file, offset, target })) as ReadBytes;
    });
  }

  /** All of a file. */
  async readFile(location: string): Promise<Uint8Array> {
    if (this.#options.remote) {
      return (await this.#ask({ kind: 'whole', location, options: optionsOf(location) })) as Uint8Array;
    }
    const whole = await this.#byOpener((opener) => opener.readFile(location));
    if (whole !== null) return whole;
    const { file, size } = (await this.#ask({ kind: 'open', location }, this.#later)) as OpenedFile;
    try {
      const target = new Uint8Array(new SharedArrayBuffer(size));
      const { got } = (await this.#ask({ kind: 'read', location, file, offset: 0, target })) as ReadBytes;
      return target.slice(0, got);
    } finally {
      await closeFile(file);
    }
  }

  async #open(location: string): Promise<OpenedFile> {
    const opened = await this.#byOpener((opener) => opener.open(location));
    return opened ?? ((await this.#ask({ kind: 'open', location })) as OpenedFile);
  }

  /** Null where no other process opens files: threads do it then. */
  async #byOpener<Result>(work: (opener: Opener) => Promise<Result>): Promise<Result | null> {
    if (this.#closed) throw new FileError({}, CLOSED);
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

  #ask(asked: Ask, queue = this.#soon): Promise<ReadValue> {
    if (this.#closed) return Promise.reject(new FileError({}, CLOSED));
    return new Promise((resolve, reject) => {
      const call = { asked, resolve, reject };
      if (this.#options.remote) this.#give(this.#threadFor(asked.location), [call]);
      else {
        queue.push(call);
        if (this.#wantsAnother()) this.#start();
        this.#handOut();
      }
    });
  }

  #give(thread: Thread, calls: readonly Call[]): void {
    const requests = calls.map((call): ReadRequest => {
      const id = this.#next++;
      thread.waiting.set(id, call);
      return { ...call.asked, id };
    });
    thread.worker.ref();
    thread.worker.postMessage(requests);
  }

  get #queued(): number {
    return this.#soon.length + this.#later.length;
  }

  /** Gives calls to threads that have nothing to do. */
  #handOut(): void {
    const idle = this.#threads.filter(({ isReady, waiting }) => isReady && waiting.size === 0);
    for (let left = idle.length; left > 0 && this.#queued > 0; left--) {
      this.#give(idle[left - 1]!, this.#takeSome(Math.ceil(this.#queued / left)));
    }
    this.#keepAlive();
  }

  /** The next calls for one thread, `most` at most. */
  #takeSome(most: number): Call[] {
    const { opens = 1 } = this.#options;
    const queue = this.#soon.length > 0 ? this.#soon : this.#later;
    const left = { read: READS_TOGETHER, open: opens };
    const end = queue.findIndex(({ asked }, at) => at === most || --left[asked.kind as 'read' | 'open'] < 0);
    return queue.splice(0, end < 0 ? queue.length : end);
  }

  /** The process lives as long as a thread has something to do, or is going to have when it is ready. */
  #keepAlive(): void {
    const isWaitedFor = this.#queued > 0;
    for (const { worker, waiting, isReady } of this.#threads) {
      if (waiting.size > 0 || (isWaitedFor && !isReady)) worker.ref();
      else worker.unref();
    }
  }

  /** Servers are not waited for. Calls of this machine are: what they have opened has to be closed. */
  async close(): Promise<void> {
    this.#closed = true;
    local.delete(this);
    for (const { reject } of this.#takeAll()) reject(new FileError({}, CLOSED));
    this.#leaveOpener();
    const threads = this.#threads.slice();
    if (this.#options.remote) await Promise.all(threads.map(({ worker }) => worker.terminate()));
    else await Promise.all(threads.map(endOf));
    await this.#files.close();
  }

  /** What no thread has yet. */
  #takeAll(): Call[] {
    return [...this.#soon.splice(0), ...this.#later.splice(0)];
  }

  /** The thread that has least to do; of those, one that has read the file. */
  #threadFor(location: string): Thread {
    if (this.#wantsAnother()) this.#start();
    const ready = this.#threads.filter(({ isReady }) => isReady);
    const among = ready.length > 0 ? ready : this.#threads;
    const least = Math.min(...among.map(({ waiting }) => waiting.size));
    const idle = among.filter(({ waiting }) => waiting.size === least);
    const thread = idle.find(({ read }) => read.has(location)) ?? idle[0]!;
    thread.read.delete(location);
    thread.read.add(location);
    for (const oldest of thread.read) {
      if (thread.read.size <= OPEN_SOURCES) break;
      thread.read.delete(oldest);
    }
    return thread;
  }

  #wantsAnother(): boolean {
    const { remote, most, each, growMs = Number.POSITIVE_INFINITY } = this.#options;
    const threads = this.#threads;
    if (threads.length === 0) return true;
    const share = remote ? most : Math.max(Math.min(most, LEAST_THREADS), Math.floor(most / local.size));
    if (threads.length >= share) return false;
    const given = threads.reduce((sum, thread) => sum + thread.waiting.size, 0);
    // Where others open files, a thread has reads alone.
    const calls = this.#opener === null ? each : each * READS_TOGETHER;
    if (given + this.#queued >= calls * threads.length) return true;
    const now = performance.now();
    // Those that start have nothing to do yet.
    const isBusy = threads.every((thread) => thread.waiting.size > 0);
    this.#busySince = isBusy ? Math.min(this.#busySince, now) : Number.POSITIVE_INFINITY;
    if (now - this.#busySince < growMs || !isBusy) return false;
    this.#busySince = Number.POSITIVE_INFINITY;
    return true;
  }

  #start(): Thread {
    const worker = new Worker(this.#options.remote ? REMOTE_THREAD : LOCAL_THREAD, {
      name: 'shardtool-read',
      execArgv: [],
      // What a thread opens is everybody's, also when it ends.
      trackUnmanagedFds: false,
    });
    const thread: Thread = { worker, isReady: false, read: new Set(), waiting: new Map() };
    this.#threads.push(thread);
    worker.on('message', (answer: ReadAnswer) => this.#hear(thread, answer));
    // Whoever listens keeps the process alive, so this comes behind it.
    worker.unref();
    const end = (why: string): void => {
      const at = this.#threads.indexOf(thread);
      if (at >= 0) this.#threads.splice(at, 1);
      const message = this.#closed ? CLOSED : `A thread that reads ${why}.`;
      // Where nobody else is there, nobody does what no thread has yet.
      const lost = [...thread.waiting.values(), ...(this.#threads.length === 0 ? this.#takeAll() : [])];
      thread.waiting.clear();
      for (const { reject } of lost) reject(new FileError({}, message));
    };
    worker.on('error', (error) => end(`failed (${(error as Error).message})`));
    worker.on('exit', (code) => end(`ended with exit code ${code}`));
    return thread;
  }

  #hear(thread: Thread, answer: ReadAnswer): void {
    if (answer.kind === 'ready') {
      thread.isReady = true;
      this.#handOut();
      return;
    }
    if (answer.kind === 'retry') {
      tellRetry(answer.retry);
      return;
    }
    const call = thread.waiting.get(answer.id);
    thread.waiting.delete(answer.id);
    if (answer.kind === 'failed') call?.reject(revived(answer));
    else {
      if (answer.counts !== undefined) this.#count(answer.counts);
      call?.resolve(answer.value);
    }
    this.#handOut();
  }

  #count({ requests, bytes, retries, hedges }: StorageCounts): void {
    this.counts.requests += requests;
    this.counts.bytes += bytes;
    this.counts.retries += retries;
    this.counts.hedges += hedges;
  }
}

const CLOSED = 'Reading has ended: the dataset was closed.';

/** Resolves when a thread has done all that it was asked for, and has ended. */
function endOf({ worker }: Thread): Promise<unknown> {
  worker.ref();
  worker.postMessage([{ kind: 'end' }] satisfies ReadRequest[]);
  return new Promise((resolve) => worker.once('exit', resolve));
}
