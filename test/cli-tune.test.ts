import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { shardtoolWith } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const shards = await packedPhotos();

test('tune names the limit, every remedy with its gain, and the options; it leaves nothing behind', async () => {
  const temporary = emptyFolder();
  const flags = ['--batch-size', '8', '--cpu-budget', '1', '--seconds', '1', '--memory', '1MB', '--json'];
  const { code, stdout } = await shardtoolWith({ TMPDIR: temporary }, 'tune', shards, ...flags);
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ sampleImages: 60, options: { workers: 1 } });
  expect(['decoding', 'reading']).toContain(result.limit);
  for (const rate of ['imagesPerSecond', 'decodedPerSecond', 'readPerSecond']) expect(result[rate]).toBeGreaterThan(0);
  expect(result.gains.map(({ what }: { what: string }) => what)).toEqual(
    expect.arrayContaining(['resized copy', 'faster storage']),
  );
  for (const { times } of result.gains) expect(times).toBeGreaterThanOrEqual(1);
  // The process alone takes more than 1 MB.
  expect(result).toMatchObject({ fitsMemory: false, options: { prefetchBatches: 1 } });
  expect(readdirSync(temporary)).toEqual([]);
});
