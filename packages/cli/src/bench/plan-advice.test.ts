import type { PlanReport } from '@shardtool/reader';
import { expect, test } from 'vitest';
import { adviceOnPlan } from './plan-advice.js';

const needs = { machines: 1, bandwidth: 1e6, cacheSize: 0 };
const epoch = { fetchedBytes: 5e9, bytesPerSecond: 1e6, waitShare: 0, seconds: 1 };
const REPORT: PlanReport = {
  ...{ samples: 10_000, shards: 10, worldSize: 1, globalBatch: 64, batchSize: 64, batches: 157, lastBatch: 'pad' },
  ...{ paddedRows: 48, droppedSamples: 0 },
  order: { unit: 'chunk', streams: 192, blockSamples: 8, shuffleBufferSize: 1536 },
  reads: { count: 1000, meanBytes: 1 << 20, largestBytes: 2 << 20 },
  memory: { buffers: 1, bufferBytes: 1, readBytes: 1, slotBytes: 1, totalBytes: 2 },
  shuffleQuality: { shard: 1, class: 1, repeat: 1, sampledBatches: 50 },
  ...{ step: null, storage: null },
};
const advice = (changes: Partial<PlanReport>, isRemote = false) =>
  adviceOnPlan({ report: { ...REPORT, ...changes }, isRemote, cores: 2 });
const STEP = { stepMs: 87, images: 736, imagesPerRank: 736, bytes: 3e7, reads: 10, fileReads: 736 };

test('a plan without problems gets no advice', () => {
  expect(advice({}, true)).toEqual([]);
  expect(advice({ shuffleQuality: { ...REPORT.shuffleQuality, shard: 9 } })).toEqual([]);
  expect(advice({ storage: { ...needs, first: epoch, later: epoch }, step: STEP })).toHaveLength(1);
});

test('for batches of few classes, more streams are suggested', () => {
  const shuffleQuality = { ...REPORT.shuffleQuality, class: 3.2 };
  expect(advice({ shuffleQuality })).toEqual([
    expect.stringMatching(/from one class 3\.2 times as often.*--streams 384/),
  ]);
  expect(advice({ shuffleQuality: { ...REPORT.shuffleQuality, class: null, shard: 2 } })).toEqual([
    expect.stringContaining('from one shard'),
  ]);
  expect(advice({ shuffleQuality, order: { ...REPORT.order, shuffleBufferSize: 10_000 } })).toEqual([]);
});

test('an epoch end that wastes many samples, and small reads of a remote dataset, are reported', () => {
  expect(advice({ paddedRows: 5000 })).toEqual([
    expect.stringMatching(/padded with repeated rows, as many as 50\.0 % of the samples.*--batch-size/),
  ]);
  expect(advice({ lastBatch: 'drop', droppedSamples: 200, paddedRows: 0 })).toEqual([
    expect.stringMatching(/2\.0 % of the samples are dropped/),
  ]);
  const reads = { count: 1000, meanBytes: 40_000, largestBytes: 40_000 };
  expect(advice({ reads }, true)).toEqual([expect.stringMatching(/the mean read of 40 kB.*--max-shard-bytes/)]);
  expect(advice({ reads })).toEqual([]);
});

test('for steps that wait for storage, a cache for the whole dataset and smaller samples are suggested', () => {
  const slow = { ...epoch, bytesPerSecond: 3e6, waitShare: 0.66 };
  const [first, ...lines] = advice({ storage: { ...needs, first: slow, later: slow }, step: STEP });
  expect(first).toBe('each epoch waits 66 % of its time for storage:');
  expect(lines[0]).toMatch(/--cache-size 5\.0 GB holds all that a machine reads/);
  expect(lines[1]).toMatch(/3\.0 times fewer bytes.*--resize/);
  expect(lines.at(-1)).toMatch(/736 images\/s per rank.*shardtool bench DATASET --step-ms 87/);
  const cached = advice({ storage: { ...needs, first: slow, later: epoch }, step: STEP });
  expect(cached[0]).toBe('only the first epoch waits 66 % of its time for storage');
});
