import type { ShardIndex } from '@shardtool/format';
import { expect, test } from 'vitest';
import { LOCAL } from '../../dataset/shards/read-profiles.js';
import type { ShardStore } from '../../dataset/shards/shard-store.js';
import { Arena } from './arena.js';
import { load, loadSamples, planLoad } from './load-shards.js';

const SAMPLES = 6;
const BYTES = 100;
/** There are three bytes between two samples. */
const offset = Float64Array.from({ length: SAMPLES }, (_, row) => row * (BYTES + 3));
const index = { offset, bytes: new Uint32Array(SAMPLES).fill(BYTES), key: [] } as unknown as ShardIndex;

/** A shard whose every byte is `value`. */
function storeOf(value: number): ShardStore {
  return {
    bytes: { mayDiffer: false, read: async (_range, target) => void target.fill(value) },
    indexes: { index: async () => index, checkSizes: () => {} },
    crops: { columns: async () => null },
    costs: { profile: LOCAL, parallel: 4 },
  };
}

test('reading the rest of a block does not overwrite loaded samples, because they may be in use', async () => {
  const arena = new Arena(2 ** 16);
  const rows = Uint32Array.from({ length: SAMPLES }, (_, row) => row);
  const { shards, bytes } = await planLoad([{ shard: 0, rows }], storeOf(0));
  const place = arena.allocate(bytes);
  const samples = [
    { shard: 0, row: 1 },
    { shard: 0, row: 4 },
  ];
  await loadSamples(samples, shards, { store: storeOf(1), arena, place });
  await load(shards, { store: storeOf(2), arena, place }, samples);
  const { stretches } = shards.get(0)!;
  for (let row = 0; row < SAMPLES; row++) {
    const at = place + stretches[0]!.at + (offset[row]! - stretches[0]!.offset);
    expect(new Set(arena.view(at, BYTES)), `row ${row}`).toEqual(new Set([row === 1 || row === 4 ? 1 : 2]));
  }
});
