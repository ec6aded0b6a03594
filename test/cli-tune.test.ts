import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { shardtool as here } from './cli-here.js';
import { shardtoolWith, withoutProgress } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const shards = await packedPhotos();

test('tune prints the bottleneck, every remedy with its gain, and the options; it leaves no files', async () => {
  const temporary = emptyFolder();
  // The sample has no classes, and its images are in a field with another name.
  const chosen = ['--where', 'cls in (0, 1)', '--image', 'jpg', '--streams', '4'];
  const flags = ['--batch-size', '8', '--cpu-budget', '1', '--seconds', '1', '--memory', '1MB', '--json', ...chosen];
  const { code, stdout, stderr } = await shardtoolWith({ TMPDIR: temporary }, 'tune', shards, ...flags);
  expect({ code, stderr: withoutProgress(stderr) }).toEqual({ code: 0, stderr: '' });
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ sampleImages: 20, options: { workers: 1 } });
  expect(['decoding', 'reading']).toContain(result.limit);
  for (const rate of ['imagesPerSecond', 'decodedPerSecond', 'readPerSecond']) expect(result[rate]).toBeGreaterThan(0);
  expect(result.gains.map(({ what }: { what: string }) => what)).toEqual(
    expect.arrayContaining(['resized copy', 'faster storage']),
  );
  for (const { times } of result.gains) expect(times).toBeGreaterThanOrEqual(1);
  // The process alone needs more than 1 MB.
  expect(result).toMatchObject({ fitsMemory: false, options: { prefetchBatches: 1 } });
  expect(readdirSync(temporary)).toEqual([]);
});

test('tune measures batches of several sizes', async () => {
  const flags = [
    '--aspect-buckets',
    '64x64:32:2',
    '--batch-size',
    '4',
    '--cpu-budget',
    '1',
    '--seconds',
    '1',
    '--json',
  ];
  const { code, stdout } = await here('tune', shards, ...flags);
  expect(code).toBe(0);
  expect(JSON.parse(stdout).imagesPerSecond).toBeGreaterThan(0);
});
