import { type ErrorRecord, reviveError, WorkerThread } from '@shardtool/base';
import * as errors from '../errors.js';

/** What a worker answers to a job. */
export type Answer<Result> = { readonly result: Result } | { readonly error: ErrorRecord };

/** Said before the answer: the worker only waits for the disk, and can begin another job. */
export const FREE = 'free';

/** What a worker is sent in place of a job: it ends by itself when it has done what it does. */
export const END = null;

/** MiB: a pack's objects are gone after each sample. With a million tiny files and two workers it saves 65 MB. */
const YOUNG_GENERATION_MB = 12;

/** What does the jobs of a pool: a thread, or the one that made the pool. */
export interface Member<Job, Result> {
  /** Tells it something that it does not answer. */
  post(news: unknown): void;
  /** Does a job. `free` is called when it can begin another before this one has ended. */
  run(job: Job, free: () => void): Promise<Result>;
  end(): Promise<void>;
}

interface OpenJob<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
  free(): void;
}

/** One worker thread: answers jobs in their order, and fails those that it has, and all later ones, when it dies. */
class PoolWorker<Job, Result> implements Member<Job, Result> {
  readonly #thread: WorkerThread<Answer<Result> | typeof FREE>;
  /** The oldest is answered first. */
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

  /** Asks the thread to end, and ends it where it does not. */
  async end(): Promise<void> {
    this.#thread.post(END);
    await WorkerThread.whenEnded([this.#thread]);
  }
}

/** The thread that makes the pool, as one of its members. */
export interface CallerThread<Job, Result> {
  readonly member: Member<Job, Result>;
  /** No other thread is started before {@link WorkerPool.start}. */
  readonly isEnough: boolean;
  /** Once there are threads they do everything: this one has something else to do where there is much. */
  readonly isSubstitute?: boolean;
}

/** The thread that makes a pool as the only one that works: with `work` for a job, and `end` for what it leaves. */
export function thisThread<Job, Result>(
  work: (job: Job) => Promise<Result>,
  end: () => Promise<void> = async () => undefined,
): CallerThread<Job, Result> {
  return { member: { post: () => undefined, run: work, end }, isEnough: true };
}

/** So many jobs has a member at a time: one that it works at, and one whose bytes are on their way to the disk. */
const MOST_OPEN = 2;

/**
 * A fixed number of worker threads that share out jobs, and with `own` the thread that makes the pool. Whoever makes one
 * closes it.
 */
export class WorkerPool<Job, Result> {
  /** A worker waits for a file system that does not answer: it cannot be ended, and is left behind. */
  #hangs = false;
  readonly #start: () => readonly Member<Job, Result>[];
  #threads: readonly Member<Job, Result>[] | null = null;
  readonly #own: readonly Member<Job, Result>[];
  readonly #isSubstitute: boolean;
  /** For threads that are not there yet. */
  #told: unknown[] = [];

  /** Starts `size` threads on `script`; thread i gets `dataOf(i)` as its workerData. */
  constructor(
    script: URL,
    size: number,
    dataOf: (worker: number) => unknown,
    own: CallerThread<Job, Result> | null = null,
  ) {
    this.#start = () => Array.from({ length: size }, (_, i) => new PoolWorker(script, `Worker ${i}`, dataOf(i)));
    this.#own = own === null ? [] : [own.member];
    this.#isSubstitute = own?.isSubstitute ?? false;
    if (own?.isEnough !== true) this.#threads = this.#start();
  }

  /** Those that work now. */
  get #members(): readonly Member<Job, Result>[] {
    if (this.#threads === null) return this.#own;
    return this.#isSubstitute ? this.#threads : [...this.#own, ...this.#threads];
  }

  /** Tells every worker something that it does not answer. */
  broadcast(message: unknown): void {
    if (this.#threads === null) this.#told.push(message);
    for (const member of this.#members) member.post(message);
  }

  /**
   * Runs the jobs, each on the next member that is free, and hands each result to `done` as it comes, which it waits for. After a failure
   * `stop` is called, no further job begins, and when the running ones have ended the first error is thrown.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown, stop: () => void): Promise<void> {
    await this.#share(this.#members, jobs, done, stop);
  }

  /** The same by the threads alone: for whoever has something else to do meanwhile. */
  async runInThreads(jobs: Iterable<Job>, stop: () => void): Promise<void> {
    await this.#share(this.start(), jobs, () => undefined, stop);
  }

  /** Threads are still to be started. */
  get waits(): boolean {
    return this.#threads === null;
  }

  /** Starts the threads that are not there yet. */
  start(): readonly Member<Job, Result>[] {
    if (this.#threads === null) {
      this.#threads = this.#start();
      for (const thread of this.#threads) for (const message of this.#told) thread.post(message);
      this.#told = [];
    }
    return this.#threads;
  }

  async #share(
    members: readonly Member<Job, Result>[],
    jobs: Iterable<Job>,
    done: (result: Result) => unknown,
    stop: () => void,
  ): Promise<void> {
    const queue = jobs[Symbol.iterator]();
    let failure: { error: unknown } | undefined;
    const finish = async (member: Member<Job, Result>, job: Job, free: () => void): Promise<void> => {
      try {
        await done(await member.run(job, free));
      } catch (error) {
        this.#hangs ||= error instanceof errors.SourceTimeoutError;
        if (failure === undefined) stop();
        failure ??= { error };
      }
    };
    const work = async (member: Member<Job, Result>): Promise<void> => {
      const open = new Set<Promise<void>>();
      while (failure === undefined) {
        const next = queue.next();
        if (next.done) break;
        await new Promise<void>((free) => {
          const job = finish(member, next.value, free).finally(() => {
            open.delete(job);
            free();
          });
          open.add(job);
        });
        if (open.size >= MOST_OPEN) await Promise.race(open);
      }
      await Promise.all(open);
    };
    await Promise.all(members.map(work));
    if (failure !== undefined) throw failure.error;
  }

  async close(): Promise<void> {
    if (this.#hangs) return;
    await Promise.all([...(this.#threads ?? []), ...this.#own].map((member) => member.end()));
  }
}
