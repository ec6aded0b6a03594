import { type OutputLayout, sidecarOfShard, sidecarPath } from '@shardtool/format';
import type { OtherIndex } from '../options.js';

/** Paths of a shard below the folder of its dataset. */
export interface ShardPaths {
  /** Path of the shard itself: its file, or its folder. */
  readonly shard: string;
  /** Path of the shard's file: `train-000000.tar`, `000000.lmdb/data.mdb`. */
  readonly file: string;
  /** Folder that belongs to this shard only; null if the shard is a file in the dataset's folder. */
  readonly folder: string | null;
  readonly index: string;
  /** Paths of all possible files next to it, including the index. */
  readonly sidecars: readonly string[];
}

/** Name of shard `number` without its extension: `train-000000` if `name` is `train`. */
export function numberedStem(name: string, number: number): string {
  return `${name === '' ? '' : `${name}-`}${String(number).padStart(6, '0')}`;
}

/** Returns the paths of the shard called `stem`. */
export function shardPaths(
  layout: Pick<OutputLayout, 'extension' | 'innerFile' | 'shardFolder'>,
  stem: string,
): ShardPaths {
  const shard = (layout.shardFolder === undefined ? '' : `${layout.shardFolder}/`) + stem + layout.extension;
  const others = { index: sidecarPath('index', shard), sidecars: sidecarOfShard(shard) };
  return layout.innerFile === undefined
    ? { shard, file: shard, folder: null, ...others }
    : { shard, file: `${shard}/${layout.innerFile}`, folder: shard, ...others };
}

/** Paths of all files of a shard with these indexes, below the folder of its dataset. The shard's own file is last. */
export function filesOfShard(
  layout: Pick<OutputLayout, 'extension' | 'innerFile' | 'shardFolder'>,
  stem: string,
  otherIndexes: readonly OtherIndex[],
): string[] {
  return [...sidecarOfShard(shardPaths(layout, stem).shard, ['index', ...otherIndexes]), shardPaths(layout, stem).file];
}
