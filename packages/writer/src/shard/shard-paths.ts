import { type OutputLayout, sidecarOfShard, sidecarPath } from '@shardtool/format';
import type { OtherIndex } from './other-indexes.js';

/** Where a shard lies below the folder of its dataset. */
export interface ShardPaths {
  /** What is one shard: its file, or its folder. */
  readonly shard: string;
  /** The shard's file: `train-000000.tar`, `000000.lmdb/data.mdb`. */
  readonly file: string;
  /** The folder that belongs to the shard alone; null where it is a file in the dataset's folder. */
  readonly folder: string | null;
  readonly index: string;
  /** All that can lie beside it, the index too. */
  readonly beside: readonly string[];
}

/** What shard `number` is called, without its ending: `train-000000`, where `name` is `train`. */
export function numberedStem(name: string, number: number): string {
  return `${name === '' ? '' : `${name}-`}${String(number).padStart(6, '0')}`;
}

/** Places the shard that is called `stem`. */
export function shardPaths(
  layout: Pick<OutputLayout, 'extension' | 'innerFile' | 'shardFolder'>,
  stem: string,
): ShardPaths {
  const shard = (layout.shardFolder === undefined ? '' : `${layout.shardFolder}/`) + stem + layout.extension;
  const others = { index: sidecarPath('index', shard), beside: sidecarOfShard(shard) };
  return layout.innerFile === undefined
    ? { shard, file: shard, folder: null, ...others }
    : { shard, file: `${shard}/${layout.innerFile}`, folder: shard, ...others };
}

/** All files of a shard that has these indexes, below the folder of its dataset: its own file comes last. */
export function filesOfShard(
  layout: Pick<OutputLayout, 'extension' | 'innerFile' | 'shardFolder'>,
  stem: string,
  otherIndexes: readonly OtherIndex[],
): string[] {
  return [...sidecarOfShard(shardPaths(layout, stem).shard, ['index', ...otherIndexes]), shardPaths(layout, stem).file];
}
