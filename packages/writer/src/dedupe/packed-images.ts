import { join } from 'node:path';
import { imageColumn, indexPathOf, readShardIndex, type SummedColumns, shardNameOf } from '@shardtool/format';
import type { AppendBase } from '../pack/append.js';

/** An image that the dataset has: what stands for a file with the same bytes. */
export interface PackedImage {
  /** Below the folder that was packed. */
  readonly source: string;
  readonly cls: number;
  /** Name of the shard: `000000.tar`. */
  readonly shard: string;
}

/** The images of a shard by their rows, as its index has them. Offset -1 where a sample has none. */
type Images = Pick<SummedColumns, 'offset' | 'bytes' | 'crc32'>;

/** The lengths and checksums of all images of the dataset, shard by shard. Throws FileError, ShardIndexError, VersionError. */
export async function* packedImages({ folder, manifest }: AppendBase): AsyncGenerator<Images> {
  for (const { file } of manifest.shards) {
    const parts = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['fields'] });
    // What `pack` wrote has checksums.
    yield imageColumn(parts) as SummedColumns;
  }
}

/** What is known of the images in these rows of a shard. */
export async function describeImages(
  { folder, manifest }: AppendBase,
  shard: number,
  rows: readonly number[],
): Promise<PackedImage[]> {
  const { file } = manifest.shards[shard]!;
  const { source, cls } = await readShardIndex(join(folder, indexPathOf(file)), { parts: ['source', 'cls'] });
  return rows.map((row) => ({ source: source[row]!, cls: cls[row]!, shard: shardNameOf(file) }));
}
