import { imageStepOptions } from '../../options.js';
import { noteName } from '../../output/pack-state.js';
import { plannedSamples, stemsOf } from '../../output/planned-shards.js';
import { checkBadShare, isTooManyBad, writeQuarantine } from '../../output/quarantine.js';
import { isTurnOf } from '../../part.js';
import type { PlanHeader, PlanPlace } from '../../plan/plan-record.js';
import { encodeShardPlan } from '../../plan/shard-plan.js';
import type { CheckedShard, QuarantinedFile } from '../../shard/shard-job.js';
import { filesOfShard } from '../../shard/shard-paths.js';
import type { PreparedPack } from '../planning/prepare.js';
import type { LookedShard, PackedShard, PackJob, PackNews, PackSetting } from './pack-jobs.js';
import type { PackWork, PrepareWork } from './work.js';

/**
 * Writes the shards of this part, or keeps finished ones. If too many samples are bad, the remaining shards are only
 * checked. Then quarantine.jsonl lists all bad files, and TooManyBadError is thrown.
 */
export async function packShards(work: PackWork, header: PlanHeader, checkTimes: boolean): Promise<PackedShard[]> {
  const { output, folder, destination, layout, options, part, workers, ticker } = work;
  const { maxBad, index: otherIndexes } = options;
  const stems = stemsOf(header);
  const mine = header.shards
    .map((place, shard) => ({ shard, stem: stems[shard]!, place }))
    .filter(({ shard }) => part === null || isTurnOf(part, shard));
  const total = (count: (place: PlanPlace) => number) => mine.reduce((sum, { place }) => sum + count(place), 0);
  const files = total((place) => place.files);
  const bytes = total(({ sourceBytes }) => sourceBytes);
  ticker.begin('pack', files, bytes);
  const packed: PackedShard[] = [];
  const samples = plannedSamples(header);
  /** Bad files by shard. */
  const badIn = new Map<number, readonly QuarantinedFile[]>();
  const allBad = () => [...(header.quarantined ?? []), ...mine.flatMap(({ shard }) => badIn.get(shard) ?? [])];
  let isOver = false;
  // A killed pack may have left temporary files, whose names contain its token.
  const clean = () =>
    folder.removeTemporaryFiles(
      layout,
      mine.map(({ stem }) => stem),
    );
  clean();
  try {
    const { isElsewhere } = destination;
    const facts = { checkTimes, digest: header.digest, isPart: part !== null, isElsewhere, lock: folder.lock };
    const setting = { ...settingOf(work, header.columns), ...facts };
    workers.tell({ type: 'setting', ...setting } satisfies PackNews);
    const jobs = function* (): Generator<PackJob> {
      for (const shard of mine) yield { type: isOver ? 'look' : 'shard', ...shard };
    };
    workers.chooseFor({ shards: mine.length, files, bytes });
    await workers.run(jobs(), async (result) => {
      const shard = result as PackedShard | LookedShard;
      badIn.set(shard.shard, shard.quarantined);
      isOver ||= isTooManyBad(allBad().length, samples, maxBad);
      if (!('file' in shard)) return;
      packed.push(shard);
      const stem = stems[shard.shard]!;
      if (!shard.isKept) await destination.sendShard(filesOfShard(layout, stem, otherIndexes), noteName(stem));
    });
    if (isOver) {
      await writeQuarantine(output, [...(work.base?.quarantined ?? []), ...allBad()]);
      await destination.sendNotes();
      checkBadShare(allBad(), samples, maxBad, part === null ? 'all of them' : 'those of this part');
    }
    return packed;
  } catch (error) {
    await workers.close();
    clean();
    throw error;
  }
}

function settingOf({ source, output, options }: PrepareWork, columns: PlanHeader['columns']): PackSetting {
  const {
    format,
    lmdbValues,
    index: otherIndexes,
    onBad,
    fields,
    pair,
    primary,
    maxPixels,
    minSize,
    recheck,
    maxSampleBytes,
    provenance,
  } = options;
  const columnTypes = new Map(columns.map((column) => [column.name, column.type]));
  const target = {
    output,
    layout: { format, lmdbValues },
    columnTypes,
    otherIndexes,
    maxSampleBytes,
    naming: { fields, pair, primary },
    isHashed: provenance.includes('sha256'),
  };
  const images = { step: imageStepOptions(options), limits: { maxPixels, minSize } };
  const facts = {
    root: source.root,
    storage: source.storage,
    onBad,
    ...images,
    checkTimes: false,
    digest: '',
    recheck,
  };
  return {
    ...target,
    ...facts,
    isPart: false,
    isCheck: false,
    isElsewhere: false,
    flight: source.flight?.setting ?? null,
  };
}

/** Checks all files like {@link packShards}, but writes nothing. Returns the result for each shard's samples. */
export async function checkPlanned(
  work: PrepareWork,
  { facts, shards, shardCount }: PreparedPack,
): Promise<CheckedShard[]> {
  const { workers, ticker } = work;
  ticker.begin('pack', facts.files, facts.sourceBytes);
  const setting: PackSetting = { ...settingOf(work, facts.columns), onBad: 'quarantine', isCheck: true };
  workers.tell({ type: 'setting', ...setting } satisfies PackNews);
  const checked: CheckedShard[] = [];
  function* jobs(): Generator<PackJob> {
    for (const plan of shards()) yield { type: 'check', plan: encodeShardPlan(plan) };
  }
  workers.chooseFor({ shards: shardCount, files: facts.files, bytes: facts.sourceBytes });
  await workers.run(jobs(), (result) => checked.push(result as CheckedShard));
  return checked;
}
