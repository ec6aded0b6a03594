import { imageStepOptions } from '../options.js';
import { isTurnOf } from '../output/parts.js';
import { stemsOf } from '../output/planned-shards.js';
import { checkBadShare } from '../output/quarantine.js';
import type { PlanHeader, PlanPlace } from '../plan/plan-record.js';
import type { QuarantinedFile } from '../shard/shard-job.js';
import { rootOf } from '../source/source-kinds.js';
import type { PackWork } from './make-plan.js';
import type { PackedShard, PackJob, PackNews, PackSetting, PlannedShard } from './pack-worker.js';
import type { PackWorkers } from './pack-workers.js';

/** Writes the shards whose turn it is, or keeps those that are finished. */
export async function packShards(work: PackWork, header: PlanHeader, checkTimes: boolean): Promise<PackedShard[]> {
  const { source, output, folder, layout, options, part, workers, ticker, flight } = work;
  const { format, lmdbValues, index: otherIndexes, onBad, fields, maxBad, maxPixels, minSize, recheck } = options;
  const stems = stemsOf(header);
  const mine = header.shards
    .map((place, shard) => ({ shard, stem: stems[shard]!, place }))
    .filter(({ shard }) => part === null || isTurnOf(part, shard));
  const total = (count: (place: PlanPlace) => number) => mine.reduce((sum, { place }) => sum + count(place), 0);
  ticker.begin(
    'pack',
    total(({ files }) => files),
    total(({ sourceBytes }) => sourceBytes),
  );
  const packed: PackedShard[] = [];
  try {
    const columnTypes = new Map(header.columns.map((column) => [column.name, column.type]));
    const target = { output, layout: { format, lmdbValues }, columnTypes, otherIndexes, fields };
    const images = { step: imageStepOptions(options), limits: { maxPixels, minSize } };
    const facts = { root: rootOf(source), onBad, ...images, checkTimes, digest: header.digest };
    const setting = { ...target, ...facts, recheck, isPart: part !== null, flight: flight?.setting ?? null };
    await writeShards(workers, setting, mine, (shard) => {
      packed.push(shard);
      checkBadShare(quarantinedIn(packed), header.samples, maxBad);
    });
    return packed;
  } catch (error) {
    await workers.close();
    folder.removeTemporaryFiles(
      layout,
      mine.map(({ stem }) => stem),
    );
    throw error;
  }
}

function quarantinedIn(shards: readonly PackedShard[]): readonly QuarantinedFile[] {
  return shards.flatMap(({ quarantined }) => quarantined);
}

/** Writes these shards, or keeps those that are finished, and hands over each result as it comes. */
async function writeShards(
  workers: PackWorkers,
  setting: PackSetting,
  shards: Iterable<PlannedShard>,
  done: (result: PackedShard) => void,
): Promise<void> {
  const news: PackNews = { type: 'setting', ...setting };
  workers.tell(news);
  await workers.run(jobsOf(shards), (result) => done(result as PackedShard));
}

function* jobsOf(shards: Iterable<PlannedShard>): Generator<PackJob> {
  for (const shard of shards) yield { type: 'shard', ...shard };
}
