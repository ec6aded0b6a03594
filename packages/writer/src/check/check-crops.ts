import { countOf } from '@shardtool/base';
import { checkedCropIndex, imageColumn, openCropIndex, type ShardIndex } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { reasonOf, type ShardFaults } from './faults.js';

/** Bytes that are read at a time, unless one row is longer. */
const READ_BYTES = 4 << 20;

/**
 * Checks the crop index of a shard against the shard's index: each row must be about the image of its sample and
 * unchanged. Faults found here never cause wrong pixels, because loaders then ignore the crop index.
 */
export async function checkCrops(
  path: string,
  index: ShardIndex,
  faults: ShardFaults,
  storage?: StorageOptions,
): Promise<void> {
  const wrong = (what: string, key?: string) =>
    faults.add(`its crop index ${what}; to rebuild it, run "shardtool index --index crops"`, key);
  try {
    const { table, source } = await openCropIndex(path, storage);
    try {
      if (table.rows !== index.samples)
        return wrong(`has ${countOf(table.rows, 'row')}, the index ${countOf(index.samples, 'sample')}`);
      const image = imageColumn(index, undefined);
      let window = Buffer.alloc(0);
      let windowAt = 0;
      for (let row = 0; row < table.rows; row++) {
        const isAlike = table.imageOffset[row] === image.offset[row];
        const hasImage = image.offset[row]! >= 0;
        const isSame = table.imageBytes[row] === image.bytes[row] && table.imageCrc32[row] === image.crc32?.[row];
        if (!isAlike || (hasImage && !isSame)) wrong('belongs to another image', index.key[row]);
        const [offset, bytes] = [table.offset[row]!, table.bytes[row]!];
        if (bytes === 0) continue;
        if (offset + bytes > windowAt + window.length) {
          window = Buffer.alloc(Math.max(bytes, Math.min(READ_BYTES, source.size - offset)));
          windowAt = offset;
          await source.readAt(offset, window);
        }
        const stored = window.subarray(offset - windowAt, offset - windowAt + bytes);
        if (checkedCropIndex(stored, table.imageCrc32[row]!) === null) wrong('has changed', index.key[row]);
      }
    } finally {
      await source.close();
    }
  } catch (error) {
    faults.add(reasonOf(error));
  }
}
