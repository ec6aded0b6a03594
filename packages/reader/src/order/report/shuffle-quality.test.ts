import { expect, test } from 'vitest';
import { type ShuffleQualityOptions, shuffleQuality } from './shuffle-quality.js';

/** 400 shards of 250 samples; 50 classes, sorted. */
const options = {
  counts: Array<number>(400).fill(250),
  seed: 42,
  epoch: 0,
  streams: 192,
  blockSamples: 32,
  globalBatch: 256,
  classes: { of: (number: number) => Math.floor(number / 2000), counts: Array<number>(50).fill(2000) },
} satisfies ShuffleQualityOptions;

test('single samples as units give a perfect shuffle', () => {
  const { shard, class: ofClass, repeat, sampledBatches } = shuffleQuality({ ...options, unit: 'sample' });
  expect(sampledBatches).toBe(50);
  expect(shard).toBeCloseTo(1, 1);
  expect(ofClass).toBeCloseTo(1, 1);
  expect(repeat).toBeGreaterThan(0.9);
  expect(repeat).toBeLessThan(1.1);
});

test('the score grows with fewer streams, and without shuffling it is that of a batch from one shard', () => {
  const [defaults, few] = [shuffleQuality(options), shuffleQuality({ ...options, streams: 16, blockSamples: 400 })];
  expect(defaults.shard).toBeLessThan(3);
  expect(few.shard).toBeGreaterThan(2 * defaults.shard!);
  const none = shuffleQuality({ ...options, streams: 1, shuffle: false });
  expect(none.shard).toBeGreaterThan(250);
  expect(none.class).toBeGreaterThan(45);
  expect(none.repeat).toBeGreaterThan(350);
});

test('a score that cannot be computed is null', () => {
  const { class: ofClass } = shuffleQuality({ ...options, counts: [600, 600], classes: undefined });
  expect(ofClass).toBeNull();
  const single = shuffleQuality({ ...options, counts: [1], classes: undefined });
  expect(single).toEqual({ shard: null, class: null, repeat: null, sampledBatches: 1 });
  const empty = shuffleQuality({ ...options, counts: [], classes: undefined });
  expect(empty).toEqual({ shard: null, class: null, repeat: null, sampledBatches: 0 });
  expect(shuffleQuality({ ...options, counts: Array<number>(5000).fill(1), classes: undefined }).shard).toBeNull();
});

test('large blocks and batches are sampled less often, so that the score stays fast', () => {
  const large = shuffleQuality({ ...options, blockSamples: 4096, globalBatch: 8192, unit: 'shard' });
  expect(large.sampledBatches).toBe(4);
});
