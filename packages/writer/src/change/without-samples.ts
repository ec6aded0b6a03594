import { createManifest, type Manifest, type ShardIndex } from '@shardtool/format';
import { openDataset, shardWithout } from '@shardtool/reader';
import { openStorage } from '@shardtool/storage';
import { convertShard } from '../convert/convert-shard.js';
import { manifestShard } from '../output/commit.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { filesOfShard } from '../shard/shard-paths.js';
import type { OpenChange } from './dataset-change.js';
import { announceShards, changedStem, keepTime, openRewrite } from './rewrite.js';

/** Samples that a change removes from one shard: their rows and keys, and their numbers by class and by field. */
export interface RemovedRows {
  readonly rows: ReadonlySet<number>;
  readonly keys: readonly string[];
  readonly classes: ReadonlyMap<number, number>;
  readonly fields: ReadonlyMap<string, number>;
}

/** The rows of an index for which `isRemoved` is true. */
export function removedRows(
  { key, cls, fields }: Pick<ShardIndex, 'key' | 'cls' | 'fields'>,
  isRemoved: (row: number) => boolean,
): RemovedRows {
  const removed = {
    rows: new Set<number>(),
    keys: [] as string[],
    classes: new Map<number, number>(),
    fields: new Map<string, number>(),
  };
  key.forEach((name, row) => {
    if (!isRemoved(row)) return;
    removed.rows.add(row);
    removed.keys.push(name);
    removed.classes.set(cls[row]!, (removed.classes.get(cls[row]!) ?? 0) + 1);
    for (const [field, { offset }] of fields) {
      if (offset[row]! >= 0) removed.fields.set(field, (removed.fields.get(field) ?? 0) + 1);
    }
  });
  return removed;
}

/**
 * Writes the affected shards again, in new files. Their records are in the order of `rows`; some may be empty. `erases`:
 * hashes of the keys, if the change erases them. Throws OptionError for a format that only `convert` writes; `remedy`
 * completes its sentence.
 */
export async function rewriteShards(
  change: OpenChange,
  rows: ReadonlyMap<number, RemovedRows>,
  remedy: string,
  erases: readonly string[] = [],
): Promise<{ readonly records: readonly ShardRecord[]; readonly announced: string }> {
  const { location, storage: how, destination, folder, manifest, signal } = change;
  const rewrite = await openRewrite(change, remedy);
  const { shards, target } = rewrite;
  const stems = new Map(
    [...rows].map(([shard, { keys }]) => {
      const { stem } = shards[shard]!;
      return [shard, changedStem(stem, [stem, manifest.shards[shard]!.crc32, keys])];
    }),
  );
  const storage = await openStorage(location, how);
  const announced = await announceShards(change, rewrite, storage, [...stems.values()], erases);
  // Another process may have changed the dataset since; the commit then fails.
  await using dataset = await openDataset(location, { version: manifest.identity, storage: how });
  const records: ShardRecord[] = [];
  for (const [shard, stem] of stems) {
    const removed = rows.get(shard)!.rows;
    const viewed = shardWithout(dataset.shards[shard]!, (row) => removed.has(row));
    if (viewed.samples === 0) {
      records.push(NO_SHARD);
      continue;
    }
    const stop = () => signal?.throwIfAborted();
    const record = await convertShard({ ...shards[shard]!, stem }, target, stop, viewed);
    records.push(record);
    if (!destination.isElsewhere) keepTime(folder.path, [shards[shard]!], record);
    await destination.sendShard(filesOfShard(target.layout, stem, target.otherIndexes), null);
  }
  await destination.whenSent();
  return { records, announced };
}

/** The record of a shard of which nothing is left. */
const NO_SHARD: ShardRecord = {
  file: '',
  bytes: 0,
  crc32: 0,
  md5: null,
  samples: 0,
  maxSampleBytes: 0,
  classCounts: new Map(),
  fieldCounts: new Map(),
};

/** The dataset with the records of shards that were written again. */
export function manifestWithout(
  manifest: Manifest,
  rows: ReadonlyMap<number, RemovedRows>,
  records: readonly ShardRecord[],
): Manifest {
  const byShard = new Map([...rows.keys()].map((shard, i) => [shard, records[i]!]));
  const sumOf = (count: (removed: RemovedRows) => number) =>
    [...rows.values()].reduce((sum, one) => sum + count(one), 0);
  return createManifest({
    ...manifest,
    classes: manifest.classes.map(({ name, samples }, cls) => ({
      name,
      samples: samples - sumOf(({ classes }) => classes.get(cls) ?? 0),
    })),
    fields: manifest.fields
      .map(({ name, samples }) => ({ name, samples: samples - sumOf(({ fields }) => fields.get(name) ?? 0) }))
      .filter(({ samples }) => samples > 0),
    shards: manifest.shards.flatMap((shard, number) => {
      const record = byShard.get(number);
      if (record === undefined) return [shard];
      return record.samples === 0 ? [] : [manifestShard(record)];
    }),
  });
}
