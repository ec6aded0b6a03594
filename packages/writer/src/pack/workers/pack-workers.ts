import { setImmediate } from 'node:timers/promises';
import type { HashedFiles, Hasher } from '../../dedupe/hash-files.js';
import { type CheckedOptions, imageStepOptions } from '../../options.js';
import { createMeasureTurn, isMeasured, measureAhead, measureSlices } from '../../source/folder/measure.js';
import type { OpenSource } from '../../source/open-source.js';
import type { SourceFiles } from '../../source/source-files.js';
import { sourceKind } from '../../source/source-kinds.js';
import { isSmallWork } from '../../workers/small-work.js';
import { type Place, WorkerGroup } from '../../workers/worker-group.js';
import { type PackJob, PackJobs, type PackNews, type PackResult } from './pack-jobs.js';

/** The amount of work of a pack. */
interface PackSize {
  readonly shards: number;
  readonly files: number;
  readonly bytes: number;
}

/** Where the jobs of a pack run, or a function that decides it by the size of the work. */
type PlaceOfJobs = Place | ((size: PackSize) => Place);

/**
 * Decides where the jobs of a pack run. Starting threads takes time, so little work runs inline, and so does a single
 * shard. Work that would block the calling thread for long runs in threads: codecs, and unless there is little of it,
 * also uploads, hashing, and indexes of whole shards. With `isAhead` many files are read concurrently.
 */
function placeOfJobs(options: CheckedOptions, isElsewhere: boolean, isAhead: boolean): PlaceOfJobs {
  const { decode, recode, stripMetadata } = imageStepOptions(options);
  if (decode || stripMetadata || recode !== null) return 'threads';
  if (options.workers > 1 && !options.isWorkersDefault) return 'threads';
  const blocks = isElsewhere || options.dedupe || options.index.length > 0;
  if (options.workers === 1 && !blocks) return 'inline';
  return (size) => {
    if (size.shards <= 1 && !blocks) return 'inline';
    return isAhead || !isSmallWork(size, blocks ? 1 : PLAIN_FACTOR) ? 'threads' : 'inline';
  };
}

/**
 * Copying files into shards yields to other work of the calling thread, so more of it runs inline. On two cores 3,000
 * cached photos (81 MB) in eight shards took 0.89 of the time inline, and 0.78 of the CPU time.
 */
const PLAIN_FACTOR = 8;

/** The workers of one pack. The creator must close them. */
export class PackWorkers extends WorkerGroup<PackJob, PackResult> {
  readonly #placeOf: (size: PackSize) => Place;

  constructor(options: CheckedOptions, isElsewhere: boolean, isAhead: boolean) {
    super({
      script: new URL('./pack-worker.js', import.meta.url),
      size: options.workers,
      inline: (report) => {
        const jobs = new PackJobs(report, true);
        return {
          post: (news) => jobs.take(news as PackNews),
          run: async (job, free) => jobs.work(job, free),
          end: async () => jobs.close(),
        };
      },
    });
    const place = placeOfJobs(options, isElsewhere, isAhead);
    this.#placeOf = typeof place === 'function' ? place : () => place;
    // These threads start while this thread searches for files.
    if (place === 'threads') this.runIn(place);
  }

  /** Chooses where all jobs run. Only the first call counts. */
  chooseFor(size: PackSize): void {
    this.runIn(this.#placeOf(size));
  }
}

/** This thread measures up to this many local files alone: 50,000 take as long with the help of other threads. */
const MEASURED_ALONE = 100_000;

/** Fills in the size of each file below `root` (with a trailing "/"). */
export async function measureFiles(workers: PackWorkers, source: OpenSource, files: SourceFiles): Promise<void> {
  const { root, storage, flight } = source;
  if (flight !== null) {
    const access = sourceKind(root).files(root, storage);
    await measureAhead(root, files, flight, access, (measured) => workers.count(measured, 0));
    return shareFiles(workers, source, files);
  }
  const turn = createMeasureTurn();
  shareFiles(workers, source, files);
  if (files.count <= MEASURED_ALONE) return measureSlicesHere(workers, root, files, turn);
  // This is enough work for threads, even if all files fit in one shard.
  workers.chooseFor({ shards: Number.POSITIVE_INFINITY, files: files.count, bytes: 0 });
  const helped = workers.inThreads({ type: 'measure', turn });
  // An error that ends a worker here also ends its next job.
  helped.catch(() => undefined);
  try {
    await measureSlicesHere(workers, root, files, turn);
  } catch (stopped) {
    await helped;
    throw stopped;
  }
  if (!isMeasured(files, turn)) await helped;
}

/** Measures in this thread, until no slice is left, and yields after each slice. */
async function measureSlicesHere(
  workers: PackWorkers,
  root: string,
  files: SourceFiles,
  turn: ReturnType<typeof createMeasureTurn>,
): Promise<void> {
  for (const measured of measureSlices(root, files, turn)) {
    workers.count(measured, 0);
    await setImmediate();
  }
}

/** Sends the measured files to the workers. */
export function shareFiles(workers: PackWorkers, { root, storage, flight }: OpenSource, files: SourceFiles): void {
  const setting = flight?.setting ?? null;
  workers.tell({ type: 'files', root, storage, files: files.share(), flight: setting } satisfies PackNews);
}

/** Number of files per job: few enough that all threads finish at about the same time. */
const HASHED_AT_ONCE = 256;

/** Hashes measured files, and parts of shards, in the workers of a pack. */
export function hasherOf(workers: PackWorkers): Hasher {
  return {
    files: (numbers, done) => workers.run(hashJobs(numbers), (result) => done(result as HashedFiles)),
    parts: (parts, done) => {
      const jobs = parts.map((job) => ({ type: 'hash-parts', ...job }) as const);
      return workers.run(jobs, (result) => done(result as HashedFiles));
    },
  };
}

function* hashJobs(files: Uint32Array): Generator<PackJob> {
  for (let from = 0; from < files.length; from += HASHED_AT_ONCE) {
    yield { type: 'hash', numbers: files.slice(from, from + HASHED_AT_ONCE) };
  }
}
