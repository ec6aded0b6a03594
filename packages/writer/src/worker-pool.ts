import { Worker } from 'node:worker_threads';
import { type ErrorRecord, reviveError } from './error-record.js';
import { WorkerDiedError } from './errors.js';

/** What a worker answers to a job. */
export type Answer<Result> = { readonly result: Result } | { readonly error: ErrorRecord };

/**
 * `node --input-type=module -e ...` describes the script of the main thread, and a worker that inherits it does not
 * start. All other flags are inherited: naming them here would be an error for those that are V8's.
 */
const FLAGS = process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {};

/**
 * Of the memory for young objects, which a thread would let grow to 48 MB; a pack's are gone after each sample.
 * With a million tiny files and two workers the process is 65 MB smaller for it.
 */
const LIMITS = { maxYoungGenerationSizeMb: 12 };

/** One worker thread: does one job after the other, and fails the job that it was doing, and all later ones, when it dies. */
class PoolWorker<Job, Result> {
  readonly #thread: Worker;
  #settle: { resolve(result: Result): void; reject(error: Error): void } | undefined;
  #death: Error | undefined;
  /** Settled when the worker has done every job that it was given. */
  #free: Promise<void> = Promise.resolve();

  constructor(script: URL, workerData: unknown) {
    this.#thread = new Worker(script, { workerData, resourceLimits: LIMITS, ...FLAGS });
    this.#thread.on('message', (answer: Answer<Result>) => {
      const job = this.#settle;
      this.#settle = undefined;
      if ('error' in answer) job?.reject(reviveError(answer.error));
      else job?.resolve(answer.result);
    });
    this.#thread.on('error', (cause) => {
      this.#die(new WorkerDiedError({}, `A worker of the pack died: ${cause.message}`, { cause }));
    });
    this.#thread.on('exit', (code) => {
      this.#die(new WorkerDiedError({}, `A worker of the pack ended before its work was done (exit code ${code}).`));
    });
  }

  post(message: unknown): void {
    this.#thread.postMessage(message);
  }

  run(job: Job): Promise<Result> {
    const result = this.#free.then(() => this.#start(job));
    this.#free = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  async terminate(): Promise<void> {
    await this.#thread.terminate();
  }

  #start(job: Job): Promise<Result> {
    if (this.#death !== undefined) return Promise.reject(this.#death);
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.#thread.postMessage(job);
    });
  }

  #die(error: Error): void {
    this.#death ??= error;
    this.#settle?.reject(this.#death);
    this.#settle = undefined;
  }
}

/** A fixed number of worker threads that share out jobs. Whoever makes one closes it. */
export class WorkerPool<Job, Result> {
  readonly #workers: readonly PoolWorker<Job, Result>[];

  /** Starts `size` threads on `script`; thread i gets `dataOf(i)` as its workerData. */
  constructor(script: URL, size: number, dataOf: (worker: number) => unknown) {
    this.#workers = Array.from({ length: size }, (_, i) => new PoolWorker(script, dataOf(i)));
  }

  /** Tells every worker something that it does not answer. */
  broadcast(message: unknown): void {
    for (const worker of this.#workers) worker.post(message);
  }

  /**
   * Runs the jobs, each on the next worker that is free, and hands each result to `done` as it comes. After a failure
   * `stop` is called, no further job begins, and when the running ones have ended the first error is thrown.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => void, stop: () => void): Promise<void> {
    const queue = jobs[Symbol.iterator]();
    let failure: { error: unknown } | undefined;
    const work = async (worker: PoolWorker<Job, Result>): Promise<void> => {
      while (failure === undefined) {
        const next = queue.next();
        if (next.done) return;
        try {
          done(await worker.run(next.value));
        } catch (error) {
          if (failure === undefined) stop();
          failure ??= { error };
        }
      }
    };
    await Promise.all(this.#workers.map(work));
    if (failure !== undefined) throw failure.error;
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
