import { turnOf } from '@shardtool/base';
import type { Expected, StorageCounts, StorageOptions } from '../../storage.js';
import { OPEN_SOURCES, type ReadBytes, type ReadValue, type RemoteCall } from '../calls.js';
import { ReadingThread, readingHasEnded, threadEnded } from '../reading-thread.js';

/** The output of scripts/bundle.mjs for remote-thread.ts. */
const SCRIPT = new URL('./remote-thread.cjs', import.meta.url);

export interface RemoteThreadsOptions {
  /** Maximum number of threads. */
  readonly most: number;
  /** Turns of concurrent reads per thread (see {@link turnOf}) before another thread is started. */
  readonly each: number;
}

/** A remote file, and the options for requesting it. */
export interface RemotePlace {
  readonly location: string;
  readonly expected: Expected | undefined;
  readonly options: StorageOptions | undefined;
}

type Thread = ReadingThread<RemoteCall>;

/** Threads that read remote files into shared memory, many at a time per thread. They are started when they are needed. */
export class RemoteThreads {
  readonly counts: StorageCounts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };
  readonly #options: RemoteThreadsOptions;
  /** Each thread with the files that it has read last: it may still have them open. */
  readonly #threads = new Map<Thread, Set<string>>();
  /** Turns of all reads that have not ended. */
  #turns = 0;
  #closed = false;

  constructor(options: RemoteThreadsOptions) {
    this.#options = options;
  }

  /** Starts a thread before the first read, because loading its code takes time. */
  start(): void {
    if (this.#threads.size === 0 && !this.#closed) this.#start();
  }

  /** Fills `target`, which is in shared memory, up to the end of the file. */
  async read(
    { location, expected, options = {} }: RemotePlace,
    offset: number,
    target: Uint8Array,
  ): Promise<ReadBytes> {
    return (await this.#ask({ location, expected, options, offset, target })) as ReadBytes;
  }

  /** Ends all threads without waiting for servers. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#threads.keys(), (thread) => thread.terminate()));
  }

  #ask(asked: RemoteCall): Promise<ReadValue> {
    if (this.#closed) return Promise.reject(readingHasEnded());
    const thread = this.#threadFor(asked.location);
    const turn = turnOf(asked.target.length);
    this.#turns += turn;
    return new Promise<ReadValue>((resolve, reject) => thread.give([{ asked, resolve, reject }])).finally(() => {
      this.#turns -= turn;
    });
  }

  /** Returns the thread with the fewest open calls. Among several, it prefers one that has read the file. */
  #threadFor(location: string): Thread {
    if (this.#wantsAnother()) this.#start();
    const threads = [...this.#threads.keys()];
    const ready = threads.filter(({ isReady }) => isReady);
    const among = ready.length > 0 ? ready : threads;
    const least = Math.min(...among.map(({ open }) => open));
    const idle = among.filter(({ open }) => open === least);
    const thread = idle.find((one) => this.#threads.get(one)!.has(location)) ?? idle[0]!;
    const read = this.#threads.get(thread)!;
    read.delete(location);
    read.add(location);
    for (const oldest of read) {
      if (read.size <= OPEN_SOURCES) break;
      read.delete(oldest);
    }
    return thread;
  }

  #wantsAnother(): boolean {
    const { most, each } = this.#options;
    const { size } = this.#threads;
    return size < most && this.#turns >= each * size;
  }

  #start(): void {
    const thread: Thread = new ReadingThread(SCRIPT, {
      free: () => undefined,
      counted: (counts) => this.#count(counts),
      ended: (how) => {
        this.#threads.delete(thread);
        return this.#closed ? readingHasEnded() : threadEnded(how);
      },
    });
    this.#threads.set(thread, new Set());
  }

  #count({ requests, bytes, retries, hedges }: StorageCounts): void {
    this.counts.requests += requests;
    this.counts.bytes += bytes;
    this.counts.retries += retries;
    this.counts.hedges += hedges;
  }
}
