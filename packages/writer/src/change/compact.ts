import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { option, sentence } from '@shardtool/base';
import {
  contentOf,
  createManifest,
  type InspectionFile,
  indexPathOf,
  type Manifest,
  packedSidecarPath,
  readInspection,
  readShardIndex,
  writeInspection,
} from '@shardtool/format';
import { openStorage } from '@shardtool/storage';
import { joinShards } from '../convert/convert-shard.js';
import { COMPACT_OPTIONS } from '../option-table.js';
import { manifestShard } from '../output/commit.js';
import { type DatasetShard, sumOfBytes } from '../shard/dataset-shards.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { filesOfShard } from '../shard/shard-paths.js';
import {
  CHANGE_OPTIONS,
  type ChangeOptions,
  changeDataset,
  changing,
  commitChange,
  type OpenChange,
} from './dataset-change.js';
import { forgetChange } from './pending.js';
import { announceShards, changedStem, keepTime, openRewrite, type Rewrite } from './rewrite.js';
import { updateWidsIndex } from './wids-index.js';

/** Sizes up to which shards are joined. */
export interface CompactOptions extends ChangeOptions {
  /** Largest size of a joined shard, in bytes or as a text such as `256MiB`. Default: 256 MiB. */
  readonly maxShardBytes?: number | string | undefined;
  /** Largest number of samples of a joined shard. Default: no limit. */
  readonly maxShardSamples?: number | undefined;
  /** If true, nothing is written, and the report describes what a run would do. Default: false. */
  readonly dryRun?: boolean | undefined;
}

/** What {@link compactDataset} did. */
export interface CompactReport {
  /** Number of shards of the dataset before and afterwards. */
  readonly shardsBefore: number;
  readonly shards: number;
  /** Shards that were joined, and the larger ones that were made of them. */
  readonly joinedShards: number;
  readonly madeShards: number;
  /** Size of the shards that were made, in bytes. */
  readonly madeBytes: number;
  /** The current version. */
  readonly version: string;
}

/**
 * Joins small consecutive shards of a dataset to larger ones, as a new version. The samples, their order and their
 * indices stay the same, as do classes, columns and tombstones; overlays follow. A shard of at least half the maximum
 * size stays. An interrupted call can be repeated. Throws OptionError for a format that only `convert` writes, and
 * DatasetChangedError, SampleChecksumError, DiskFullError, FileError.
 */
export async function compactDataset(location: string, options: CompactOptions = {}): Promise<CompactReport> {
  return changing('compactDataset', { ...COMPACT_OPTIONS, ...CHANGE_OPTIONS }, location, options, (checked) =>
    changeDataset(location, options, (change) => compact(change, checked)),
  );
}

interface Limits {
  readonly maxShardBytes: number;
  readonly maxShardSamples: number;
}

async function compact(change: OpenChange, options: Limits & { readonly dryRun: boolean }): Promise<CompactReport> {
  const { location, storage: how, manifest } = change;
  const { shards } = manifest;
  const groups = planCompaction(shards, options);
  const counts = {
    shardsBefore: shards.length,
    joinedShards: groups.reduce((sum, { to, from }) => sum + to - from, 0),
    madeShards: groups.length,
  };
  const left = { shards: shards.length - counts.joinedShards + counts.madeShards };
  const expected = groups.reduce((sum, { from, to }) => sum + sumOfBytes(shards.slice(from, to)), 0);
  if (groups.length === 0 || options.dryRun) {
    return { ...counts, ...left, madeBytes: expected, version: manifest.identity };
  }
  const storage = await openStorage(location, how);
  if (!change.destination.isElsewhere) change.folder.checkRoom(expected, 'The compaction');
  const rewrite = await openRewrite(
    change,
    sentence`convert its source dataset again with a larger ${option('maxShardBytes')}`,
  );
  const stems = groups.map(({ from, to }) => {
    const files = shards.slice(from, to).map(({ file, crc32 }) => [file, crc32]);
    return changedStem(rewrite.shards[from]!.stem, ['compact', files]);
  });
  const announced = await announceShards(change, rewrite, storage, stems);
  const records = await joinGroups(change, rewrite, groups, stems);
  const next = joinedManifest(manifest, groups, records);
  await updateWidsIndex(change, next, records);
  await change.destination.sendNotes();
  await commitChange(change, next, 'compact');
  await forgetChange(storage, announced);
  return { ...counts, ...left, madeBytes: sumOfBytes(records), version: next.identity };
}

/** Consecutive shards that become one: `from` to `to - 1`. */
export interface ShardGroup {
  readonly from: number;
  readonly to: number;
}

/** Groups of at least two shards. Each takes as many consecutive shards as the limits allow. */
export function planCompaction(
  shards: readonly { readonly bytes: number; readonly samples: number }[],
  limits: Limits,
): readonly ShardGroup[] {
  const groups: ShardGroup[] = [];
  for (let from = 0; from < shards.length; ) {
    let to = from;
    let [bytes, samples] = [0, 0];
    while (to < shards.length && isSmall(shards[to]!, limits)) {
      bytes += shards[to]!.bytes;
      samples += shards[to]!.samples;
      if (bytes > limits.maxShardBytes || samples > limits.maxShardSamples) break;
      to++;
    }
    if (to - from > 1) groups.push({ from, to });
    from = Math.max(to, from + 1);
  }
  return groups;
}

/** True for a shard that is less than half full. Joining a larger one would gain little. */
function isSmall(
  { bytes, samples }: { readonly bytes: number; readonly samples: number },
  { maxShardBytes, maxShardSamples }: Limits,
): boolean {
  return bytes < maxShardBytes / 2 && samples < maxShardSamples / 2;
}

async function joinGroups(
  { destination, folder, signal }: OpenChange,
  { shards, target }: Rewrite,
  groups: readonly ShardGroup[],
  stems: readonly string[],
): Promise<readonly ShardRecord[]> {
  const records: ShardRecord[] = [];
  for (const [i, stem] of stems.entries()) {
    const joined = shards.slice(groups[i]!.from, groups[i]!.to);
    records.push(await joinShards(joined, stem, target, () => signal?.throwIfAborted()));
    if (!destination.isElsewhere) {
      await joinInspections(folder.path, joined, records.at(-1)!);
      keepTime(folder.path, joined, records.at(-1)!);
    }
    await destination.sendShard(filesOfShard(target.layout, stem, target.otherIndexes), null);
  }
  await destination.whenSent();
  return records;
}

/** The measures of images, if all joined shards have them. */
async function joinInspections(folder: string, joined: readonly DatasetShard[], { file }: ShardRecord): Promise<void> {
  const files: InspectionFile[] = [];
  for (const { path, indexPath } of joined) {
    const place = await packedSidecarPath('inspection', path);
    if (!existsSync(place)) return;
    const { samples, fields } = await readShardIndex(indexPath!, { parts: ['fields'] });
    const found = readInspection(place, contentOf({ samples, fields }));
    if (found === null) return;
    files.push(found);
  }
  const [first] = files;
  const names = (columns: InspectionFile['columns']) => [...columns.keys()].join();
  if (files.some(({ columns }) => names(columns) !== names(first!.columns))) return;
  const path = join(folder, file);
  const index = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['fields'] });
  await writeInspection(await packedSidecarPath('inspection', path), {
    content: contentOf(index),
    totals: first!.totals.map((_, i) => files.reduce((sum, { totals }) => sum + totals[i]!, 0)),
    columns: new Map(
      Array.from(first!.columns, ([name, { type }]) => [
        name,
        { type, values: files.flatMap(({ columns }) => columns.get(name)!.values) },
      ]),
    ),
  });
}

function joinedManifest(manifest: Manifest, groups: readonly ShardGroup[], records: readonly ShardRecord[]): Manifest {
  const made = new Map(groups.map(({ from }, i) => [from, manifestShard(records[i]!)]));
  const joined = new Set(groups.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i)));
  return createManifest({
    ...manifest,
    shards: manifest.shards.flatMap((shard, number) => made.get(number) ?? (joined.has(number) ? [] : [shard])),
  });
}
