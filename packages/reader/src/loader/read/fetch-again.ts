import { crc32 } from '@shardtool/base';
import { fieldPayload } from '@shardtool/format';
import type { ShardStore } from '../../dataset/shards/shard-store.js';
import type { Arena } from './arena.js';
import { type Block, locate, placeOf } from './block.js';

/** Whether a field of a sample in memory differs from the crc32 in the index. Fields without a crc32 are not checked. */
export function isChanged(block: Block, item: number, arena: Arena): boolean {
  const { index, indexRow, stretches } = locate(block, item);
  for (const { offset, bytes, crc32: expected, msgpack } of index.fields.values()) {
    if (expected === undefined || offset[indexRow]! < 0) continue;
    const stored = arena.view(placeOf(block, stretches, offset[indexRow]!), bytes[indexRow]!);
    try {
      if (crc32(fieldPayload(stored, msgpack?.[indexRow] === 1)) !== expected[indexRow]) return true;
    } catch {
      // The msgpack value is damaged, so it has no payload whose checksum could be computed.
      return true;
    }
  }
  return false;
}

/**
 * Reads a sample again, to the same place in memory, bypassing every cache. Returns false if that would only read the
 * same bytes.
 */
export async function fetchSampleAgain(
  block: Block,
  item: number,
  { bytes }: Pick<ShardStore, 'bytes'>,
  arena: Arena,
): Promise<boolean> {
  if (!bytes.mayDiffer) return false;
  const { index, indexRow, stretches } = locate(block, item);
  const offset = index.offset[indexRow]!;
  const target = arena.view(placeOf(block, stretches, offset), index.bytes[indexRow]!);
  await bytes.read({ shard: block.shard[item]!, file: 'shard', offset, isFresh: true }, target);
  return true;
}
