import { inTurn, range } from '@shardtool/base';
import { KeyHashes, type ShardKeys } from './key-hashes.js';
import { KeyTable } from './key-table.js';
import type { Keys } from './unknown-key.js';

/** Number of samples up to which all keys stay in memory, at about 50 bytes each. Above it, hashes of 4 to 8 bytes do. */
export const WHOLE_KEYS = 4_000_000;
/** Number of shards whose keys are read at a time. */
const KEY_READS = 8;

/** The keys of these shards, for many look-ups in one process. */
export async function keysOfShards(shards: ShardKeys): Promise<Keys> {
  const { firstSample, keysOf } = shards;
  const count = firstSample.length - 1;
  const samples = firstSample[count]!;
  if (samples > WHOLE_KEYS) return new KeyHashes(shards);
  const table = new KeyTable(samples);
  for await (const keys of inTurn(range(count), KEY_READS, keysOf)) table.add(keys);
  return table;
}
