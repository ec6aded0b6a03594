import { createHash } from 'node:crypto';
import { statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { OptionError, type Sentence, sentence } from '@shardtool/base';
import { isTableLayout } from '@shardtool/format';
import type { Storage } from '@shardtool/storage';
import { PACK_DEFAULTS } from '../options.js';
import { noteShards } from '../output/pack-note.js';
import { type DatasetShard, packedShards } from '../shard/dataset-shards.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { ShardRecord, ShardTarget } from '../shard/new-shard.js';
import { shardPaths } from '../shard/shard-paths.js';
import type { OpenChange } from './dataset-change.js';
import { announceChange } from './pending.js';

/** The shards of a dataset that is changed, and how those that replace some of them are written. */
export interface Rewrite {
  readonly shards: readonly DatasetShard[];
  readonly target: ShardTarget;
}

/** Throws OptionError for a format that only `convert` writes. `remedy` completes its sentence. */
export async function openRewrite(change: OpenChange, remedy: string | Sentence): Promise<Rewrite> {
  const { location, storage, manifest, folder } = change;
  const { format } = manifest;
  if (isTableLayout(format)) {
    const message = sentence`The dataset ${location} has shards of the format ${format}, which only "convert" writes: ${remedy}.`;
    throw new OptionError({ path: location }, message);
  }
  const { otherIndexes, options: noted = {} } = folder.noted();
  const lmdbValues = (noted.lmdbValues as 'sample' | 'image' | undefined) ?? PACK_DEFAULTS.lmdbValues;
  const target = {
    output: folder.path,
    layout: await layoutOfChoice({ format, lmdbValues }),
    columnTypes: new Map(manifest.columns.map(({ name, type }) => [name, type])),
    otherIndexes,
    maxSampleBytes: manifest.shards.reduce(
      (most, one) => Math.max(most, one.maxSampleBytes),
      PACK_DEFAULTS.maxSampleBytes,
    ),
    lock: folder.lock,
  };
  return { shards: (await packedShards(location, manifest, storage)).shards, target };
}

/**
 * Announces the shards that a change is about to write. `erases`: hashes of the keys that it erases. Returns the name of
 * the list, for `forgetChange`.
 */
export async function announceShards(
  { folder, destination }: OpenChange,
  { target: { layout } }: Rewrite,
  storage: Storage,
  stems: readonly string[],
  erases: readonly string[] = [],
): Promise<string> {
  const files = stems.flatMap((stem) => {
    const { file, sidecars } = shardPaths(layout, stem);
    return [file, ...sidecars];
  });
  const announced = await announceChange(storage, { files, erases });
  await noteShards(folder.path, stems);
  await destination.sendNotes();
  return announced;
}

/**
 * Name of a shard that a change writes again: the first name, and a digest of what it is made from. A repeated call
 * makes the same file.
 */
export function changedStem(stem: string, madeFrom: readonly unknown[]): string {
  const digest = createHash('sha256').update(JSON.stringify(madeFrom)).digest('hex');
  return `${stem.replace(/-v[0-9a-f]{8}$/, '')}-v${digest.slice(0, 8)}`;
}

/**
 * Gives a shard the time of the oldest one that it was made from: an append compares it with the times of files, to find
 * those that have changed since they were packed.
 */
export function keepTime(folder: string, from: readonly DatasetShard[], { file }: ShardRecord): void {
  const time = Math.min(...from.map(({ path }) => statSync(path).mtimeMs)) / 1000;
  utimesSync(join(folder, file), time, time);
}
