import { setImmediate } from 'node:timers/promises';
import type { FileTable } from './file-table.js';
import { createMeasureTurn, isMeasured, measureSlices } from './measure.js';
import type { PackJob, PackNews, PackResult, PackSetting } from './pack-worker.js';
import type { ShardJob, ShardResult } from './shard-job.js';
import { WorkerCrew } from './worker-crew.js';

/** The worker threads of one pack. */
export type PackWorkers = WorkerCrew<PackJob, PackResult>;

export function createPackWorkers(size: number): PackWorkers {
  return new WorkerCrew(new URL('./pack-worker.js', import.meta.url), size);
}

/**
 * Fills in the size of each file below `root` (with a "/" at its end). This thread begins while the workers still start,
 * and is often done before they are; it lets others in after each slice.
 */
export async function measureFiles(workers: PackWorkers, root: string, files: FileTable): Promise<void> {
  const turn = createMeasureTurn();
  const news: PackNews = { type: 'files', root, files };
  workers.tell(news);
  const helped = workers.run(new Array(workers.size).fill({ type: 'measure', turn }), () => undefined);
  // What ends a worker here ends its next job as well.
  helped.catch(() => undefined);
  try {
    for (const measured of measureSlices(root, files, turn)) {
      workers.count(measured, 0);
      await setImmediate();
    }
  } catch (stopped) {
    await helped;
    throw stopped;
  }
  if (!isMeasured(files, turn)) await helped;
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

function* shardJobs(jobs: Iterable<ShardJob>): Generator<PackJob> {
  for (const job of jobs) yield { type: 'shard', ...job };
}
