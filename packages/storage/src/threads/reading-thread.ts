import { Worker } from 'node:worker_threads';
import { FileError } from '@shardtool/base';
import { reportRetry } from '../http/retry.js';
import type { StorageCounts } from '../storage.js';
import { END, type ReadAnswer, type ReadValue } from './calls.js';
import { revived } from './failed.js';

/** A call that has not been answered. */
export interface OpenCall<Call> {
  readonly asked: Call;
  resolve(value: ReadValue): void;
  reject(error: Error): void;
}

/** Callbacks of a thread. */
export interface ThreadEvents {
  /** The thread is ready, or has answered a call: it may be idle. */
  free(): void;
  /** Receives the counts of requests since the last call. */
  counted?(counts: StorageCounts): void;
  /** Called when the thread has ended. `how` is the end of a sentence. Returns the error for calls that were not answered. */
  ended(how: string): Error;
}

/** One thread that reads into shared memory. It keeps the process alive while it has calls to answer. */
export class ReadingThread<Call extends object> {
  /** True if the thread has loaded its code. */
  isReady = false;
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  readonly #waiting = new Map<number, OpenCall<Call>>();
  #next = 0;
  /** True if a caller waits for the end of the thread: it then keeps the process alive. */
  #isEnding = false;
  #hasEnded = false;

  constructor(script: URL, events: ThreadEvents) {
    this.#events = events;
    this.#worker = new Worker(script, {
      name: 'shardtool-read',
      execArgv: [],
      // Files that a thread opens are shared, and stay open when it ends.
      trackUnmanagedFds: false,
    });
    this.#worker.on('message', (answer: ReadAnswer) => this.#receive(answer));
    // A listener for messages keeps the process alive, so `unref` follows it.
    this.#worker.unref();
    this.#worker.on('error', (error) => this.#lose(`failed (${(error as Error).message})`));
    this.#worker.on('exit', (code) => this.#lose(`ended with exit code ${code}`));
  }

  /** Number of calls that the thread has not answered. */
  get open(): number {
    return this.#waiting.size;
  }

  give(calls: readonly OpenCall<Call>[]): void {
    const requests = calls.map((call) => {
      const id = this.#next++;
      this.#waiting.set(id, call);
      return { ...call.asked, id };
    });
    this.#worker.ref();
    this.#worker.postMessage(requests);
  }

  /** With true, the process stays alive until the thread is ready, because calls wait for it. */
  isAwaited(is: boolean): void {
    if (is) this.#worker.ref();
    else this.#unrefIfIdle();
  }

  /** Resolves when the thread has answered all calls and has ended. */
  end(): Promise<unknown> {
    this.#isEnding = true;
    this.#worker.ref();
    this.#worker.postMessage(END);
    return new Promise((resolve) => this.#worker.once('exit', resolve));
  }

  /** Ends the thread without waiting for its calls. */
  terminate(): Promise<unknown> {
    return this.#worker.terminate();
  }

  #receive(answer: ReadAnswer): void {
    if (answer.kind === 'retry') {
      reportRetry(answer.retry);
      return;
    }
    if (answer.kind === 'ready') this.isReady = true;
    else {
      const call = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.kind === 'failed') call?.reject(revived(answer));
      else {
        if (answer.counts !== undefined) this.#events.counted?.(answer.counts);
        call?.resolve(answer.value);
      }
    }
    this.#unrefIfIdle();
    this.#events.free();
  }

  #unrefIfIdle(): void {
    if (this.#waiting.size === 0 && !this.#isEnding) this.#worker.unref();
  }

  #lose(how: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    const error = this.#events.ended(how);
    for (const { reject } of lost) reject(error);
  }
}

/** The error of a call whose thread has ended. */
export function threadEnded(how: string): FileError {
  return new FileError({}, `A thread that reads ${how}.`);
}

/** The error of a call that is made after the end of reading, or not answered by then. */
export function readingHasEnded(): FileError {
  return new FileError({}, 'The dataset was closed while it was being read.');
}
