import { DuplicateKeyError, makeFolder, OptionError, option, sentence } from '@shardtool/base';
import { type ColumnValue, isTableLayout, type OutputLayout } from '@shardtool/format';
import type { CheckedConvertOptions } from '../../options.js';
import type { Destination } from '../../output/destination.js';
import type { OutputFolder } from '../../output/output-folder.js';
import { withProgress } from '../../progress.js';
import { type DatasetShards, sumOfBytes } from '../../shard/dataset-shards.js';
import { layoutOfChoice } from '../../shard/layout-choice.js';
import type { ShardTarget } from '../../shard/new-shard.js';
import { filesOfShard, numberedStem } from '../../shard/shard-paths.js';
import { writeSamples } from '../../shard/write-samples.js';
import { changed } from '../found-index.js';
import type { Recasted } from '../input/input.js';
import { type ViewedShards, viewedShard } from '../input/view.js';
import { type ConvertReport, commit, refuseEmpty, refuseNothing } from '../report.js';
import { openShardSamples, type ShardSamples } from '../shard-samples.js';
import { checkSortColumn, type NewOrder, newPositions, SortValues } from './new-order.js';
import { SampleSpool, type SpooledSample } from './sample-spool.js';

type Input = Recasted<DatasetShards | ViewedShards>;

/**
 * Writes the samples of a dataset to shards of other sizes, or in another order. Samples that keep their order are read
 * and written at the same time. Otherwise each shard is read once, in order, its samples go to a {@link SampleSpool}, and
 * are written from there; this needs as much space as the dataset.
 */
export async function reshard(
  input: Input,
  folder: OutputFolder,
  destination: Destination,
  options: CheckedConvertOptions,
  madeFrom: string,
): Promise<ConvertReport> {
  const order = { seed: options.seed, sortBy: options.sortBy };
  const { format, lmdbValues, index: otherIndexes, maxShardBytes, maxShardSamples, maxSampleBytes, signal } = options;
  if (isTableLayout(format)) {
    const message = `Shards of the format ${format} are converted one by one, so their sizes and order stay: re-shard to tar first, then convert the tars to ${format}.`;
    throw new OptionError({}, message);
  }
  const { classes, columns } = input;
  if (order.sortBy !== undefined)
    checkSortColumn(
      order.sortBy,
      columns.map(({ name }) => name),
    );
  const layout: OutputLayout = await layoutOfChoice({ format, lmdbValues });
  const columnTypes = new Map(columns.map(({ name, type }) => [name, type]));
  const target = { output: folder.path, layout, columnTypes, otherIndexes, maxSampleBytes, lock: folder.lock };
  const bytes = sumOfBytes(input.shards);
  const isOrdered = order.seed !== undefined || order.sortBy !== undefined;
  if (!destination.isElsewhere) folder.checkRoom(isOrdered ? 2 * bytes : bytes, 'The conversion');
  const done = { files: 0, bytes: 0 };
  const skipped = { skippedEntries: 0, skippedLinks: 0, leftOut: 0 };
  return withProgress({ done, stop: () => undefined, close: async () => undefined }, options, async (ticker) => {
    const samples = input.shards.reduce((sum, { record }) => sum + (record?.samples ?? 0), 0);
    ticker.begin('convert', samples, isOrdered ? 2 * bytes : bytes);
    const report = (files: number, size: number) => {
      done.files += files;
      done.bytes += size;
      signal?.throwIfAborted();
    };
    makeFolder(folder.path);
    // Only tars are written in pieces. Elsewhere a large sample has to be in memory, or on disk.
    const seen: SeenShard[] = [];
    const inOrder = samplesOf(input, target, skipped, isOrdered || format === 'tar', seen);
    const reordered = isOrdered ? ordered(input, target, seen, inOrder, order, bytes, report) : inOrder;
    try {
      const shards = await writeSamples(reordered, target, {
        maxShardBytes,
        maxShardSamples,
        begin: async (number) => {
          const stem = numberedStem(options.name, number);
          await folder.announce(layout, [stem], otherIndexes, { madeFrom });
          await destination.sendNotes();
          return stem;
        },
        made: async (stem) => {
          const files = filesOfShard(layout, stem, otherIndexes);
          await destination.sendShard(files, null, files.slice(0, -1));
        },
        report,
        refuseKey(key) {
          const message = sentence`The key ${JSON.stringify(key)} occurs in two shards; exclude one of the samples (${option('excludeKeys')}).`;
          throw new DuplicateKeyError({ key }, message);
        },
      });
      await destination.whenSent();
      if (shards.length === 0) {
        if (input.recast !== undefined || 'view' in input) refuseNothing();
        refuseEmpty(input.shards[0]!.path, skipped.skippedLinks);
      }
      const seen = 'view' in input ? { madeFrom: input.madeFrom } : {};
      return commit(folder, shards, { format, classes, columns, otherIndexes, ...seen }, skipped);
    } finally {
      await reordered.return(undefined);
      await inOrder.return(undefined);
    }
  });
}

type Skipped = { skippedEntries: number; skippedLinks: number; leftOut: number };

/** A shard as it was when the order of the samples was decided. */
type SeenShard = Pick<ShardSamples, 'samples' | 'version'>;

/**
 * The selected samples of all shards, in the order of the dataset. Throws FileChangedError for a shard that differs
 * from the one in `seen`.
 */
async function* samplesOf(
  input: Input,
  target: ShardTarget,
  skipped: Skipped,
  mayBeLarge: boolean,
  seen: readonly SeenShard[],
): AsyncGenerator<SpooledSample> {
  for (let shard = 0; shard < input.shards.length; shard++) {
    const opened = await openShard(input, target, shard);
    if (opened === null) continue;
    try {
      const { samples, version } = seen[shard] ?? opened;
      if (opened.samples !== samples || opened.version !== version) throw changed(input.shards[shard]!);
      skipped.skippedEntries += opened.skippedEntries;
      skipped.skippedLinks += opened.skippedLinks;
      skipped.leftOut += opened.leftOut;
      let row = 0;
      for await (const sample of opened.read(mayBeLarge)) {
        const at = row++;
        const columns = new Map<string, ColumnValue>();
        for (const [name, values] of opened.columns) columns.set(name, values[at] ?? null);
        yield { ...sample, columns };
      }
    } finally {
      await opened.close();
    }
  }
}

/** Null for a shard of which nothing is selected. */
async function openShard(
  input: Input,
  target: ShardTarget,
  shard: number,
  sortBy?: string,
): Promise<ShardSamples | null> {
  if ('view' in input && input.samples[shard] === 0) return null;
  const viewed = 'view' in input ? await viewedShard(input.view, shard) : undefined;
  return openShardSamples(input.shards[shard]!, target, viewed, input.recast ?? null, sortBy);
}

async function* ordered(
  input: Input,
  target: ShardTarget,
  seen: SeenShard[],
  inOrder: AsyncGenerator<SpooledSample>,
  order: NewOrder,
  bytes: number,
  report: (files: number, size: number) => void,
): AsyncGenerator<SpooledSample> {
  const values = order.sortBy === undefined ? null : new SortValues(order.sortBy);
  let samples = 0;
  for (let shard = 0; shard < input.shards.length; shard++) {
    const opened = await openShard(input, target, shard, order.sortBy);
    if (opened === null) continue;
    try {
      seen[shard] = { samples: opened.samples, version: opened.version };
      samples += opened.samples;
      values?.add(opened.valuesOf(order.sortBy!, input.classes));
    } finally {
      await opened.close();
    }
    report(0, 0);
  }
  const positions = newPositions(samples, order, values);
  const spool = new SampleSpool(target.output, samples, bytes);
  try {
    let number = 0;
    for await (const sample of inOrder) {
      await spool.add(positions[number++]!, sample);
      report(0, sample.bytes);
    }
    yield* spool.read();
  } finally {
    spool.close();
  }
}
