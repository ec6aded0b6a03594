import { type PoolWorker, WorkerPool } from './worker-pool.js';

/**
 * Data that every thread of a group shares with the main thread. `progress` has two numbers per thread: files and bytes
 * done.
 */
export interface WorkerSetup {
  readonly worker: number;
  /** If index 0 is not 0, the worker stops after the current sample. */
  readonly control: Int32Array;
  readonly progress: Float64Array;
}

/** Counts finished work. Throws {@link WorkersStopped} if the group is stopped. */
export type Count = (files: number, bytes: number) => void;

/** The group was stopped because of an error elsewhere. */
export class WorkersStopped extends Error {}

/** Where jobs run: in worker threads, or in the calling thread. */
export type Place = 'threads' | 'inline';

/** How the jobs of a group are run, in each of the two places. */
export interface GroupOptions<Job, Result> {
  /** Script of the threads, which uses `worker-report`. */
  readonly script: URL;
  /** Number of threads. */
  readonly size: number;
  /** Creates the worker that runs the jobs in the calling thread. */
  readonly inline: (count: Count) => PoolWorker<Job, Result>;
}

/**
 * Workers that report their progress and can be stopped: either threads, or the calling thread alone. {@link runIn}
 * chooses which of them when the size of the work is known. The creator must close the group.
 */
export class WorkerGroup<Job, Result> {
  readonly #options: GroupOptions<Job, Result>;
  #place: Place | null = null;
  #pool: WorkerPool<Job, Result> | null = null;
  /** Messages sent before the workers were chosen. */
  #early: unknown[] = [];
  readonly #control = new Int32Array(new SharedArrayBuffer(4));
  readonly #progress: Float64Array;

  constructor(options: GroupOptions<Job, Result>) {
    this.#options = options;
    // The last two numbers belong to the main thread.
    this.#progress = new Float64Array(new SharedArrayBuffer((options.size + 1) * 16));
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
    const own = this.#options.size * 2;
    this.#progress[own]! += files;
    this.#progress[own + 1]! += bytes;
    if (Atomics.load(this.#control, 0) !== 0) throw new WorkersStopped();
  }

  /** Chooses where all jobs run. Only the first call counts. */
  runIn(place: Place): void {
    if (this.#place !== null) return;
    this.#place = place;
    const { script, size, inline } = this.#options;
    const dataOf = (worker: number): WorkerSetup => ({ worker, control: this.#control, progress: this.#progress });
    this.#pool =
      place === 'threads'
        ? WorkerPool.ofThreads(script, size, dataOf)
        : WorkerPool.inline(inline((files, bytes) => this.count(files, bytes)));
    for (const message of this.#early) this.#pool.broadcast(message);
    this.#early = [];
  }

  /** Sends every worker a message that it does not answer. */
  tell(message: unknown): void {
    if (this.#pool === null) this.#early.push(message);
    else this.#pool.broadcast(message);
  }

  /**
   * Runs the jobs and passes each result to `done` as it arrives. A worker gets its next job when `done` has finished
   * with its last result. The first failure stops the others and is thrown. {@link runIn} must have been called.
   */
  async run(jobs: Iterable<Job>, done: (result: Result) => unknown): Promise<void> {
    this.#progress.fill(0);
    await this.#pool!.run(jobs, done, () => this.stop());
  }

  /** Runs the job once per thread, while this thread does something else. Does nothing if jobs run inline. */
  async inThreads(job: Job): Promise<void> {
    const count = this.#place === 'threads' ? this.#options.size : 0;
    await this.run(new Array<Job>(count).fill(job), () => undefined);
  }

  /** Stops the current run, after the samples in progress. */
  stop(): void {
    Atomics.store(this.#control, 0, 1);
  }

  async close(): Promise<void> {
    this.stop();
    await this.#pool?.close();
  }
}
