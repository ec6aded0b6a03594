import { expect, test } from 'vitest';
import { planEpoch } from '../batches.js';
import { planReport } from './report.js';

/** 1,281 shards of 1,000 samples of 50 KB. */
const imagenet = {
  counts: Array<number>(1281).fill(1000),
  shardBytes: Array<number>(1281).fill(50_000_000),
  seed: 42,
  epoch: 0,
  streams: 192,
  blockSamples: 32,
  worldSize: 8,
  globalBatch: 512,
  prefetchBatches: 4,
  rowBytes: 224 * 224 * 3,
};

test('the plan of an epoch with eight ranks lists batches, padding, reads and memory', () => {
  const report = planReport(imagenet);
  expect(report).toMatchObject({ samples: 1_281_000, shards: 1281, batchSize: 64, batches: 2502, lastBatch: 'pad' });
  expect([report.paddedRows, report.droppedSamples]).toEqual([2502 * 512 - 1_281_000, 0]);
  expect(report.order).toEqual({ unit: 'shard', streams: 192, blockSamples: 32, shuffleBufferSize: 6144 });
  expect(report.memory).toEqual({
    buffers: 33,
    bufferBytes: 1_600_000,
    readBytes: 33 * 1_600_000,
    slotBytes: 4 * 64 * 150_528,
    totalBytes: 33 * 1_600_000 + 4 * 64 * 150_528,
  });
  const blocks = 1_281_000 / 32 / 8;
  expect(report.reads.count).toBeGreaterThan(blocks);
  expect(report.reads.count).toBeLessThan(1.1 * blocks);
  expect(report.reads.meanBytes * report.reads.count).toBeGreaterThan(0.99 * (1_281_000 / 8) * 50_000);
  expect(report.reads.largestBytes).toBe(32 * 50_000);
  expect(report.shuffleQuality.shard).toBeLessThan(5);
  expect(report.step).toBeNull();
});

test('for few blocks, their reads are counted exactly', () => {
  const counts = [10, 0, 6];
  const report = planReport({
    ...imagenet,
    counts,
    shardBytes: [1000, 0, 60],
    streams: 1,
    blockSamples: 5,
    worldSize: 1,
    globalBatch: 4,
    shuffle: false,
  });
  expect(report.order.unit).toBe('shard');
  expect(report.reads).toEqual({ count: 4, meanBytes: 265, largestBytes: 500 });
});

test('with a step time, the plan shows the required rates and the cost of single files', () => {
  const { step } = planReport({ ...imagenet, stepMs: 87 });
  expect(step!.images).toBeCloseTo(512 / 0.087);
  expect(step!.imagesPerRank).toBeCloseTo(64 / 0.087);
  expect(step!.bytes).toBeCloseTo((512 / 0.087) * 50_000);
  expect(step!.fileReads).toBeCloseTo(5885, 0);
  expect(step!.reads).toBeLessThan(step!.fileReads / 25);
});

test('dropped samples and marked rows are summed over all ranks', () => {
  const small = { ...imagenet, counts: [1029], shardBytes: [1029], worldSize: 8 };
  expect(planReport({ ...small, lastBatch: 'drop' })).toMatchObject({ batches: 2, droppedSamples: 5, paddedRows: 0 });
  expect(planReport({ ...small, lastBatch: 'pad' })).toMatchObject({ batches: 3, droppedSamples: 0, paddedRows: 507 });
  expect(planReport({ ...small, lastBatch: 'partial' })).toMatchObject({
    batches: 3,
    droppedSamples: 0,
    paddedRows: 3,
  });
});

test('a dataset that fits the buffers is read once and kept in memory', () => {
  const { memory, reads } = planReport({ ...imagenet, counts: [500, 0, 20], shardBytes: [5000, 0, 100] });
  expect(memory).toMatchObject({ buffers: 0, readBytes: 5100 });
  expect(reads).toEqual({ count: 2, meanBytes: 2550, largestBytes: 5000 });
});

test('an empty dataset has an empty plan', () => {
  const report = planReport({ ...imagenet, counts: [0], shardBytes: [0], stepMs: 10 });
  expect(report).toMatchObject({ samples: 0, batches: 0, paddedRows: 0 });
  expect(JSON.stringify(report)).not.toContain('NaN');
});

test.each([
  [1, 3],
  [2, 3],
  [4, 3],
  [8, 2],
])(
  'with %i ranks and %i repetitions, samples, reads and bytes are summed over the blocks of all ranks',
  (worldSize, repeats) => {
    const counts = Array<number>(40).fill(100);
    const small = { counts, seed: 3, epoch: 1, streams: 16, blockSamples: 10, worldSize, globalBatch: 16 };
    const options = {
      ...small,
      repeats,
      shardBytes: Array<number>(40).fill(100_000),
      prefetchBatches: 2,
      rowBytes: 12,
    };
    const report = planReport(options);
    expect(report.samples).toBe(4000 * repeats);
    expect(report.batches).toBe(Math.ceil((4000 * repeats) / 16));
    let reads = 0;
    let bytes = 0;
    for (let rank = 0; rank < worldSize; rank++) {
      for (const { pieces } of planEpoch({ ...options, rank }).blocks()) {
        reads += pieces.length;
        for (const { count } of pieces) bytes += count * 1000;
      }
    }
    // The last batches are padded.
    expect(report.reads.count / (reads / worldSize)).toBeCloseTo(1, 1);
    expect((report.reads.count * report.reads.meanBytes) / (bytes / worldSize)).toBeCloseTo(1, 1);
    const { step } = planReport({ ...options, stepMs: 100 });
    expect(step!.bytes / ((bytes / report.batches) * 10)).toBeCloseTo(1, 1);
    expect(step!.reads / ((reads / report.batches) * 10)).toBeCloseTo(1, 1);
    expect(report.memory.buffers).toBe(16 + 1 + Math.ceil((2 * 16) / worldSize / 10));
  },
);
