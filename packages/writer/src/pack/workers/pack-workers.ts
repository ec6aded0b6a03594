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

/** The workers of one pack. */
export type PackWorkers = WorkerGroup<PackJob, PackResult>;

/** Share of the work that the packing thread does itself: some of it, all of it if there is little, or none. */
export type OwnShare = 'some' | 'all-of-little' | 'none';

/**
 * Creates `size` threads; the packing thread is one of them if it has a share. With `isEnough`, or if it does all of
 * little work, the others wait for their `start`.
 */
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
 * Fills in the size of each file below `root` (with a trailing "/"). This thread starts while the workers are still
 * starting, and is often done before they are. It yields after each slice.
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
  // An error that ends a worker here also ends its next job.
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

/** Starts the waiting threads, if there is work for them. A slow source has enough work with more than one shard. */
export function startThreads(
  workers: PackWorkers,
  flight: InFlight | null,
  work: { readonly shards: number; readonly files: number; readonly bytes: number },
): void {
  const isForThreads = workers.hasSubstitute || work.shards > 1;
  if (isForThreads && (flight !== null || !isSmallWork(work))) workers.start();
}

/** Sends the measured files to the workers. */
export function shareFiles(
  workers: PackWorkers,
  place: SourcePlace,
  files: SourceFiles,
  flight: InFlight | null,
): void {
  workers.tell({ type: 'files', ...place, files: files.share(), flight: flight?.setting ?? null } satisfies PackNews);
}

/** Number of files per job: few enough that all threads finish at about the same time. */
const HASHED_AT_ONCE = 256;

/** Computes the sha256 of measured files, and passes on the digests as they arrive. The files have this many bytes. */
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

/** Like {@link hashInWorkers}, for parts of other files. */
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
