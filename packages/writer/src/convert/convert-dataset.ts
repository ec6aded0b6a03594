import path from 'node:path';
import { makeFolder, OptionError } from '@shardtool/base';
import { entryOf, hiddenFolder, isTableLayout, layoutOf, type OutputLayoutName, type Table } from '@shardtool/format';
import type { CheckedConvertOptions } from '../options.js';
import type { Destination } from '../output/destination.js';
import type { OutputFolder } from '../output/output-folder.js';
import { noteName, STATE_FOLDER } from '../output/pack-state.js';
import { readShardNote } from '../output/shard-note.js';
import { withProgress } from '../progress.js';
import { type DatasetShard, type DatasetShards, sumOfBytes } from '../shard/dataset-shards.js';
import { outputLayoutOf } from '../shard/layout-choice.js';
import { filesOfShard } from '../shard/shard-paths.js';
import { isSmallWork } from '../workers/small-work.js';
import { WorkerGroup } from '../workers/worker-group.js';
import { inlineWorker } from '../workers/worker-pool.js';
import type { ConvertJob, NumberedShard } from './convert-job.js';
import type { Recasted } from './input/input.js';
import type { ViewedShards } from './input/view.js';
import { type ConvertReport, commit, refuseEmpty, refuseNothing } from './report.js';
import { tableOf } from './table-columns.js';

/** Two shards of one name, which a pattern with braces can name, would become one file. */
function refuseSameNames(shards: readonly DatasetShard[]): void {
  const byStem = new Map<string, DatasetShard>();
  for (const shard of shards) {
    const other = byStem.get(shard.stem);
    if (other !== undefined) {
      const message = `${other.path} and ${shard.path} have the same name, and converted shards keep their names: convert the folders one by one, or rename the shards.`;
      throw new OptionError({ path: shard.path }, message);
    }
    byStem.set(shard.stem, shard);
  }
}

/** Converts each shard to one of the same name, in any free worker. */
export async function convertDataset(
  input: Recasted<DatasetShards | ViewedShards>,
  folder: OutputFolder,
  destination: Destination,
  options: CheckedConvertOptions,
  madeFrom: string,
  isBegun: boolean,
): Promise<ConvertReport> {
  const { format, lmdbValues, index: otherIndexes, maxSampleBytes } = options;
  const { classes, columns } = input;
  const { isElsewhere } = destination;
  const { shardFolder } = entryOf(format);
  const choice = {
    format,
    lmdbValues,
    table: await tableFor(format, input),
    // Shards that were sent to a bucket already have their final names there.
    shardFolder: isElsewhere || shardFolder === undefined ? undefined : hiddenFolder(shardFolder),
  };
  const layout = await outputLayoutOf(choice);
  const seen = 'view' in input ? input : null;
  // A shard without remaining samples is not written.
  const numbered = input.shards.map((shard, number) => ({ shard, number }));
  const taken = numbered.filter(({ number }) => seen === null || seen.samples[number]! > 0);
  const shards = taken.map(({ shard }) => shard);
  refuseSameNames(shards);
  if (!isElsewhere) checkRoom(folder, shards, isBegun ? madeFrom : null);
  if (isBegun) {
    folder.keepNoted();
    folder.removeTemporaryFiles(layout);
  } else {
    const announced = { ...layout, ...(shardFolder !== undefined && { shardFolder }) };
    const stems = shards.map(({ stem }) => stem);
    await folder.announce(announced, stems, otherIndexes, { madeFrom });
  }
  if (!isElsewhere) folder.hide(shardFolder);
  await destination.sendNotes();
  makeFolder(path.join(folder.path, STATE_FOLDER));
  const columnTypes = new Map(columns.map(({ name, type }) => [name, type]));
  const common = { columnTypes, otherIndexes, maxSampleBytes };
  const target = { output: folder.path, lock: folder.lock, layout: choice, ...common, madeFrom, isElsewhere };
  const work = {
    samples: shards.reduce((sum, { record }) => sum + (record?.samples ?? 0), 0),
    bytes: sumOfBytes(shards),
  };
  const pool = createWorkers(options, { ...work, shards: shards.length }, isElsewhere);
  return withProgress(pool, options, async (ticker) => {
    ticker.begin('convert', work.samples, work.bytes);
    const done: NumberedShard[] = [];
    try {
      const jobs = taken.map(
        ({ shard, number }): ConvertJob => ({
          shard: number,
          input: shard,
          target,
          view: seen?.view,
          recast: input.recast ?? null,
        }),
      );
      await pool.run(jobs, async (shard) => {
        done.push(shard);
        const { stem } = input.shards[shard.shard]!;
        if (!shard.isKept) await destination.sendShard(filesOfShard(layout, stem, otherIndexes), noteName(stem));
      });
    } catch (error) {
      await pool.close();
      folder.removeTemporaryFiles(layout);
      throw error;
    }
    await destination.whenSent();
    done.sort((a, b) => a.shard - b.shard);
    const left = done.filter(({ samples }) => samples > 0);
    const total = (count: (shard: NumberedShard) => number) => done.reduce((sum, shard) => sum + count(shard), 0);
    // Shards finished by an earlier version have no count.
    const skippedLinks = total((shard) => shard.skippedLinks ?? 0);
    if (left.length === 0 && done.length > 0) {
      if (input.recast !== undefined) refuseNothing();
      if (input.manifest === null) refuseEmpty(shards[0]!.path, skippedLinks);
    }
    const shown = (shard: NumberedShard) =>
      choice.shardFolder === undefined
        ? shard
        : { ...shard, file: `${shardFolder}/${path.posix.basename(shard.file)}` };
    if (!isElsewhere) folder.show(shardFolder);
    return commit(
      folder,
      (input.recast === undefined ? done : left).map(shown),
      { format, classes, columns, otherIndexes, madeFrom: seen?.madeFrom, list: layout.list },
      {
        skippedEntries: total(({ skippedEntries }) => skippedEntries),
        skippedLinks,
        leftOut: total(({ leftOut }) => leftOut),
      },
    );
  });
}

/**
 * Throws DiskFullError if the disk has too little space for the shards. `goesOn`: the source of an earlier conversion
 * that is resumed, whose finished shards already use their space; null for a new conversion.
 */
function checkRoom(folder: OutputFolder, shards: readonly DatasetShard[], goesOn: string | null): void {
  const left =
    goesOn === null ? shards : shards.filter(({ stem }) => readShardNote(folder.path, stem, goesOn) === null);
  const what = left.length === shards.length ? 'The conversion' : 'The rest of the conversion';
  folder.checkRoom(sumOfBytes(left), what);
}

/** Creates the workers. The calling thread converts a small dataset itself, and one shard if it need not be uploaded. */
function createWorkers(
  options: CheckedConvertOptions,
  { samples, bytes, shards }: { readonly samples: number; readonly bytes: number; readonly shards: number },
  isElsewhere: boolean,
): WorkerGroup<ConvertJob, NumberedShard> {
  const isDefault = options.isWorkersDefault || options.workers === 1;
  const isSmall = isDefault && isPlain(options) && isSmallWork({ files: samples, bytes });
  const size = Math.max(1, Math.min(options.workers, shards));
  const group = new WorkerGroup<ConvertJob, NumberedShard>({
    script: new URL('./convert-worker.js', import.meta.url),
    size,
    // Reading yields to other work of the thread after each MiB.
    inline: (report) =>
      inlineWorker(async (job, free) => (await import('./convert-job.js')).convertNumbered(job, report, free)),
  });
  group.runIn(isSmall || (size === 1 && !isElsewhere) ? 'inline' : 'threads');
  return group;
}

/** True if no image is decoded and no index of whole shards is made. */
function isPlain({ index }: CheckedConvertOptions): boolean {
  return index.length === 0;
}

/** Columns of the new shards, if their layout has columns. */
async function tableFor(
  format: OutputLayoutName,
  input: Recasted<DatasetShards | ViewedShards>,
): Promise<Table | null> {
  if (!isTableLayout(format)) return null;
  return tableOf(input, (await layoutOf(format)).columnNames);
}
