import type { FileTable } from './file-table.js';
import type { PackJob, PackNews, PackResult, PackSetting, PackWorkerData } from './pack-worker.js';
import type { ShardJob, ShardResult } from './shard-job.js';
import { WorkerPool } from './worker-pool.js';

/** Files are measured in slices of so many, so that the workers end together. */
const SLICE = 2048;

/** The worker threads of one pack. Whoever makes them closes them. */
export class PackWorkers {
  readonly #pool: WorkerPool<PackJob, PackResult>;
  readonly #control = new Int32Array(new SharedArrayBuffer(4));
  readonly #progress: Float64Array;

  constructor(size: number) {
    this.#progress = new Float64Array(new SharedArrayBuffer(size * 16));
    const dataOf = (worker: number): PackWorkerData => ({ worker, control: this.#control, progress: this.#progress });
    this.#pool = new WorkerPool(new URL('./pack-worker.js', import.meta.url), size, dataOf);
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

  /** Fills in the size of each file below `root` (with a "/" at its end). */
  async measure(root: string, files: FileTable): Promise<void> {
    this.#tell({ type: 'files', root, files });
    await this.#run(slices(files.count), () => undefined);
  }

  /** Writes the shards of the jobs and hands over each result as it comes. */
  async write(setting: PackSetting, jobs: Iterable<ShardJob>, done: (result: ShardResult) => void): Promise<void> {
    this.#tell({ type: 'setting', ...setting });
    await this.#run(shardJobs(jobs), (result) => done(result!));
  }

  /** Ends what runs, after the sample in hand. */
  stop(): void {
    Atomics.store(this.#control, 0, 1);
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #tell(news: PackNews): void {
    this.#pool.broadcast(news);
  }

  async #run(jobs: Iterable<PackJob>, done: (result: PackResult) => void): Promise<void> {
    this.#progress.fill(0);
    await this.#pool.run(jobs, done, () => this.stop());
  }
}

function* slices(count: number): Generator<PackJob> {
  for (let from = 0; from < count; from += SLICE) yield { type: 'measure', from, to: Math.min(count, from + SLICE) };
}

function* shardJobs(jobs: Iterable<ShardJob>): Generator<PackJob> {
  for (const job of jobs) yield { type: 'shard', ...job };
}
