import { type IndexPart, indexPathOf, type Manifest, type PartOfIndex, readShardIndex } from '@shardtool/format';
import { joinLocation, type StorageOptions } from '@shardtool/storage';
import type { QuarantinedFile } from '../shard/shard-job.js';

/** The dataset that a pack adds shards to. */
export interface AppendBase {
  /** The folder that shows it: its own, or the one that mirrors the bucket. */
  readonly folder: string;
  /** Where its shards and indexes are read: the folder, or the bucket. */
  readonly location: string;
  readonly storage?: StorageOptions | undefined;
  readonly manifest: Manifest;
  /** Files that were bad when it was packed. */
  readonly quarantined: readonly QuarantinedFile[];
}

/** Reads parts of the index of a shard of the dataset. Throws FileError, ShardIndexError, VersionError. */
export function readBaseIndex<P extends IndexPart>(
  { location, storage }: AppendBase,
  file: string,
  parts: readonly P[],
): Promise<PartOfIndex<P>> {
  return readShardIndex(joinLocation(location, indexPathOf(file)), { parts }, storage);
}
