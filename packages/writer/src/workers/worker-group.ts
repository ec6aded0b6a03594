import { type CallerThread, WorkerPool } from './worker-pool.js';

/** What every worker of a group shares with the main thread; `progress` has two numbers a worker: files and bytes done. */
export interface WorkerSetup {
  readonly worker: number;
  /** Not 0 at index 0: end as soon as the sample in hand is done. */
  readonly control: Int32Array;
  readonly progress: Float64Array;
}

/** See {@link WorkerGroup.count}. */
type Count = (files: number, bytes: number) => void;

/** The group was stopped because of an error elsewhere. */
export class WorkersStopped extends Error {}

/**
 * Worker threads that say how far they are and can be stopped. Their script uses `worker-report`. With `own` the thread that
 * makes them does jobs, too: one thread less is started then, unless it only stands for them. Whoever makes them closes them.
 */
export class WorkerGroup<Job, Result> {
  /** How many threads it starts. */
  readonly size: number;
  /** Threads, once they are started, do everything. */
  readonly hasSubstitute: boolean;
  readonly #pool: WorkerPool<Job, Result>;
  readonly #control = new Int32Array(new SharedArrayBuffer(4));
  readonly #progress: Float64Array;

  constructor(script: URL, size: number, own: ((count: Count) => CallerThread<Job, Result>) | null = null) {
    const member = own?.((files, bytes) => this.count(files, bytes)) ?? null;
    this.hasSubstitute = member?.isSubstitute ?? false;
    this.size = member === null || this.hasSubstitute ? size : size - 1;
    // The last two are the main thread's.
    this.#progress = new Float64Array(new SharedArrayBuffer((this.size + 1) * 16));
    const dataOf = (worker: number): WorkerSetup => ({ worker, control: this.#control, progress: this.#progress });
    this.#pool = new WorkerPool(script, this.size, dataOf, member);
  }

  /** Files and source bytes that are done, of what runs now. */
  get done(): { files: number; bytes: number } {
    let files = 0;
    let bytes = 0;
    for (let i = 0; i < this.#progress.length; i += 2) {
      files += this.#progress[i]!;
      bytes += this.#progress[i + 1]!;
    }
    return { files, bytes };
  }

  /** Counts what the main thread itself has done. Throws if the group is stopped. */
  count(files: number, bytes: number): void {
    this.#progress[this.size * 2]! += files;
    this.#progress[this.size * 2 + 1]! += bytes;
    if (Atomics.load(this.#control, 0) !== 0) throw new WorkersStopped();
  }

  /** Tells every worker something that it does not answer. */
  tell(news: unknown): void {
    this.#pool.broadcast(news);
  }

  /**
   * Does the jobs and hands over each result as it comes; a worker gets its next job when `done` is through with its last.
   * The first failure ends the others, and is thrown.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown): Promise<void> {
    this.#progress.fill(0);
    await this.#pool.run(jobs, done, () => this.stop());
  }

  /** Threads are still to be started. */
  get waits(): boolean {
    return this.#pool.waits;
  }

  /** There is work for more than this thread: see {@link CallerThread}. */
  start(): void {
    this.#pool.start();
  }

  /** Gives each thread that it has started a job, while this one does something else. */
  async runInThreads(job: Job): Promise<void> {
    this.#progress.fill(0);
    await this.#pool.runInThreads(new Array<Job>(this.size).fill(job), () => this.stop());
  }

  /** Ends what runs, after the sample in hand. */
  stop(): void {
    Atomics.store(this.#control, 0, 1);
  }

  async close(): Promise<void> {
    this.stop();
    await this.#pool.close();
  }
}
