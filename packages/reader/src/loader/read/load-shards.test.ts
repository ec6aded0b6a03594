import type { ShardIndex } from '@shardtool/format';
import { expect, test } from 'vitest';
import { Arena } from './arena.js';
import { load, loadSamples, planLoad } from './load-shards.js';

const SAMPLES = 6;
const BYTES = 100;
/** Three bytes lie between two samples. */
const offset = Float64Array.from({ length: SAMPLES }, (_, row) => row * (BYTES + 3));
const index = { offset, bytes: new Uint32Array(SAMPLES).fill(BYTES), key: [] } as unknown as ShardIndex;

/** A shard whose every byte is `value`. */
function storeOf(value: number) {
  return {
    index: async () => index,
    crops: async () => null,
    readCrops: async () => {},
    read: async (_shard: number, _offset: number, target: Uint8Array) => void target.fill(value),
  };
}

test('what is read of a block later leaves the samples alone that were there before: somebody may be using them', async () => {
  const arena = new Arena(2 ** 16);
  const rows = Uint32Array.from({ length: SAMPLES }, (_, row) => row);
  const { shards, bytes } = await planLoad([{ shard: 0, rows }], storeOf(0));
  const place = arena.allocate(bytes);
  const samples = [
    { shard: 0, row: 1 },
    { shard: 0, row: 4 },
  ];
  await loadSamples(samples, shards, place, storeOf(1), arena);
  await load(shards, place, storeOf(2), arena, samples);
  const { stretches } = shards.get(0)!;
  for (let row = 0; row < SAMPLES; row++) {
    const at = place + stretches[0]!.at + (offset[row]! - stretches[0]!.offset);
    expect(new Set(arena.view(at, BYTES)), `row ${row}`).toEqual(new Set([row === 1 || row === 4 ? 1 : 2]));
  }
});
