import { type CallerThread, WorkerPool } from './worker-pool.js';

/**
 * Data that every worker of a group shares with the main thread. `progress` has two numbers per worker: files and bytes
 * done.
 */
export interface WorkerSetup {
  readonly worker: number;
  /** If index 0 is not 0, the worker stops after the current sample. */
  readonly control: Int32Array;
  readonly progress: Float64Array;
}

/** See {@link WorkerGroup.count}. */
type Count = (files: number, bytes: number) => void;

/** The group was stopped because of an error elsewhere. */
export class WorkersStopped extends Error {}

/**
 * Worker threads that report their progress and can be stopped. Their script uses `worker-report`. With `own`, the
 * creating thread also does jobs, and one thread less is started unless it is only a substitute. The creator must close
 * the group.
 */
export class WorkerGroup<Job, Result> {
  /** Number of threads that it starts. */
  readonly size: number;
  /** True if started threads do all the work in place of the calling thread. */
  readonly hasSubstitute: boolean;
  readonly #pool: WorkerPool<Job, Result>;
  readonly #control = new Int32Array(new SharedArrayBuffer(4));
  readonly #progress: Float64Array;

  constructor(script: URL, size: number, own: ((count: Count) => CallerThread<Job, Result>) | null = null) {
    const member = own?.((files, bytes) => this.count(files, bytes)) ?? null;
    this.hasSubstitute = member?.isSubstitute ?? false;
    this.size = member === null || this.hasSubstitute ? size : size - 1;
    // The last two numbers belong to the main thread.
    this.#progress = new Float64Array(new SharedArrayBuffer((this.size + 1) * 16));
    const dataOf = (worker: number): WorkerSetup => ({ worker, control: this.#control, progress: this.#progress });
    this.#pool = new WorkerPool(script, this.size, dataOf, member);
  }

  /** Files and source bytes that the current run has finished. */
  get done(): { files: number; bytes: number } {
    let files = 0;
    let bytes = 0;
    for (let i = 0; i < this.#progress.length; i += 2) {
      files += this.#progress[i]!;
      bytes += this.#progress[i + 1]!;
    }
    return { files, bytes };
  }

  /** Counts work done by the main thread itself. Throws if the group is stopped. */
  count(files: number, bytes: number): void {
    this.#progress[this.size * 2]! += files;
    this.#progress[this.size * 2 + 1]! += bytes;
    if (Atomics.load(this.#control, 0) !== 0) throw new WorkersStopped();
  }

  /** Sends every worker a message that it does not answer. */
  tell(news: unknown): void {
    this.#pool.broadcast(news);
  }

  /**
   * Runs the jobs and passes each result to `done` as it arrives. A worker gets its next job when `done` has finished
   * with its last result. The first failure stops the others and is thrown.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown): Promise<void> {
    this.#progress.fill(0);
    await this.#pool.run(jobs, done, () => this.stop());
  }

  /** True if threads have not been started yet. */
  get waits(): boolean {
    return this.#pool.waits;
  }

  /** Starts the threads, because there is more work than one thread should do: see {@link CallerThread}. */
  start(): void {
    this.#pool.start();
  }

  /** Runs the job once in each started thread, while this thread does something else. */
  async runInThreads(job: Job): Promise<void> {
    this.#progress.fill(0);
    await this.#pool.runInThreads(new Array<Job>(this.size).fill(job), () => this.stop());
  }

  /** Stops the current run, after the samples in progress. */
  stop(): void {
    Atomics.store(this.#control, 0, 1);
  }

  async close(): Promise<void> {
    this.stop();
    await this.#pool.close();
  }
}
