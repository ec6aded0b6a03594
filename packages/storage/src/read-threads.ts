import { Worker } from 'node:worker_threads';
import { FileChangedError, FileError, NoSuchFileError, OptionError, RefusedError, ShardtoolError } from './errors.js';
import { tellRetry } from './http/retry.js';
import { optionsOf } from './schemes.js';
import type { Expected, Retry, StorageCounts, StorageOptions } from './storage.js';

/** Each thread keeps so many files open: with most threads, far fewer than a process may have. */
export const OPEN_FILES = 16;

export interface ReadRequest {
  readonly id: number;
  readonly location: string;
  readonly expected: Expected | undefined;
  readonly options: StorageOptions;
  readonly offset: number;
  /** In shared memory; null: all of the file is wanted, in memory of its own. */
  readonly target: Uint8Array | null;
}

export type ReadAnswer =
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly got: number;
      readonly version: string | undefined;
      readonly counts: StorageCounts | null;
      /** All of a file, where that was asked for. */
      readonly whole?: Uint8Array;
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
  readonly version: string | undefined;
  readonly whole?: Uint8Array | undefined;
}

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
  /** What it has read last, and may still have open. */
  readonly read: Set<string>;
  readonly waiting: Map<number, { resolve(read: ReadBytes): void; reject(error: Error): void }>;
}

/** Threads that read into shared memory. They start when they are needed, and keep a process alive only while they read. */
export class ReadThreads {
  readonly counts: StorageCounts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #options: ReadThreadsOptions;
  readonly #threads: Thread[] = [];
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
  read(location: string, expected: Expected | undefined, offset: number, target: Uint8Array): Promise<ReadBytes> {
    return this.#ask({ location, expected, offset, target });
  }

  /** All of a file. */
  async readFile(location: string): Promise<Uint8Array> {
    return (await this.#ask({ location, expected: undefined, offset: 0, target: null })).whole!;
  }

  #ask(read: Pick<ReadRequest, 'location' | 'expected' | 'offset' | 'target'>): Promise<ReadBytes> {
    const { location } = read;
    const thread = this.#threadFor(location);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      thread.waiting.set(id, { resolve, reject });
      thread.worker.ref();
      thread.worker.postMessage({ id, options: optionsOf(location), ...read } satisfies ReadRequest);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  /** The thread that has least to do; of those, the one that has the file open. */
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
      if (thread.read.size <= OPEN_FILES) break;
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
    });
    const thread: Thread = { worker, isReady: false, read: new Set(), waiting: new Map() };
    this.#threads.push(thread);
    worker.on('message', (answer: ReadAnswer) => this.#hear(thread, answer));
    // Whoever listens keeps the process alive, so this comes behind it.
    worker.unref();
    const end = (why: string): void => {
      const at = this.#threads.indexOf(thread);
      if (at >= 0) this.#threads.splice(at, 1);
      const message = this.#closed ? 'Reading has ended: the dataset was closed.' : `A thread that reads ${why}.`;
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
      if (answer.counts !== null) this.#count(answer.counts);
      waiting?.resolve({ got: answer.got, version: answer.version, whole: answer.whole });
    }
  }

  #count({ requests, bytes, retries, hedges }: StorageCounts): void {
    this.counts.requests += requests;
    this.counts.bytes += bytes;
    this.counts.retries += retries;
    this.counts.hedges += hedges;
  }
}

const KINDS = { FileError, NoSuchFileError, FileChangedError, OptionError, ShardtoolError };

/** The error that a thread threw. */
function revived({ name, message, path, offset }: Extract<ReadAnswer, { kind: 'failed' }>): Error {
  if (name === 'RefusedError') return new RefusedError({ path, offset, status: 0 }, message);
  const Kind = KINDS[name as keyof typeof KINDS] ?? FileError;
  return new Kind({ path, offset }, message);
}
