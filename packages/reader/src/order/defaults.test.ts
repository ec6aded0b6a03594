import { expect, test } from 'vitest';
import { bufferCount } from './block-buffers.js';
import { orderDefaults } from './defaults.js';

test('all common numbers of ranks have the same order', () => {
  for (const worldSize of [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 192]) {
    expect(orderDefaults({ worldSize, meanSampleBytes: 50_000 })).toEqual({ streams: 192, blockSamples: 32 });
  }
});

test('other numbers of ranks get as many streams as they can share', () => {
  const streams = (worldSize: number) => orderDefaults({ worldSize, meanSampleBytes: 50_000 }).streams;
  expect([5, 40, 128, 1024].map(streams)).toEqual([960, 960, 384, 3072]);
  expect(streams(1021)).toBe(1021);
});

test('a block has the power of two of samples that is nearest to 2 MiB, within limits', () => {
  const block = (meanSampleBytes: number) => orderDefaults({ worldSize: 1, meanSampleBytes }).blockSamples;
  expect([200, 512, 3000, 43_000, 50_000, 110_000, 200_000, 9_000_000].map(block)).toEqual([
    4096, 4096, 512, 64, 32, 16, 16, 16,
  ]);
  expect(block(0)).toBe(4096);
});

test('shuffleBufferSize is the size of the blocks of all streams together', () => {
  const options = { worldSize: 1, meanSampleBytes: 50_000 };
  expect(orderDefaults({ ...options, shuffleBufferSize: 19_200 })).toEqual({ streams: 192, blockSamples: 100 });
  expect(orderDefaults({ ...options, shuffleBufferSize: 50 })).toEqual({ streams: 192, blockSamples: 1 });
  expect(orderDefaults({ ...options, streams: 10, shuffleBufferSize: 50 })).toEqual({ streams: 10, blockSamples: 5 });
  expect(() => orderDefaults({ ...options, blockSamples: 7, shuffleBufferSize: 50 })).toThrow('set only one of them');
});

test('without shuffling a rank reads one stream', () => {
  expect(orderDefaults({ worldSize: 4, meanSampleBytes: 50_000, shuffle: false }).streams).toBe(4);
});

test('a rank holds one block per stream, one more, and the blocks of the samples in its batch slots', () => {
  const options = { streams: 192, blockSamples: 32, batchSize: 64, prefetchBatches: 4 };
  expect(bufferCount({ ...options, worldSize: 1 })).toBe(201);
  expect(bufferCount({ ...options, worldSize: 8, batchSize: 65 })).toBe(34);
});
