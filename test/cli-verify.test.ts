import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { indexPathOf, readShardIndex } from '@shardtool/format';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { packedPhotos } from './datasets.js';
import { newFolder, tree } from './pack-workbench.js';
import { archive, entry } from './tar-craft.js';

/** Flips a bit in the middle of the image of a row, and returns its key. */
async function damage(shard: string, row: number): Promise<string> {
  const index = await readShardIndex(indexPathOf(shard));
  const { offset, bytes } = index.fields.get('jpg')!;
  const file = readFileSync(shard);
  file[offset[row]! + (bytes[row]! >> 1)]! ^= 4;
  writeFileSync(shard, file);
  return index.key[row]!;
}

test('verify prints a line for each damaged sample, in the order of the shards, and exits with 1', async () => {
  const shards = await packedPhotos();
  const keys = [
    await damage(path.join(shards, '000001.tar'), 3),
    await damage(path.join(shards, '000001.tar'), 7),
    await damage(path.join(shards, '000004.tar'), 0),
  ];
  const { code, stdout, stderr } = await shardtool('verify', shards, '--workers', '3');
  expect([code, stderr]).toEqual([1, '']);
  const lines = stdout.trimEnd().split('\n');
  expect(lines.slice(0, 3).map((line) => line.split('\t').slice(0, 2))).toEqual([
    ['000001.tar', keys[0]],
    ['000001.tar', keys[1]],
    ['000004.tar', keys[2]],
  ]);
  expect(lines[0]).toMatch(/\tfield "jpg" has changed: crc32 [0-9a-f]{8}, the index says [0-9a-f]{8}$/);
  expect(lines.slice(3)).toEqual([expect.stringMatching(/^6 shards, 60 samples, \d\.\d MB: 3 damaged samples$/)]);

  const quiet = await shardtool('verify', shards, '--quiet');
  expect([quiet.code, quiet.stdout]).toEqual([1, stdout]);
  const json = await shardtool('verify', shards, '--json');
  const objects = json.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(json.code).toBe(1);
  expect(objects.slice(0, 3).map(({ shard, key }) => [shard, key])).toEqual(
    lines.slice(0, 3).map((line) => line.split('\t').slice(0, 2)),
  );
  expect(objects[3]).toMatchObject({
    shards: 6,
    samples: 60,
    faults: 3,
    damagedSamples: 3,
    warnings: 0,
    checksums: true,
  });
});

test('verify prints the first 20 damaged samples and counts the others; --verbose prints all', async () => {
  const shards = newFolder();
  await pack('examples/photos', shards, { workers: 1 });
  for (let place = 0; place < 25; place += 1) await damage(path.join(shards, '000000.tar'), place);
  const lines = (await shardtool('verify', shards)).stdout.trimEnd().split('\n');
  expect(lines.slice(20)).toEqual([
    '... and 5 more; --verbose prints all, --json as JSON',
    expect.stringMatching(/^1 shard, 60 samples, \d\.\d MB: 25 damaged samples$/),
  ]);
  expect((await shardtool('verify', shards, '--verbose')).stdout.trimEnd().split('\n')).toHaveLength(26);
  const repaired = (await shardtool('verify', shards, '--fix')).stdout.trimEnd().split('\n');
  expect(repaired[20]).toBe('... and 5 more; --verbose prints all, --json as JSON');
});

test('verify of a sound dataset exits with 0, and prints nothing with --quiet', async () => {
  const shards = await packedPhotos();
  expect(await shardtool('verify', shards)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^6 shards, 60 samples, \d\.\d MB: OK, all checksums match\n$/),
  });
  expect(await shardtool('verify', shards, '--check', 'decode', '--quiet')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: '',
  });
});

test('verify --check decode also lists packed images that end too early', async () => {
  const shards = newFolder();
  const kept = ['truncated.png', 'truncated-half.jpg', 'no-end-marker.jpg', 'flipped-bits.jpg', 'progressive.jpg'];
  const include = kept.flatMap((name) => ['--include', name]);
  expect(await shardtool('pack', 'test/fixtures/odd-images', shards, ...include, '--no-shuffle')).toMatchObject({
    code: 0,
  });
  expect((await shardtool('verify', shards)).code).toBe(0);
  const { code, stdout } = await shardtool('verify', shards, '--check', 'decode');
  expect(code).toBe(1);
  const lines = stdout.trimEnd().split('\n');
  expect(lines.slice(0, -1).map((line) => line.split('\t')[1])).toEqual([
    'no-end-marker',
    'truncated-half',
    'truncated',
  ]);
  expect(lines.at(-1)).toMatch(/: 3 damaged samples; 1 image decoded with warnings$/);
});

test('verify of a foreign tar without an index reports that there is nothing to compare its bytes with', async () => {
  const { code, stdout } = await shardtool('verify', 'test/fixtures/tar/webdataset-0.tar');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /: OK, all headers are valid; without an index there are no checksums to compare \("shardtool index" writes one\)\n$/,
  );
});

test('verify --check decode lists the samples without an image in a dataset of images, which loaders reject', async () => {
  const photo = readFileSync('test/fixtures/odd-images/progressive.jpg');
  const files = tree({ 'words.tar': archive(entry({ name: 'a.txt' }, 'a'), entry({ name: 'b.txt' }, 'b')) });
  writeFileSync(
    path.join(files, 'photos.tar'),
    archive(entry({ name: 'c.jpg' }, photo), entry({ name: 'c.txt' }, 'c'), entry({ name: 'd.txt' }, 'd')),
  );
  for (const shards of [files, newFolder()]) {
    if (shards !== files) expect((await shardtool('convert', files, shards)).code).toBe(0);
    expect((await shardtool('verify', shards)).code).toBe(0);
    const { code, stdout } = await shardtool('verify', shards, '--check', 'decode');
    expect([code, stdout.split('\n').slice(0, -2)]).toEqual([
      1,
      ['photos.tar\td\tit has no image, which loaders require; exclude it by its key'],
    ]);
  }
});
