import { setImmediate } from 'node:timers/promises';
import type { StorageOptions } from '@shardtool/storage';
import type { HashedFiles, HashPartsJob } from '../../dedupe/hash-files.js';
import type { Report } from '../../shard/shard-job.js';
import type { InFlight } from '../../source/ahead/in-flight.js';
import { createMeasureTurn, isMeasured, measureAhead, measureSlices } from '../../source/folder/measure.js';
import type { SourceFiles } from '../../source/source-files.js';
import { sourceKind } from '../../source/source-kinds.js';
import { isSmallWork } from '../../workers/small-work.js';
import { WorkerGroup } from '../../workers/worker-group.js';
import type { Member } from '../../workers/worker-pool.js';
import { type PackJob, PackJobs, type PackNews, type PackResult } from './pack-jobs.js';

/** Those that share the work of one pack. */
export type PackWorkers = WorkerGroup<PackJob, PackResult>;

/** What the thread that packs does of the work itself: a share of it, all of it where that is little, or none. */
export type OwnShare = 'some' | 'all-of-little' | 'none';

/** `size` threads, of which this one is one where it has a share. With `isEnough`, or all of little, others wait for their `start`. */
export function createPackWorkers(size: number, share: OwnShare, isEnough: boolean): PackWorkers {
  const isSubstitute = share === 'all-of-little';
  const own = (report: Report) => ({ member: callerThread(report), isEnough: isEnough || isSubstitute, isSubstitute });
  return new WorkerGroup(new URL('./pack-worker.js', import.meta.url), size, share === 'none' ? null : own);
}

function callerThread(report: Report): Member<PackJob, PackResult> {
  const jobs = new PackJobs(report, true);
  return {
    post: (news) => jobs.take(news as PackNews),
    run: async (job, free) => jobs.work(job, free),
    end: async () => jobs.close(),
  };
}

/** Where the files of a source are, and how they are asked for. */
interface SourcePlace {
  readonly root: string;
  readonly storage: StorageOptions | undefined;
}

/**
 * Fills in the size of each file below `root` (with a "/" at its end). This thread begins while the workers still start,
 * and is often done before they are; it lets others in after each slice.
 */
export async function measureFiles(
  workers: PackWorkers,
  place: SourcePlace,
  files: SourceFiles,
  flight: InFlight | null,
): Promise<void> {
  const { root, storage } = place;
  if (flight !== null) {
    const access = sourceKind(root).files(root, storage);
    await measureAhead(root, files, flight, access, (measured) => workers.count(measured, 0));
    shareFiles(workers, place, files, flight);
    return;
  }
  const turn = createMeasureTurn();
  shareFiles(workers, place, files, null);
  const isAlone = workers.waits && isSmallWork({ files: files.count, bytes: 0 });
  const helped = isAlone ? Promise.resolve() : workers.runInThreads({ type: 'measure', turn });
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

/** Starts the threads that wait, where there is work for them. A source that is far away has some for more than one shard. */
export function startThreads(
  workers: PackWorkers,
  flight: InFlight | null,
  work: { readonly shards: number; readonly files: number; readonly bytes: number },
): void {
  const isForThreads = workers.hasSubstitute || work.shards > 1;
  if (isForThreads && (flight !== null || !isSmallWork(work))) workers.start();
}

/** Tells the workers of files that are measured. */
export function shareFiles(
  workers: PackWorkers,
  place: SourcePlace,
  files: SourceFiles,
  flight: InFlight | null,
): void {
  workers.tell({ type: 'files', ...place, files: files.share(), flight: flight?.setting ?? null } satisfies PackNews);
}

/** So many files at a time: few enough that all threads end together. */
const HASHED_AT_ONCE = 256;

/** Takes the sha256 of files of the table that was measured, of so many bytes, and hands over the digests as they come. */
export async function hashInWorkers(
  workers: PackWorkers,
  files: Uint32Array,
  bytes: number,
  done: (hashed: HashedFiles) => void,
): Promise<void> {
  if (!isSmallWork({ files: files.length, bytes })) workers.start();
  await workers.run(hashJobs(files), (result) => done(result as HashedFiles));
}

function* hashJobs(files: Uint32Array): Generator<PackJob> {
  for (let from = 0; from < files.length; from += HASHED_AT_ONCE) {
    yield { type: 'hash', numbers: files.slice(from, from + HASHED_AT_ONCE) };
  }
}

/** The same for parts of other files. */
export async function hashPartsInWorkers(
  workers: PackWorkers,
  parts: readonly HashPartsJob[],
  work: { readonly files: number; readonly bytes: number },
  done: (hashed: HashedFiles) => void,
): Promise<void> {
  if (!isSmallWork(work)) workers.start();
  const jobs = parts.map((job) => ({ type: 'hash-parts', ...job }) as const);
  await workers.run(jobs, (result) => done(result as HashedFiles));
}
