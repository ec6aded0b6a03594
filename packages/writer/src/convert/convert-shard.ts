import type { ColumnValue, IndexRows, ShardWriter } from '@shardtool/format';
import type { DatasetShard } from '../shard/dataset-shards.js';
import { createShard, type ShardRecord, type ShardTarget } from '../shard/new-shard.js';
import { putStored } from '../shard/put-stored.js';
import type { Report } from '../shard/shard-job.js';
import type { Recast } from './input/recast.js';
import type { ViewedShard } from './input/view.js';
import { openShardSamples, type ShardSamples } from './shard-samples.js';

/** Result of converting a shard. */
export interface ConvertedShard extends ShardRecord {
  /** Its number in the dataset. */
  readonly shard: number;
  /** Number of files in it that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
  /** Number of links in it that were not followed. */
  readonly skippedLinks: number;
  /** Number of samples that have no row in the labels, or were not selected. */
  readonly leftOut: number;
}

/**
 * Writes the samples of a shard, in the order of its index, to a new shard of the same name. Every field is checked
 * against its crc32. With `viewed` the samples and classes are those of its index. Throws {@link SampleChecksumError}
 * with shard and key for a damaged sample, ShardIndexError for an index of another pack, SampleSizeError,
 * EntryNameError or KeyLengthError for samples that the new layout does not support, {@link DiskFullError} and
 * FileError. After an error nothing of the new shard is left. `whenFilled` is that of {@link createShard}.
 */
export async function convertShard(
  input: DatasetShard,
  target: ShardTarget,
  report: Report,
  viewed?: ViewedShard,
  recast: Recast | null = null,
  whenFilled?: () => unknown,
): Promise<Omit<ConvertedShard, 'shard'>> {
  const opened = await openShardSamples(input, target, viewed, recast);
  try {
    const { samples, skippedEntries, skippedLinks, leftOut } = opened;
    const fill = async (writer: ShardWriter, rows: IndexRows) => {
      await copySamples(opened, writer, rows, report);
      return opened.columns;
    };
    const record = await createShard(target, input.stem, samples, fill, whenFilled);
    return { ...record, skippedEntries, skippedLinks, leftOut };
  } finally {
    await opened.close();
  }
}

/**
 * Writes the samples of several shards, in their order, to one new shard called `stem`. Errors are those of
 * {@link convertShard}.
 */
export async function joinShards(
  inputs: readonly DatasetShard[],
  stem: string,
  target: ShardTarget,
  report: Report,
): Promise<ShardRecord> {
  const samples = inputs.reduce((sum, { record }) => sum + record!.samples, 0);
  return createShard(target, stem, samples, async (writer, rows) => {
    const columns = new Map([...target.columnTypes.keys()].map((name): [string, ColumnValue[]] => [name, []]));
    for (const input of inputs) {
      const opened = await openShardSamples(input, target);
      try {
        await copySamples(opened, writer, rows, report);
        for (const [name, values] of opened.columns) for (const value of values) columns.get(name)!.push(value);
      } finally {
        await opened.close();
      }
    }
    return columns;
  });
}

async function copySamples(
  { read, columns }: ShardSamples,
  writer: ShardWriter,
  rows: IndexRows,
  report: Report,
): Promise<void> {
  let row = 0;
  for await (const sample of read(writer.writeInPieces !== undefined)) {
    const at = row++;
    writer.describe?.({ cls: sample.facts.cls, label: (name) => columns.get(name)?.[at] ?? null });
    await putStored(writer, rows, sample);
    report(1, sample.bytes);
  }
}
