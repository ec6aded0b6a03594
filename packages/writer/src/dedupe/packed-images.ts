import { imageColumn, type SummedColumns, shardNameOf } from '@shardtool/format';
import { type AppendBase, readBaseIndex } from '../output/append-base.js';

/** An image of the dataset that has the bytes of a file. */
export interface PackedImage {
  /** Path below the folder that was packed. */
  readonly source: string;
  readonly cls: number;
  /** Name of the shard: `000000.tar`. */
  readonly shard: string;
}

/** The dataset whose images are compared. `primary` is the field that takes their place, if its samples have none. */
export type ComparedBase = AppendBase & { readonly primary?: string | undefined };

/** Images of a shard by row, from its index. The offset is -1 if a sample has no image. */
type Images = Pick<SummedColumns, 'offset' | 'bytes' | 'crc32'>;

/**
 * Yields the lengths and checksums of all images of the dataset, shard by shard. Throws FileError, ShardIndexError,
 * VersionError.
 */
export async function* packedImages(base: ComparedBase): AsyncGenerator<Images> {
  for (const { file } of base.manifest.shards) {
    const parts = await readBaseIndex(base, file, ['fields']);
    // Shards written by `pack` have checksums.
    yield imageColumn(parts, base.primary) as SummedColumns;
  }
}

/** Returns facts about the images in these rows of a shard. */
export async function describeImages(base: AppendBase, shard: number, rows: readonly number[]): Promise<PackedImage[]> {
  const { file } = base.manifest.shards[shard]!;
  const { source, cls } = await readBaseIndex(base, file, ['source', 'cls']);
  return rows.map((row) => ({ source: source[row]!, cls: cls[row]!, shard: shardNameOf(file) }));
}
