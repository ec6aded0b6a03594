import { type ErrorRecord, reviveError, WorkerThread } from '@shardtool/base';
import * as errors from '../errors.js';

/** Answer of a worker to a job. */
export type Answer<Result> = { readonly result: Result } | { readonly error: ErrorRecord };

/** Sent before the answer: the worker only waits for the disk, and can start another job. */
export const FREE = 'free';

/** Sent in place of a job: the worker ends itself after its current work. */
export const END = null;

/**
 * Size of the young generation in MiB. A pack's objects live only as long as one sample. With a million tiny files and two
 * workers this saves 65 MB.
 */
const YOUNG_GENERATION_MB = 12;

/** Runs the jobs of a pool: a worker thread, or the calling thread if the pool runs inline. */
export interface PoolWorker<Job, Result> {
  /** Sends a message that is not answered. */
  post(message: unknown): void;
  /** Runs a job. `free` is called when the worker can start another job before this one has ended. */
  run(job: Job, free: () => void): Promise<Result>;
  end(): Promise<void>;
}

interface OpenJob<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
  free(): void;
}

/** One worker thread. It answers jobs in order. When it dies, its open jobs and all later ones fail. */
class JobThread<Job, Result> implements PoolWorker<Job, Result> {
  readonly #thread: WorkerThread<Answer<Result> | typeof FREE>;
  /** The oldest job is answered first. */
  readonly #open: OpenJob<Result>[] = [];
  #death: Error | undefined;

  constructor(script: URL, name: string, workerData: unknown) {
    this.#thread = new WorkerThread<Answer<Result> | typeof FREE>({
      script,
      workerData,
      name,
      youngGenerationMb: YOUNG_GENERATION_MB,
      errors,
      onMessage: (answer) => {
        if (answer === FREE) {
          this.#open.at(-1)?.free();
          return;
        }
        const job = this.#open.shift();
        if ('error' in answer) job?.reject(reviveError(answer.error, errors));
        else job?.resolve(answer.result);
      },
      onEnd: (reason) => {
        this.#death = reason;
        for (const job of this.#open.splice(0)) job.reject(reason);
      },
    });
  }

  post(message: unknown): void {
    this.#thread.post(message);
  }

  run(job: Job, free: () => void): Promise<Result> {
    if (this.#death !== undefined) return Promise.reject(this.#death);
    return new Promise((resolve, reject) => {
      this.#open.push({ resolve, reject, free });
      this.#thread.post(job);
    });
  }

  /** Asks the thread to end, and terminates it if it does not. */
  async end(): Promise<void> {
    this.#thread.post(END);
    await WorkerThread.whenEnded([this.#thread]);
  }
}

/** Maximum number of open jobs per worker: one in progress, and one whose bytes are being written to disk. */
const MAX_OPEN = 2;

/** Runs jobs, either in worker threads or inline in the thread that creates the pool. The creator must close the pool. */
export class WorkerPool<Job, Result> {
  /** True if a worker waits for a file system that does not answer: it cannot be terminated, and is abandoned. */
  #hangs = false;
  readonly #workers: readonly PoolWorker<Job, Result>[];

  private constructor(workers: readonly PoolWorker<Job, Result>[]) {
    this.#workers = workers;
  }

  /** Starts `size` threads on `script`; thread i gets `dataOf(i)` as its workerData. */
  static ofThreads<Job, Result>(
    script: URL,
    size: number,
    dataOf: (worker: number) => unknown,
  ): WorkerPool<Job, Result> {
    return new WorkerPool(
      Array.from({ length: size }, (_, i) => new JobThread<Job, Result>(script, `Worker ${i}`, dataOf(i))),
    );
  }

  /** Runs every job with `worker`, in the calling thread. */
  static inline<Job, Result>(worker: PoolWorker<Job, Result>): WorkerPool<Job, Result> {
    return new WorkerPool([worker]);
  }

  /** Sends every worker a message that it does not answer. */
  broadcast(message: unknown): void {
    for (const worker of this.#workers) worker.post(message);
  }

  /**
   * Runs the jobs, each on the next free worker, and passes each result to `done`, which it awaits. If a job, `done`
   * or `jobs` fails, it calls `stop` and starts no further job. It throws the first error when the running jobs have ended.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown, stop: () => void): Promise<void> {
    const queue = jobs[Symbol.iterator]();
    let failure: { error: unknown } | undefined;
    const fail = (error: unknown): void => {
      if (failure === undefined) stop();
      failure ??= { error };
    };
    const finish = async (worker: PoolWorker<Job, Result>, job: Job, free: () => void): Promise<void> => {
      try {
        await done(await worker.run(job, free));
      } catch (error) {
        this.#hangs ||= error instanceof errors.SourceTimeoutError;
        fail(error);
      }
    };
    const nextJob = (): IteratorResult<Job> => {
      try {
        return queue.next();
      } catch (error) {
        fail(error);
        return { done: true, value: undefined };
      }
    };
    const work = async (worker: PoolWorker<Job, Result>): Promise<void> => {
      const open = new Set<Promise<void>>();
      while (failure === undefined) {
        const next = nextJob();
        if (next.done) break;
        await new Promise<void>((free) => {
          const job = finish(worker, next.value, free).finally(() => {
            open.delete(job);
            free();
          });
          open.add(job);
        });
        if (open.size >= MAX_OPEN) await Promise.race(open);
      }
      await Promise.all(open);
    };
    await Promise.all(this.#workers.map(work));
    if (failure !== undefined) throw failure.error;
  }

  async close(): Promise<void> {
    if (this.#hangs) return;
    await Promise.all(this.#workers.map((worker) => worker.end()));
  }
}

/** A worker for {@link WorkerPool.inline} that needs no messages. `work` runs jobs, and `end` frees its resources. */
export function inlineWorker<Job, Result>(
  work: PoolWorker<Job, Result>['run'],
  end: () => Promise<void> = async () => undefined,
): PoolWorker<Job, Result> {
  return { post: () => undefined, run: work, end };
}
