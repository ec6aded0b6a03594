import { locate, partOf } from '../../read/block.js';
import { keptImageColumn } from '../../read/readers/image-column.js';
import type { Engine } from '../../work/engine.js';
import type { PendingBatch } from '../pending-batch.js';

/**
 * The encoded image of each row, as a view of the read buffers. Empty if the sample has no image. `image`: the field
 * with the image.
 */
export function encodedImages(
  { blocks, items }: PendingBatch,
  engine: Pick<Engine, 'encoded'>,
  image: string | undefined,
): Uint8Array[] {
  return blocks.map((block, row) => {
    const located = locate(block, items[row]!);
    const column = keptImageColumn(located.index, image);
    if (column.offset[located.indexRow]! < 0) return new Uint8Array(0);
    return engine.encoded(partOf(block, located, column, false));
  });
}
