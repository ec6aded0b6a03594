import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { openToConvert, readManifest } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

const fixtures = 'test/fixtures/mds';
interface Expected {
  readonly image: string;
  readonly mask: string;
  readonly label: number;
  readonly caption: string;
  readonly score: number;
  readonly meta: string;
}
const expected: readonly Expected[] = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

async function contents(dataset: Dataset): Promise<Omit<Expected, 'score'>[]> {
  const found: Omit<Expected, 'score'>[] = [];
  for await (const { label: cls, fields } of dataset.samples({ checksum: true })) {
    found.push({
      image: sha256(fields.jpg!),
      mask: sha256(fields['mask.png.png'] ?? fields['mask.png']!),
      label: cls,
      caption: text(fields['caption.txt']!),
      meta: text(fields['meta.json']!),
    });
  }
  return found;
}
const withoutScore = expected.map(({ score, ...sample }) => sample);

test("MosaicML's own shards open in place, with every value that was written", async () => {
  await using dataset = await openDataset(path.join(fixtures, 'photos'));
  expect([dataset.format, dataset.size, dataset.shards.length]).toEqual(['mds', expected.length, 3]);
  expect(dataset.fields).toEqual(['caption.txt', 'jpg', 'mask.png', 'meta.json']);
  expect(await contents(dataset)).toEqual(withoutScore);
  const scores: unknown[] = [];
  for (let shard = 0; shard < 3; shard++) {
    const { columns, key } = await dataset.files.index(shard);
    expect([...columns.keys()]).toEqual(['score', 'width_']);
    scores.push(...columns.get('score')!);
    expect(key[0]).toBe(`shard.0000${shard}/000000`);
  }
  expect(scores).toEqual(expected.map(({ score }) => score));
});

test('the loader streams MDS shards, and where can use their values', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'photos'));
  const loader = dataset.loader({
    batchSize: 3,
    transform: 'train224',
    workers: 1,
    where: 'score < 1',
    lastBatch: 'partial',
  });
  const labels: number[] = [];
  for await (const batch of loader) labels.push(...batch.labels);
  await loader.close();
  expect(labels.sort()).toEqual(
    expected
      .filter(({ score }) => score < 1)
      .map(({ label }) => label)
      .sort(),
  );
});

test("images that MosaicML's writer encoded are the images of their samples", async () => {
  await using dataset = await openDataset(path.join(fixtures, 'jpeg'));
  expect(dataset.fields).toEqual(['jpg']);
  expect(dataset.classSamples.reduce((sum, count) => sum + count, 0)).toBe(2);
});

test('index adds checksums and sizes next to the shards, and verify checks the shards against them', async () => {
  const folder = path.join(emptyFolder(), 'photos');
  cpSync(path.join(fixtures, 'photos'), folder, { recursive: true });
  const identity = async () => {
    await using dataset = await openDataset(folder);
    return dataset.identity;
  };
  const before = await identity();
  expect(await indexShards([folder])).toMatchObject({ shards: 3, samples: expected.length });
  expect(readdirSync(folder)).toContain('shard.00000.parquet');
  expect(await identity()).toBe(before);
  expect((await verify(folder, { workers: 1 })).faults).toBe(0);
  await using dataset = await openDataset(folder);
  expect(await contents(dataset)).toEqual(withoutScore);
  expect((await dataset.files.index(0)).width.every((width) => width === 24)).toBe(true);
  const shard = path.join(folder, 'shard.00001.mds');
  const bytes = readFileSync(shard);
  bytes[bytes.length - 200]! ^= 1;
  const { atime, mtime } = statSync(shard);
  writeFileSync(shard, bytes);
  utimesSync(shard, atime, mtime);
  expect((await verify(folder, { workers: 1 })).faults).toBeGreaterThan(0);
});

test('convert keeps fields, classes and values', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'photos'), output, { workers: 1, format: 'tar' });
  const manifest = await readManifest(output);
  expect(manifest.samples).toBe(expected.length);
  expect(manifest.columns.map(({ name }) => name)).toEqual(['score', 'width_']);
  await using dataset = await openDataset(output);
  expect(await contents(dataset)).toEqual(withoutScore);
});

test('pickled columns, compressed shards and missing shards are rejected with clear messages', async () => {
  await expect(openDataset(path.join(fixtures, 'pickled'))).rejects.toThrow(
    'its column "extra" is pickled, and reading it would mean running its content',
  );
  await expect(openDataset(path.join(fixtures, 'compressed'))).rejects.toThrow('it is compressed');
  const folder = path.join(emptyFolder(), 'photos');
  cpSync(path.join(fixtures, 'photos'), folder, { recursive: true });
  rmSync(path.join(folder, 'shard.00001.mds'));
  await expect(openDataset(folder)).rejects.toThrow('names shard.00001.mds, which does not exist');
});

test('ls prints the format and the numbers of shards and samples', async () => {
  const { stdout } = await shardtool('ls', path.join(fixtures, 'photos'));
  expect(stdout).toContain('3 mds shards, 10 samples');
});

test('convert reads compressed shards', async () => {
  const folder = path.join(emptyFolder(), 'compressed');
  cpSync(path.join(fixtures, 'compressed'), folder, { recursive: true });
  const output = path.join(emptyFolder(), 'tars');
  expect(await convert(folder, output, { workers: 1 })).toMatchObject({ shards: 1, samples: 1 });
  expect(readdirSync(output)).toContain('shard.00000.tar');
  const source = await openToConvert('mds', path.join(folder, 'shard.00000.mds.zstd'));
  const plain = Buffer.alloc(source.size);
  expect(await source.readAt(0, plain)).toBe(993);
  await source.close();
  await using dataset = await openDataset(output);
  const { fields } = await dataset.get('shard.00000/000000');
  expect(plain.includes(Buffer.from(fields.jpg!))).toBe(true);
  for (const [ending, compress] of Object.entries({ gz: gzipSync, br: brotliCompressSync })) {
    const other = emptyFolder();
    writeFileSync(path.join(other, `shard.00000.mds.${ending}`), compress(plain));
    const again = path.join(emptyFolder(), 'tars');
    expect(await convert(other, again, { workers: 1 })).toMatchObject({ samples: 1 });
  }
});
