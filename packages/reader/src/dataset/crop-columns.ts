import { CropIndexError, FileError, VersionError } from '@shardtool/base';
import { type CropIndexTable, imageColumn, type LoadedIndex, openCropIndex } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';

/** Where in the crop index each row of a shard's index lies, and how long it is; 0 bytes where there is nothing. */
export interface CropColumns {
  readonly offset: Float64Array;
  readonly bytes: Uint32Array;
}

/** What a shard's crop index has, and where it is. */
export interface ShardCrops {
  readonly columns: CropColumns;
  readonly path: string;
}

/**
 * Reads the table of a shard's crop index. Null where there is none, or none that can be used: images are decoded without it
 * then, and `verify` says what is wrong with it.
 */
export async function readCrops(
  path: string | null,
  index: LoadedIndex,
  storage?: StorageOptions,
): Promise<ShardCrops | null> {
  if (path === null) return null;
  try {
    const { table, source } = await openCropIndex(path, storage);
    await source.close();
    return { columns: cropColumns(table, index), path };
  } catch (error) {
    if (error instanceof FileError || error instanceof CropIndexError || error instanceof VersionError) return null;
    throw error;
  }
}

/** Only images whose place, length and crc32 are those of the crop index have one: the shard may have been written anew. */
export function cropColumns(table: CropIndexTable, index: LoadedIndex): CropColumns {
  const image = imageColumn(index, undefined);
  const columns = { offset: new Float64Array(index.samples), bytes: new Uint32Array(index.samples) };
  // Without a checksum of the image nothing says that it is the one that the crop index was made of.
  if (image.crc32 === undefined) return columns;
  // An overlay leaves rows out; the others are found by the place of their image.
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
