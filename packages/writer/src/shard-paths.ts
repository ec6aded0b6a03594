import { indexPathOf, type ShardLayout } from '@shardtool/format';

/** Where a shard lies below the folder of its dataset. */
export interface ShardPaths {
  /** The shard's file: `train-000000.tar`, `000000.lmdb/data.mdb`. */
  readonly file: string;
  /** The folder that belongs to the shard alone; null where it is a file in the dataset's folder. */
  readonly folder: string | null;
  readonly index: string;
}

/** Names shard `number`, `name` in front of it. */
export function shardPaths(layout: ShardLayout, name: string, number: number): ShardPaths {
  const shard = `${name === '' ? '' : `${name}-`}${String(number).padStart(6, '0')}${layout.extension}`;
  const index = indexPathOf(shard);
  return layout.innerFile === undefined
    ? { file: shard, folder: null, index }
    : { file: `${shard}/${layout.innerFile}`, folder: shard, index };
}

/** A file carries this at the end of its name until it is whole; `writeDurably` uses the same. */
export const TEMPORARY = '.part';
