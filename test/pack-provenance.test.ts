import { createHash } from 'node:crypto';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { openDataset, type Sample } from '@shardtool/reader';
import { compactDataset, convert, eraseSamples, pack, verify } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { jpeg, newFolder, PNG, tree } from './pack-workbench.js';

let server: BucketServer;
beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());

const FACTS = ['location', 'modified', 'sha256', 'ingested', 'command'] as const;
const COLUMNS = ['source_location', 'source_modified', 'source_sha256', 'ingested', 'pack_command'];
const TIME = new Date('2026-03-04T05:06:07.000Z');

function source(): string {
  // dog/3.jpg is misnamed: it is a PNG.
  const folder = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2), 'dog/3.jpg': PNG, 'dog/4.jpg': jpeg(4) });
  for (const file of ['cat/1', 'cat/2', 'dog/3', 'dog/4']) utimesSync(path.join(folder, `${file}.jpg`), TIME, TIME);
  return folder;
}

async function samplesOf(location: string): Promise<Map<string, Sample>> {
  await using dataset = await openDataset(location);
  const found = new Map<string, Sample>();
  for await (const sample of dataset.samples()) found.set(sample.key, sample);
  return found;
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

test('a pack with --provenance adds columns with the origin of each sample, which other commands keep', async () => {
  const images = source();
  const shards = newFolder();
  const before = new Date().toISOString();
  await pack(images, shards, { provenance: FACTS, maxShardSamples: 2, seed: 3 });
  const packed = await samplesOf(shards);
  for (const [key, { columns }] of packed) {
    const file = path.join(images, `${key}.jpg`);
    expect(columns).toMatchObject({ source_location: file, source_modified: TIME.toISOString() });
    expect(columns.source_sha256).toBe(sha256(file));
    expect(columns.pack_command).toBe(
      `shardtool pack ${images} ${shards} --provenance location,modified,sha256,ingested,command --max-shard-samples 2 --seed 3`,
    );
    expect(String(columns.ingested) >= before && String(columns.ingested) <= new Date().toISOString()).toBe(true);
  }
  // An append keeps the option, and its samples have the time of the append.
  writeFileSync(path.join(images, 'cat/5.jpg'), jpeg(5));
  await pack(images, shards, { append: true });
  const grown = await samplesOf(shards);
  expect(grown.get('cat/5')!.columns.source_sha256).toBe(sha256(path.join(images, 'cat/5.jpg')));
  const times = [packed.get('cat/1')!.columns.ingested, grown.get('cat/5')!.columns.ingested].map(String);
  expect(times[1]! > times[0]!).toBe(true);

  await eraseSamples(shards, { keys: ['cat/2'] });
  const converted = newFolder();
  await convert(shards, converted, { seed: 7, maxShardSamples: 3 });
  await compactDataset(shards, {});
  for (const place of [shards, converted]) {
    const samples = await samplesOf(place);
    expect([...samples.keys()].sort()).toEqual(['cat/1', 'cat/5', 'dog/3', 'dog/4']);
    for (const [key, { columns }] of samples) expect(columns).toEqual(grown.get(key)!.columns);
    expect(await verify(place)).toMatchObject({ faults: 0 });
    expect((await readManifest(place)).columns.map(({ name }) => name)).toEqual(COLUMNS);
  }
});

test('the sha256 is that of the file, also if the image is processed or a bad one is skipped', async () => {
  const images = source();
  writeFileSync(path.join(images, 'cat/0.jpg'), 'no image');
  const shards = newFolder();
  await pack(images, shards, {
    provenance: ['sha256'],
    resize: 8,
    onBad: 'quarantine',
    maxBad: 1,
    workers: 2,
    maxShardSamples: 2,
  });
  const samples = await samplesOf(shards);
  expect(samples.size).toBe(4);
  for (const [key, { columns }] of samples) {
    expect(columns).toEqual({ source_sha256: sha256(path.join(images, `${key}.jpg`)) });
  }
});

test('a label column with the name of a fact keeps its values in a pack without --provenance', async () => {
  const images = source();
  const labels = path.join(tree({ 'labels.csv': 'path,source_sha256\ncat/1.jpg,given\n' }), 'labels.csv');
  const shards = newFolder();
  await pack(images, shards, { labels });
  const values = [...(await samplesOf(shards)).values()].map(({ columns }) => columns.source_sha256);
  expect(values).toEqual(['given']);
});

test('the parts of a pack record one command, without their numbers', async () => {
  const images = source();
  const shards = newFolder();
  for (const index of [1, 0]) {
    await pack(images, shards, { provenance: ['command'], part: { index, of: 2 }, maxShardSamples: 2 });
  }
  const commands = [...(await samplesOf(shards)).values()].map(({ columns }) => columns.pack_command);
  const command = `shardtool pack ${images} ${shards} --provenance command --max-shard-samples 2`;
  expect(commands).toEqual(Array.from({ length: 4 }, () => command));
});

test('an append without a fact that the dataset has is rejected, and the error says what to remove', async () => {
  const images = source();
  const shards = newFolder();
  await pack(images, shards, { provenance: ['location', 'sha256'] });
  writeFileSync(path.join(images, 'cat/5.jpg'), jpeg(5));
  const { code, stderr } = await shardtool('pack', images, shards, '--append', '--provenance', 'sha256');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      '"source_location", but now neither the labels nor --provenance add it. Remove --provenance',
    ),
  ]);
});

test('images of a bucket have the location of the object, and the indexes do not depend on workers', async () => {
  for (let i = 0; i < 6; i++) server.put(`raw/set/${i}.jpg`, jpeg(i), TIME.getTime());
  const [one, two] = [newFolder(), newFolder()];
  const provenance = ['location', 'modified', 'sha256'] as const;
  await pack('s3://raw/set', one, { provenance, maxShardSamples: 2, workers: 1 });
  await pack('s3://raw/set', two, { provenance, maxShardSamples: 2, workers: 3 });
  expect((await samplesOf(one)).get('4')!.columns).toEqual({
    source_location: 's3://raw/set/4.jpg',
    source_modified: TIME.toISOString(),
    source_sha256: createHash('sha256').update(jpeg(4)).digest('hex'),
  });
  for (const file of ['000000.parquet', '000001.parquet', '000002.parquet']) {
    expect(readFileSync(path.join(two, file)).equals(readFileSync(path.join(one, file)))).toBe(true);
  }
});

test('ls --samples --columns lists the requested columns', async () => {
  const images = source();
  const shards = newFolder();
  const packed = await shardtool('pack', images, shards, '--provenance', 'modified,location');
  expect(packed.code).toBe(0);
  const { stdout } = await shardtool('ls', shards, '--samples', '--columns', 'source_location');
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t').at(-1)),
  ).toContain(`source_location=${path.join(images, 'cat/1.jpg')}`);
  const all = await shardtool('ls', shards, '--samples', '--columns', 'all', '--json');
  expect(Object.keys(JSON.parse(all.stdout.split('\n')[0]!).columns)).toEqual(['source_modified', 'source_location']);
  const wrong = await shardtool('ls', shards, '--samples', '--columns', 'source_locations');
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('did you mean "source_location"?')]);
  expect((await shardtool('ls', shards, '--columns', 'a')).code).toBe(2);
});

test('labels with a column of the same name, and unknown facts, are rejected', async () => {
  const images = source();
  writeFileSync(path.join(images, 'labels.csv'), 'path,ingested\ncat/1.jpg,today\n');
  const args = ['pack', images, newFolder(), '--labels', path.join(images, 'labels.csv')];
  const twice = await shardtool(...args, '--provenance', 'ingested');
  expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('--provenance adds too: rename the column')]);
  expect((await shardtool('pack', images, newFolder(), '--provenance', 'size')).code).toBe(2);
});
