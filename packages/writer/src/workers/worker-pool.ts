import { type ErrorRecord, reviveError, WorkerThread } from '@shardtool/base';
import * as errors from '../errors.js';

/** Answer of a worker to a job. */
export type Answer<Result> = { readonly result: Result } | { readonly error: ErrorRecord };

/** Sent before the answer: the worker only waits for the disk, and can start another job. */
export const FREE = 'free';

/** Sent in place of a job: the worker ends itself after its current work. */
export const END = null;

/**
 * In MiB. A pack's objects live only as long as one sample. With a million tiny files and two workers this saves 65 MB.
 */
const YOUNG_GENERATION_MB = 12;

/** Runs the jobs of a pool: a worker thread, or the thread that created the pool. */
export interface Member<Job, Result> {
  /** Sends a message that is not answered. */
  post(news: unknown): void;
  /** Runs a job. `free` is called when the member can start another job before this one has ended. */
  run(job: Job, free: () => void): Promise<Result>;
  end(): Promise<void>;
}

interface OpenJob<Result> {
  resolve(result: Result): void;
  reject(error: Error): void;
  free(): void;
}

/** One worker thread. It answers jobs in order. When it dies, its open jobs and all later ones fail. */
class PoolWorker<Job, Result> implements Member<Job, Result> {
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

/** The thread that creates the pool, as one of its members. */
export interface CallerThread<Job, Result> {
  readonly member: Member<Job, Result>;
  /** No other thread is started before {@link WorkerPool.start}. */
  readonly isEnough: boolean;
  /** Once threads have started they do all the work, because this thread then has other work to do. */
  readonly isSubstitute?: boolean;
}

/** Makes the creating thread the only member. `work` runs a job, and `end` frees its resources. */
export function thisThread<Job, Result>(
  work: (job: Job) => Promise<Result>,
  end: () => Promise<void> = async () => undefined,
): CallerThread<Job, Result> {
  return { member: { post: () => undefined, run: work, end }, isEnough: true };
}

/** Maximum number of open jobs per member: one in progress, and one whose bytes are being written to disk. */
const MAX_OPEN = 2;

/**
 * A fixed number of worker threads that share jobs, and with `own` also the thread that creates the pool. The creator
 * must close the pool.
 */
export class WorkerPool<Job, Result> {
  /** True if a worker waits for a file system that does not answer: it cannot be terminated, and is abandoned. */
  #hangs = false;
  readonly #start: () => readonly Member<Job, Result>[];
  #threads: readonly Member<Job, Result>[] | null = null;
  readonly #own: readonly Member<Job, Result>[];
  readonly #isSubstitute: boolean;
  /** Messages for threads that are not started yet. */
  #pendingMessages: unknown[] = [];

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

  /** Members that take jobs now. */
  get #members(): readonly Member<Job, Result>[] {
    if (this.#threads === null) return this.#own;
    return this.#isSubstitute ? this.#threads : [...this.#own, ...this.#threads];
  }

  /** Sends every worker a message that it does not answer. */
  broadcast(message: unknown): void {
    if (this.#threads === null) this.#pendingMessages.push(message);
    for (const member of this.#members) member.post(message);
  }

  /**
   * Runs the jobs, each on the next free member, and passes each result to `done`, which it awaits. After a failure it
   * calls `stop` and starts no further job. It throws the first error when the running jobs have ended.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown, stop: () => void): Promise<void> {
    await this.#share(this.#members, jobs, done, stop);
  }

  /** Like {@link run}, but only in threads, so that the calling thread can do something else. */
  async runInThreads(jobs: Iterable<Job>, stop: () => void): Promise<void> {
    await this.#share(this.start(), jobs, () => undefined, stop);
  }

  /** True if threads have not been started yet. */
  get waits(): boolean {
    return this.#threads === null;
  }

  /** Starts the threads that are not running yet. */
  start(): readonly Member<Job, Result>[] {
    if (this.#threads === null) {
      this.#threads = this.#start();
      for (const thread of this.#threads) for (const message of this.#pendingMessages) thread.post(message);
      this.#pendingMessages = [];
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
        if (open.size >= MAX_OPEN) await Promise.race(open);
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
