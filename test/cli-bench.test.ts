import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool as here } from './cli-here.js';
import { shardtool } from './cli-process.js';
import { emptyFolder, packedPhotos } from './datasets.js';

const shards = await packedPhotos();

test('bench --json prints the rate, the waits, the memory and the bottleneck', async () => {
  const { code, stdout } = await shardtool('bench', shards, '--json', '--batch-size', '8', '--epochs', '2');
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({
    ...{ images: 120, batches: 16, batchSize: 8, workers: availableParallelism(), checksum: 'first-epoch' },
    ...{ warnings: 0, bad: 0, badKeys: [], codec: { name: expect.any(String), reason: expect.any(String) } },
  });
  for (const figure of [
    'imagesPerSecond',
    'firstBatchMs',
    'batchWaitP50Ms',
    'batchWaitP99Ms',
    'mainThreadMicrosPerSample',
  ]) {
    expect(result[figure], figure).toBeGreaterThan(0);
  }
  expect(result.batchWaitP99Ms).toBeGreaterThanOrEqual(result.batchWaitP50Ms);
  expect(result.peakRssBytes).toBeGreaterThan(50e6);
  expect(result.slotBytes).toBeGreaterThanOrEqual(4 * 8 * 224 * 224 * 3);
  expect(result.readBufferPeakBytes).toBeGreaterThanOrEqual(0);
  expect(Object.keys(result.boundBy)).toEqual(['io', 'decode', 'consumer']);
  expect(result.boundBy.io + result.boundBy.decode + result.boundBy.consumer).toBeCloseTo(1, 5);
});

test('a slow step is the bottleneck, and the workers keep up with it', async () => {
  const flags = [
    '--transform',
    'raw',
    '--checksum',
    'always',
    '--workers',
    '1',
    '--prefetch-batches',
    '2',
    '--seed',
    '3',
  ];
  const { stdout } = await here('bench', shards, '--json', '--batch-size', '6', '--step-ms', '40', ...flags);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ batches: 10, workers: 1, checksum: 'always', codec: null });
  expect(result.imagesPerSecond).toBeLessThan(6 / 0.04);
  expect(result.boundBy.consumer).toBeGreaterThan(0.5);
});

test('bench accepts a list of steps, reports whether a step waits, and whether the rate includes the first batch', async () => {
  const list = path.join(emptyFolder(), 'list.json');
  writeFileSync(list, '[{"name":"resize","size":[32,32]}]');
  const one = await here('bench', shards, '--transform', list, '--batch-size', '60', '--step-ms', '5');
  expect(one.stdout).toMatch(
    /^[\d,]+ images\/s \(including the first batch\): .*\nThis figure means little, because there was only 1 batch: /,
  );
  const { code, stdout } = await here('bench', shards, '--transform', list, '--batch-size', '6', '--step-ms', '150');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^a step of 150 ms waited in \d of 9 batches, \d+\.\d % of the time$/m);
});

test('bench drops a dataset from the page cache on demand, and explains its figures', async () => {
  const { code, stdout } = await shardtool(
    'bench',
    shards,
    '--cold',
    '--transform',
    'eval224',
    '--batch-size',
    '16',
    '--checksum',
    'never',
    '--verbose',
  );
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split('\n');
  const advice = lines.slice(
    1,
    lines.findIndex((line) => line.startsWith('batches: ')),
  );
  expect(lines).toEqual([
    expect.stringMatching(
      /^[\d,]+ images\/s \(excluding the first batch\): (decoding is the limit|reading is the limit|batches come as fast as they are taken)$/,
    ),
    ...advice,
    expect.stringMatching(/^batches: 60 images in 4 batches of 16; \d+ workers?, checksum never$/),
    expect.stringMatching(/^batch wait: p50 [\d.]+ ms, largest [\d.]+ ms; first batch [\d.]+ ms$/),
    expect.stringMatching(
      /^memory: peak \d+ MB, including (read buffers of [\d.]+ MB and )?the filled part of batch slots of [\d.]+ MB$/,
    ),
    expect.stringMatching(/^main thread: [\d.]+ microseconds per sample$/),
    expect.stringMatching(/^time: \d+ % waiting for reads, \d+ % for decoding, \d+ % in the consumer$/),
    expect.stringMatching(/^JPEG by \w+: /),
  ]);
});

test('bench of images that cannot be decoded names the first, or skips them on demand', async () => {
  const bad = await packedPhotos({ include: ['cat/**'] });
  const output = `${bad}-odd`;
  await here('pack', 'test/fixtures/odd-images', output, '--include', 'truncated.png', '--include', '*-444.jpg');
  const raised = await here('bench', output, '--transform', 'eval224');
  expect(raised.code).toBe(1);
  expect(raised.stderr).toMatch(
    /^shardtool: 000000\.tar: sample "truncated" cannot be used: .*--on-bad to 'skip' or 'replace'\.\n$/,
  );
  const skipped = await here('bench', output, '--transform', 'eval224', '--on-bad', 'skip');
  expect(skipped.stdout).toMatch(/^1 bad sample: truncated$/m);
});

test('plan prints the cost of an epoch before anything is read', async () => {
  const flags = [
    '--world-size',
    '2',
    '--batch-size',
    '8',
    '--last-batch',
    'drop',
    '--streams',
    '4',
    '--shuffle-buffer-size',
    '16',
  ];
  const more = ['--step-ms', '87', '--where', 'cls in (0, 1, 2) and width >= 1'];
  const { stdout } = await here('plan', shards, ...flags, ...more, '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    ...{ samples: 30, worldSize: 2, batchSize: 8, batches: 1, droppedSamples: 14, paddedRows: 0 },
    ...{ order: { streams: 4, blockSamples: 4, shuffleBufferSize: 16 }, step: { stepMs: 87 } },
  });
  const words = await here('plan', shards, '--step-ms', '87');
  expect(words.stdout).toMatch(
    /^An epoch has 60 samples from 6 shards: 1 batch of 64\nshuffle quality: as good as a full shuffle\nmemory per rank: /,
  );
  expect(words.stdout).toMatch(
    /\na step of 87 ms needs [\d,]+ images\/s and [\d.]+ [kMG]?B\/s from memory, after everything was read once; with single files/,
  );
  const blocks = await here('plan', shards, ...flags, ...more);
  expect(blocks.stdout).toMatch(
    /\na step of 87 ms needs [\d,]+ images\/s and [\d.]+ [kMG]?B\/s in [1-9][\d.]* reads\/s;/,
  );
  const seldom = await here('plan', shards, ...flags, '--step-ms', '10000000');
  expect(seldom.stdout).toMatch(/\na step of 10000000 ms needs .* in 0\.0\d*[1-9] reads\/s;/);
});
