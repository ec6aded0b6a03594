import { join } from 'node:path';
import { imageColumn, indexPathOf, readShardIndex, type SummedColumns, shardNameOf } from '@shardtool/format';
import type { AppendBase } from '../output/append-base.js';

/** An image of the dataset that has the bytes of a file. */
export interface PackedImage {
  /** Path below the folder that was packed. */
  readonly source: string;
  readonly cls: number;
  /** Name of the shard: `000000.tar`. */
  readonly shard: string;
}

/** Images of a shard by row, from its index. The offset is -1 if a sample has no image. */
type Images = Pick<SummedColumns, 'offset' | 'bytes' | 'crc32'>;

/**
 * Yields the lengths and checksums of all images of the dataset, shard by shard. Throws FileError, ShardIndexError,
 * VersionError.
 */
export async function* packedImages({ folder, manifest }: AppendBase): AsyncGenerator<Images> {
  for (const { file } of manifest.shards) {
    const parts = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['fields'] });
    // Shards written by `pack` have checksums.
    yield imageColumn(parts) as SummedColumns;
  }
}

/** Returns facts about the images in these rows of a shard. */
export async function describeImages(
  { folder, manifest }: AppendBase,
  shard: number,
  rows: readonly number[],
): Promise<PackedImage[]> {
  const { file } = manifest.shards[shard]!;
  const { source, cls } = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['source', 'cls'] });
  return rows.map((row) => ({ source: source[row]!, cls: cls[row]!, shard: shardNameOf(file) }));
}
