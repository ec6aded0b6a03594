import { Worker } from 'node:worker_threads';
import { FileChangedError, FileError, NoSuchFileError, OptionError, RefusedError, ShardtoolError } from './errors.js';
import { tellRetry } from './http/retry.js';
import { optionsOf } from './schemes.js';
import type { Expected, Retry, StorageCounts, StorageOptions } from './storage.js';

export interface ReadRequest {
  readonly id: number;
  readonly location: string;
  readonly expected: Expected | undefined;
  readonly options: StorageOptions;
  readonly offset: number;
  /** In shared memory. */
  readonly target: Uint8Array;
}

export type ReadAnswer =
  | {
      readonly kind: 'read';
      readonly id: number;
      readonly got: number;
      readonly version: string | undefined;
      readonly counts: StorageCounts | null;
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
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  readonly waiting: Map<number, { resolve(read: ReadBytes): void; reject(error: Error): void }>;
}

/** Threads that read into shared memory. They start when they are needed, and keep a process alive only while they read. */
export class ReadThreads {
  readonly counts: StorageCounts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #most: number;
  /** So many reads of a thread are under way at once before there is another thread. */
  readonly #each: number;
  readonly #threads: Thread[] = [];
  #next = 0;
  #closed = false;

  constructor(most: number, each: number) {
    this.#most = most;
    this.#each = each;
  }

  /** Starts a thread before there is anything to read: loading what it needs takes a while. */
  start(): void {
    if (this.#threads.length === 0 && !this.#closed) this.#start();
  }

  /** Fills `target`, which lies in shared memory, as far as there are bytes. */
  read(location: string, expected: Expected | undefined, offset: number, target: Uint8Array): Promise<ReadBytes> {
    const thread = this.#leastBusy();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      thread.waiting.set(id, { resolve, reject });
      thread.worker.ref();
      const request: ReadRequest = { id, location, expected, options: optionsOf(location), offset, target };
      thread.worker.postMessage(request);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  #leastBusy(): Thread {
    const threads = this.#threads;
    const rising = threads.toSorted((a, b) => a.waiting.size - b.waiting.size);
    const [least] = rising;
    if (least !== undefined && (least.waiting.size < this.#each || threads.length >= this.#most)) {
      // One that has many reads under way anyway takes some more until the next one is there.
      return this.#each === 1 ? least : (rising.find(({ isReady }) => isReady) ?? least);
    }
    const started = this.#start();
    return this.#each === 1 ? started : (rising.find(({ isReady }) => isReady) ?? started);
  }

  #start(): Thread {
    const worker = new Worker(new URL('./read-thread.js', import.meta.url), {
      name: 'shardtool-read',
      execArgv: [],
      workerData: this.#each > 1 ? 'remote' : 'local',
    });
    const thread: Thread = { worker, isReady: false, waiting: new Map() };
    this.#threads.push(thread);
    worker.unref();
    worker.on('message', (answer: ReadAnswer) => this.#hear(thread, answer));
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
      waiting?.resolve({ got: answer.got, version: answer.version });
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
