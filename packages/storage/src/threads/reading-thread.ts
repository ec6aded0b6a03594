import { Worker } from 'node:worker_threads';
import { FileError } from '@shardtool/base';
import { reportRetry } from '../http/retry.js';
import type { StorageCounts } from '../storage.js';
import { END, type ReadAnswer, type ReadValue } from './calls.js';
import { revived } from './failed.js';

/** A call that somebody waits for. */
export interface OpenCall<Call> {
  readonly asked: Call;
  resolve(value: ReadValue): void;
  reject(error: Error): void;
}

/** What whoever started a thread hears of it. */
export interface ThreadEvents {
  /** It is ready, or has answered: it may have nothing to do. */
  free(): void;
  /** What servers were asked for since the last time. */
  counted?(counts: StorageCounts): void;
  /** It has ended: how, as the end of a sentence. Returns the error of the calls that it has not answered. */
  ended(how: string): Error;
}

/** One thread that reads into shared memory. It keeps the process alive while it has calls to answer. */
export class ReadingThread<Call extends object> {
  /** It has loaded what it needs. */
  isReady = false;
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  readonly #waiting = new Map<number, OpenCall<Call>>();
  #next = 0;
  /** Somebody waits for its end, so it keeps the process alive whatever else it says. */
  #isEnding = false;
  #hasEnded = false;

  constructor(script: URL, events: ThreadEvents) {
    this.#events = events;
    this.#worker = new Worker(script, {
      name: 'shardtool-read',
      execArgv: [],
      // What a thread opens is everybody's, also when it ends.
      trackUnmanagedFds: false,
    });
    this.#worker.on('message', (answer: ReadAnswer) => this.#hear(answer));
    // Whoever listens keeps the process alive, so this comes behind it.
    this.#worker.unref();
    this.#worker.on('error', (error) => this.#lose(`failed (${(error as Error).message})`));
    this.#worker.on('exit', (code) => this.#lose(`ended with exit code ${code}`));
  }

  /** How many calls it has not answered. */
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

  /** Whether the process is to live until it is ready: there are calls for it then. */
  isAwaited(is: boolean): void {
    if (is) this.#worker.ref();
    else this.#unrefIfIdle();
  }

  /** Resolves when it has done all that it was asked for, and has ended. */
  end(): Promise<unknown> {
    this.#isEnding = true;
    this.#worker.ref();
    this.#worker.postMessage(END);
    return new Promise((resolve) => this.#worker.once('exit', resolve));
  }

  /** Waits for nothing that it does. */
  terminate(): Promise<unknown> {
    return this.#worker.terminate();
  }

  #hear(answer: ReadAnswer): void {
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

/** What a call ends with whose thread has ended. */
export function threadEnded(how: string): FileError {
  return new FileError({}, `A thread that reads ${how}.`);
}

/** What a call ends with that comes after the end, or is not done by then. */
export function readingHasEnded(): FileError {
  return new FileError({}, 'Reading has ended: the dataset was closed.');
}
