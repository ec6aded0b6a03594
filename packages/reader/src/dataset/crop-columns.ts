import { CropIndexError, FileError, VersionError } from '@shardtool/base';
import { type CropIndexTable, imageColumn, type LoadedIndex, openCropIndex } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';

/**
 * Offset and length, in the crop index, of the entry of each row of a shard's index. The length is 0 if a row has no
 * entry.
 */
export interface CropColumns {
  readonly offset: Float64Array;
  readonly bytes: Uint32Array;
}

/** The columns of a shard's crop index, and its path. */
export interface ShardCrops {
  readonly columns: CropColumns;
  readonly path: string;
}

/**
 * Reads the table of a shard's crop index. Returns null if there is no usable crop index: images are then decoded
 * without it, and `verify` reports what is wrong with it.
 */
export async function readCrops(
  path: string | null,
  index: () => Promise<LoadedIndex>,
  storage?: StorageOptions,
): Promise<ShardCrops | null> {
  if (path === null) return null;
  try {
    const { table, source } = await openCropIndex(path, storage);
    await source.close();
    return { columns: cropColumns(table, await index()), path };
  } catch (error) {
    if (error instanceof FileError || error instanceof CropIndexError || error instanceof VersionError) return null;
    throw error;
  }
}

/**
 * Only images whose offset, length and crc32 match the crop index get an entry, because the shard may have been
 * rewritten since.
 */
export function cropColumns(table: CropIndexTable, index: LoadedIndex): CropColumns {
  const image = imageColumn(index, undefined);
  const columns = { offset: new Float64Array(index.samples), bytes: new Uint32Array(index.samples) };
  // Without a checksum, the image cannot be matched with its entry in the crop index.
  if (image.crc32 === undefined) return columns;
  // If an overlay hides rows, the remaining rows are found by the offset of their image.
  const byPlace = table.rows === index.samples ? null : new Map(Array.from(table.imageOffset, (at, row) => [at, row]));
  for (let row = 0; row < index.samples; row++) {
    const from = byPlace === null ? row : byPlace.get(image.offset[row]!);
    if (from === undefined || table.imageOffset[from] !== image.offset[row]) continue;
    if (table.imageBytes[from] !== image.bytes[row] || table.imageCrc32[from] !== image.crc32[row]) continue;
    columns.offset[row] = table.offset[from]!;
    columns.bytes[row] = table.bytes[from]!;
  }
  return columns;
}
