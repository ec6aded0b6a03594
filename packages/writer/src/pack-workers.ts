import type { FileTable } from './file-table.js';
import type { PackJob, PackNews, PackResult, PackSetting } from './pack-worker.js';
import type { ShardJob, ShardResult } from './shard-job.js';
import { WorkerCrew } from './worker-crew.js';

/** Files are measured in slices of so many, so that the workers end together. */
const SLICE = 2048;

/** The worker threads of one pack. */
export type PackWorkers = WorkerCrew<PackJob, PackResult>;

export function createPackWorkers(size: number): PackWorkers {
  return new WorkerCrew(new URL('./pack-worker.js', import.meta.url), size);
}

/** Fills in the size of each file below `root` (with a "/" at its end). */
export async function measureFiles(workers: PackWorkers, root: string, files: FileTable): Promise<void> {
  const news: PackNews = { type: 'files', root, files };
  workers.tell(news);
  await workers.run(slices(files.count), () => undefined);
}

/** Writes the shards of the jobs and hands over each result as it comes. */
export async function writeShards(
  workers: PackWorkers,
  setting: PackSetting,
  jobs: Iterable<ShardJob>,
  done: (result: ShardResult) => void,
): Promise<void> {
  const news: PackNews = { type: 'setting', ...setting };
  workers.tell(news);
  await workers.run(shardJobs(jobs), (result) => done(result!));
}

function* slices(count: number): Generator<PackJob> {
  for (let from = 0; from < count; from += SLICE) yield { type: 'measure', from, to: Math.min(count, from + SLICE) };
}

function* shardJobs(jobs: Iterable<ShardJob>): Generator<PackJob> {
  for (const job of jobs) yield { type: 'shard', ...job };
}
