import { crc32 } from '@shardtool/base';
import { fieldPayload } from '@shardtool/format';
import type { Arena } from './arena.js';
import { type Block, locate, placeOf } from './block.js';
import type { ShardStore } from './load-shards.js';

/** Whether some field of a sample in memory is not what was packed, as far as the index has its crc32. */
export function isChanged(block: Block, item: number, arena: Arena): boolean {
  const { index, indexRow, stretches } = locate(block, item);
  for (const { offset, bytes, crc32: expected, msgpack } of index.fields.values()) {
    if (expected === undefined || offset[indexRow]! < 0) continue;
    const stored = arena.view(placeOf(block, stretches, offset[indexRow]!), bytes[indexRow]!);
    try {
      if (crc32(fieldPayload(stored, msgpack?.[indexRow] === 1)) !== expected[indexRow]) return true;
    } catch {
      // There is no value to be summed any more.
      return true;
    }
  }
  return false;
}

/** Fetches a sample once more, into its place; false where the store cannot do better than before. */
export async function fetchSampleAgain(block: Block, item: number, store: ShardStore, arena: Arena): Promise<boolean> {
  if (store.readAgain === undefined) return false;
  const { index, indexRow, stretches } = locate(block, item);
  const offset = index.offset[indexRow]!;
  const bytes = index.bytes[indexRow]!;
  await store.readAgain(block.shard[item]!, offset, arena.view(placeOf(block, stretches, offset), bytes));
  return true;
}
