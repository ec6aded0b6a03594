import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { getStats, openDataset, planDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { jpeg, newFolder, PNG, samplesOf, tree } from './pack-workbench.js';

async function statsOf(location: string, keysAtOnce?: number) {
  await using dataset = await openDataset(location);
  return getStats(dataset, { keysAtOnce });
}

const formats = ['tar', 'msgpack', 'lmdb'] as const;
const photos = new Map<string, string>();
for (const format of formats) photos.set(format, await packedPhotos({ format }));

describe.each(formats)('%s', (format) => {
  const shards = photos.get(format)!;

  test('every number agrees with the samples', async () => {
    const stats = await statsOf(shards);
    const samples = await samplesOf(shards);
    expect(stats).toMatchObject({ format, shards: 6, samples: 60, samplesWithoutClass: 0, turned: 0 });
    const jpegs = samples.map(({ fields }) => fields.jpg!.length);
    const total = jpegs.reduce((sum, bytes) => sum + bytes, 0);
    expect(stats.kinds).toEqual([{ kind: 'jpeg', samples: 60, bytes: total }]);
    const { bytes } = stats.fields.find(({ name }) => name === 'jpg')!;
    expect(bytes).toMatchObject({ count: 60, smallest: Math.min(...jpegs), largest: Math.max(...jpegs) });
    expect(bytes.mean).toBeCloseTo(total / 60, 6);
    const widths = samples.map(({ size }) => size[0]!);
    expect(stats.width).toMatchObject({ count: 60, smallest: Math.min(...widths), largest: Math.max(...widths) });
    const pixels = samples.map(({ size }) => size[0]! * size[1]!);
    expect(stats.pixels).toMatchObject({ smallest: Math.min(...pixels), largest: Math.max(...pixels) });
    expect(stats.classes.map(({ name, samples: count }) => [name, count])).toEqual(
      ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'].map((name) => [name, 10]),
    );
    expect(stats.shardSamples).toMatchObject({ count: 6, smallest: 10, largest: 10, mean: 10 });
    expect(stats.repeatedKeys).toEqual({ count: 0, examples: [] });
  });

  test('the result does not depend on how many keys fit in memory', async () => {
    expect(await statsOf(shards, 7)).toEqual(await statsOf(shards));
  });
});

test('classes without samples, samples without a class, several kinds and rotated images are counted', async () => {
  const source = tree({
    'a/1.jpg': jpeg(1),
    'a/2.png': PNG,
    'a/2.seg.png': PNG,
    'b/3.jpg': jpeg(3),
    '4.jpg': jpeg(4),
    'b/5.webp': readFileSync('test/fixtures/image-headers/turned-6.webp'),
  });
  const output = newFolder();
  await pack(source, output, { workers: 1, fields: ['seg.png'], classes: ['a', 'b', 'none'] });
  const stats = await statsOf(output);
  expect(stats.classes.map(({ samples }) => samples)).toEqual([2, 2, 0]);
  expect(stats.classes[2]!.bytes).toBe(0);
  expect(stats).toMatchObject({ samplesWithoutClass: 1, turned: 1, samples: 5 });
  expect(stats.kinds.map(({ kind, samples }) => [kind, samples])).toEqual([
    ['jpeg', 3],
    ['png', 1],
    ['webp', 1],
  ]);
  expect(stats.fields.map(({ name, bytes }) => [name, bytes.count])).toEqual([
    ['cls', 4],
    ['jpg', 3],
    ['png', 1],
    ['seg.png', 1],
    ['webp', 1],
  ]);
});

test('keys that occur in two shards are counted and listed', async () => {
  const folder = emptyFolder();
  const tar = path.join(await packedPhotos({ maxShardSamples: 60 }), '000000.tar');
  for (const name of ['a.tar', 'b.tar']) copyFileSync(tar, path.join(folder, name));
  const { repeatedKeys, samples } = await statsOf(folder);
  expect([samples, repeatedKeys.count, repeatedKeys.examples.length]).toEqual([120, 60, 10]);
  const { stdout } = await shardtool('stats', folder);
  expect(stdout).toMatch(/^60 samples with the key of an earlier sample: \w+\/\w+, /m);
});

test('classes without any sample are assumed to be those of objects', async () => {
  const output = newFolder();
  await pack(tree({ '1.jpg': jpeg(1), '2.jpg': jpeg(2) }), output, { workers: 1, classes: ['dog', 'bottle'] });
  expect((await shardtool('stats', output)).stdout).toContain(
    '2 classes, but no sample has one; if they are classes of objects, --annotations FILE counts the objects\n',
  );
});

test('stats prints tables and histograms, and JSON for programs', async () => {
  const shards = photos.get('tar')!;
  const { code, stdout, stderr } = await shardtool('stats', shards, '--limit', '3');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^60 samples in 6 tar shards, \d\.\d MB; a shard has 10 samples, \d+ kB to \d+ kB\n/);
  expect(stdout).toMatch(/^6 classes, the smallest \w+ with 10$/m);
  expect(stdout).toMatch(new RegExp(`^ {2}cat +10, \\d+ kB {2}${'#'.repeat(40)}$`, 'm'));
  expect(stdout).toMatch(/^ {2}and 3 more: --limit N, --json$/m);
  expect(stdout).toMatch(/^field jpg: in 60 samples, \d+ kB to \d+ kB, mean \d+ kB, median \d+ kB$/m);
  expect(stdout).toMatch(/^field cls: in 60 samples, 1 B each$/m);
  expect(stdout).toMatch(/^ {2}\d+ kB to \d+ kB +\d+ {2}#+$/m);
  expect(stdout).toMatch(/^no duplicate keys\n$/m);
  for (const line of stdout.split('\n')) expect(line).toBe(line.trimEnd());
  const json = await shardtool('stats', shards, '--json');
  expect(JSON.parse(json.stdout)).toEqual(JSON.parse(JSON.stringify(await statsOf(shards))));
});

/** An npy file of this many zeros, as an array of that length. */
function vector(length: number): Buffer {
  const header = `{'descr': '|u1', 'fortran_order': False, 'shape': (${length},), }`.padEnd(117).concat('\n');
  return Buffer.concat([
    Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, 118, 0]),
    Buffer.from(header),
    Buffer.alloc(length),
  ]);
}

test.each(formats)(
  'uncompressed images are a separate kind, and arrays next to an image are not images: %s',
  async (format) => {
    const output = newFolder();
    await pack(tree({ 'a/1.jpg': jpeg('one'), 'a/1.npy': vector(5), 'a/2.jpg': jpeg('two') }), output, {
      workers: 1,
      format,
    });
    const stats = await statsOf(output);
    expect(stats.kinds).toMatchObject([{ kind: 'jpeg', samples: 2 }]);
    expect(stats.fields.find(({ name }) => name === 'npy')!.bytes).toMatchObject({ count: 1, mean: 133 });

    const uncompressed = newFolder();
    await pack(tree({ '1.jpg': jpeg('one'), '2.png': PNG }), uncompressed, { workers: 1, format, imageFormat: 'npy' });
    expect((await statsOf(uncompressed)).kinds).toMatchObject([{ kind: 'npy', samples: 2 }]);
    const printed = await shardtool('stats', uncompressed);
    expect(printed).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/\n {2}npy {2}2, /) });
  },
);

test('an extremely large class number does not use memory for the numbers below it', async () => {
  const output = newFolder();
  await pack(tree({ '1.jpg': jpeg('one'), '1.cls': '2147483647', '2.jpg': jpeg('two'), '2.cls': '3' }), output, {
    workers: 1,
  });
  const { classes } = await statsOf(output);
  expect(classes.map(({ name, samples }) => [name, samples])).toEqual([
    ['3', 1],
    ['2147483647', 1],
  ]);
});

test('a dataset has methods for statistics, plan and inspection', async () => {
  const location = photos.get('tar')!;
  await using dataset = await openDataset(location);
  expect(await dataset.stats()).toEqual(await statsOf(location));
  const options = { worldSize: 2, batchSize: 8 };
  expect(await dataset.plan(options)).toEqual(await planDataset(dataset, options));
  expect(await dataset.inspect({ limit: 1 })).toMatchObject({ location, samples: 60, bad: { count: 0 } });
  await expect(dataset.plan({ wordSize: 2 } as never)).rejects.toThrow('"wordSize"; did you mean "worldSize"?');
});
