import { close } from 'node:fs';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { FileChangedError, FileError, NoSuchFileError, OptionError, RefusedError, ShardtoolError } from '../errors.js';
import { tellRetry } from '../http/retry.js';
import { optionsOf } from '../schemes.js';
import type { Expected, Retry, StorageCounts, StorageOptions } from '../storage.js';
import { OpenFiles } from './open-files.js';

/** Of servers' files, each thread knows so many. */
export const OPEN_SOURCES = 16;
/** Of this machine's files so many stay open for all threads: one for each stream of a usual order, and far fewer than a process may have. */
const OPEN_FILES = 512;

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
  /** All of a file, in memory of its own. */
  | (Asked & { readonly kind: 'whole'; readonly options: StorageOptions })
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
  | {
      readonly kind: 'failed';
      readonly id: number;
      readonly name: string;
      readonly message: string;
      readonly path: string | undefined;
      readonly offset: number | undefined;
    }
  | { readonly kind: 'retry'; readonly retry: Retry }
  /** It has loaded what it needs. */
  | { readonly kind: 'ready' };

/** What a read gave. */
export interface ReadBytes {
  readonly got: number;
  /** Of the remote file that the bytes are of. */
  readonly version?: string | undefined;
}

/** Bytes that were read into a target; those of a whole file; the number of a file that was opened. */
export type ReadValue = ReadBytes | Uint8Array | number;

/** How many threads read, and when there is another one. */
export interface ReadThreadsOptions {
  /** Whether they ask servers, where many reads of a thread are under way at once; else each call waits. */
  readonly remote: boolean;
  readonly most: number;
  /** So many reads wait for each thread before there is another one: starting one takes as long. */
  readonly each: number;
  /** Where all have something to do for so long, in milliseconds, there is another one, too. */
  readonly growMs?: number;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  /** What it has read last; of servers it may still know these files. */
  readonly read: Set<string>;
  readonly waiting: Map<number, { resolve(value: ReadValue): void; reject(error: Error): void }>;
}

/** Threads that read into shared memory. They start when they are needed, and keep a process alive only while they read. */
export class ReadThreads {
  readonly counts: StorageCounts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #options: ReadThreadsOptions;
  readonly #threads: Thread[] = [];
  readonly #files = new OpenFiles({
    most: OPEN_FILES,
    open: async (location) => (await this.#ask({ kind: 'open', location })) as number,
    close: promisify(close),
  });
  #next = 0;
  /** Since when no thread was idle, as far as anybody looked. */
  #busySince = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(options: ReadThreadsOptions) {
    this.#options = options;
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
    return (await this.#ask({ kind: 'whole', location, options: optionsOf(location) })) as Uint8Array;
  }

  #ask(asked: Ask): Promise<ReadValue> {
    if (this.#closed) return Promise.reject(new FileError({}, CLOSED));
    const thread = this.#threadFor(asked.location);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      thread.waiting.set(id, { resolve, reject });
      thread.worker.ref();
      thread.worker.postMessage({ ...asked, id } satisfies ReadRequest);
    });
  }

  /** Servers are not waited for. Calls of this machine are: what they have opened has to be closed. */
  async close(): Promise<void> {
    this.#closed = true;
    const threads = this.#threads.slice();
    if (this.#options.remote) await Promise.all(threads.map(({ worker }) => worker.terminate()));
    else await Promise.all(threads.map(endOf));
    await this.#files.close();
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
    const { most, each, growMs = Number.POSITIVE_INFINITY } = this.#options;
    const threads = this.#threads;
    if (threads.length === 0) return true;
    if (threads.length >= most) return false;
    const waiting = threads.reduce((sum, thread) => sum + thread.waiting.size, 0);
    if (waiting >= each * threads.length) return true;
    const now = performance.now();
    // Those that start have nothing to do yet.
    const isBusy = threads.every((thread) => thread.waiting.size > 0);
    this.#busySince = isBusy ? Math.min(this.#busySince, now) : Number.POSITIVE_INFINITY;
    if (now - this.#busySince < growMs || !isBusy) return false;
    this.#busySince = Number.POSITIVE_INFINITY;
    return true;
  }

  #start(): Thread {
    const worker = new Worker(new URL('./read-thread.js', import.meta.url), {
      name: 'shardtool-read',
      execArgv: [],
      workerData: this.#options.remote ? 'remote' : 'local',
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
      for (const { reject } of thread.waiting.values()) reject(new FileError({}, message));
      thread.waiting.clear();
    };
    worker.on('error', (error) => end(`failed (${(error as Error).message})`));
    worker.on('exit', (code) => end(`ended with exit code ${code}`));
    return thread;
  }

  #hear(thread: Thread, answer: ReadAnswer): void {
    if (answer.kind === 'ready') {
      thread.isReady = true;
      return;
    }
    if (answer.kind === 'retry') {
      tellRetry(answer.retry);
      return;
    }
    const waiting = thread.waiting.get(answer.id);
    thread.waiting.delete(answer.id);
    if (thread.waiting.size === 0) thread.worker.unref();
    if (answer.kind === 'failed') waiting?.reject(revived(answer));
    else {
      if (answer.counts !== undefined) this.#count(answer.counts);
      waiting?.resolve(answer.value);
    }
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
  worker.postMessage({ kind: 'end' } satisfies ReadRequest);
  return new Promise((resolve) => worker.once('exit', resolve));
}

const KINDS = { FileError, NoSuchFileError, FileChangedError, OptionError, ShardtoolError };

/** The error that a thread threw. */
function revived({ name, message, path, offset }: Extract<ReadAnswer, { kind: 'failed' }>): Error {
  if (name === 'RefusedError') return new RefusedError({ path, offset, status: 0 }, message);
  const Kind = KINDS[name as keyof typeof KINDS] ?? FileError;
  return new Kind({ path, offset }, message);
}
