import { createHash } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { readManifest } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, type Fault, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

const fixtures = 'test/fixtures/tfrecord';
const photos = path.join(fixtures, 'photos');
interface Expected {
  readonly key: string;
  readonly image: string;
  readonly label: number;
  readonly text: string;
  readonly score: number;
  readonly far: string;
}
const expected: readonly Expected[] = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));

async function contents(dataset: Dataset): Promise<Expected[]> {
  const found: Expected[] = [];
  const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes!).toString();
  for (let shard = 0; shard < dataset.shards.length; shard++) {
    const { columns } = await dataset.files.index(shard);
    let row = 0;
    const first = dataset.files.firstSample[shard]!;
    for await (const { label: cls, fields } of dataset.samples({
      from: first,
      to: first + dataset.shards[shard]!.samples,
      checksum: true,
    })) {
      found.push({
        key: text(fields['image_filename.txt']),
        image: createHash('sha256').update(fields.jpg!).digest('hex'),
        label: cls,
        text: text(fields['image_class_text.txt']),
        score: columns.get('score')![row] as number,
        far: columns.get('far')![row] as string,
      });
      row++;
    }
  }
  return found;
}

test("TensorFlow's record files open in place, with every feature that was written", async () => {
  await using dataset = await openDataset(photos);
  expect([dataset.format, dataset.size]).toEqual(['tfrecord', expected.length]);
  expect(dataset.fields).toEqual(['image_class_text.txt', 'image_filename.txt', 'jpg']);
  expect(await contents(dataset)).toEqual(expected);
  const { key, columns } = await dataset.files.index(0);
  expect(key[0]).toBe('train-00000-of-00002/000000');
  expect(columns.get('image_object_bbox_xmin')![0]).toBe('[0.25,0.5]');
  expect(columns.get('image_height')![0]).toBe(16);
  expect(columns.get('empty')![0]).toBeNull();
});

test('the loader streams a single record file', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'short.tfrecord'));
  expect(dataset.fields).toEqual(['png']);
  const loader = dataset.loader({ batchSize: 2, transform: 'eval224', workers: 1 });
  let rows = 0;
  for await (const batch of loader) rows += batch.valid.reduce((sum, one) => sum + one, 0);
  await loader.close();
  expect(rows).toBe(2);
});

test('a changed record is detected by its crc32c when payloads are read', async () => {
  const folder = path.join(emptyFolder(), 'photos');
  cpSync(photos, folder, { recursive: true });
  expect((await verify(folder, { workers: 1 })).faults).toBe(0);
  const shard = path.join(folder, 'train-00001-of-00002');
  const bytes = readFileSync(shard);
  bytes[bytes.length - 300]! ^= 1;
  writeFileSync(shard, bytes);
  expect((await verify(folder, { workers: 1 })).faults).toBe(1);
  await expect(indexShards([folder])).rejects.toThrow('has changed since it was written (its crc32c does not match)');
  await expect(convert(folder, path.join(emptyFolder(), 'out'), { workers: 1, format: 'tar' })).rejects.toThrow(
    'crc32c',
  );
});

test('verify continues after changed records, lists them all, and reports where it cannot continue', async () => {
  const file = path.join(emptyFolder(), 'photos.tfrecord');
  const bytes = readFileSync(path.join(photos, 'train-00000-of-00002'));
  const starts: number[] = [];
  for (let at = 0; at < bytes.length; at += Number(bytes.readBigUInt64LE(at)) + 16) starts.push(at);
  for (const record of [1, 2, 4]) bytes[starts[record]! + 100]! ^= 1;
  const found = async () => {
    writeFileSync(file, bytes);
    const faults: Fault[] = [];
    const { samples } = await verify(file, { onFault: (fault) => faults.push(fault) });
    return { samples, faults };
  };
  const all = await found();
  expect(all.samples).toBe(starts.length);
  expect(all.faults.map(({ key }) => key)).toEqual(['photos/000001', 'photos/000002', 'photos/000004']);
  expect(all.faults[0]!.reason).toMatch(/^the record at byte \d+ has changed since it was written/);
  bytes[starts[3]!]! ^= 1;
  const some = await found();
  expect(some.faults.map(({ key }) => key)).toEqual([undefined, 'photos/000001', 'photos/000002']);
  expect(some.faults[0]!.reason).toMatch(
    `at byte ${starts[3]} there is no TFRecord record, or its length has changed, so`,
  );
});

test('convert keeps fields, classes and values', async () => {
  const output = path.join(emptyFolder(), 'out');
  await convert(photos, output, { workers: 1, format: 'msgpack' });
  expect((await readManifest(output)).columns).toContainEqual({ name: 'score', type: 'double' });
  await using dataset = await openDataset(output);
  expect(await contents(dataset)).toEqual(expected);
});

test('files that cannot be read are rejected with clear messages', async () => {
  await expect(openDataset(path.join(fixtures, 'other.tfrecord'))).rejects.toThrow(
    'is not a readable tf.train.Example',
  );
  const file = path.join(emptyFolder(), 'a.tfrecord');
  writeFileSync(file, gzipSync(readFileSync(path.join(fixtures, 'short.tfrecord'))));
  await expect(openDataset(file)).rejects.toThrow('it is compressed with gzip');
  const { stdout } = await shardtool('ls', photos);
  expect(stdout).toContain('2 tfrecord shards, 10 samples');
});

test('convert reads records that are compressed with gzip, whatever their name is', async () => {
  const folder = emptyFolder();
  const plain = readFileSync(path.join(fixtures, 'short.tfrecord'));
  writeFileSync(path.join(folder, 'short-1.tfrecord.gz'), gzipSync(plain));
  writeFileSync(path.join(folder, 'short-2.tfrecord'), gzipSync(plain));
  const output = path.join(emptyFolder(), 'tars');
  expect(await convert(folder, output, { workers: 1 })).toMatchObject({ shards: 2, samples: 4 });
  await using dataset = await openDataset(output);
  expect(dataset.shards.map(({ name }) => name)).toEqual(['short-1.tar', 'short-2.tar']);
  await using whole = await openDataset(path.join(fixtures, 'short.tfrecord'));
  for (let i = 0; i < 4; i++) {
    const { fields } = await dataset.get(i);
    expect(Buffer.from(fields.png!).equals((await whole.get(i % 2)).fields.png!)).toBe(true);
  }
  const cut = gzipSync(plain);
  writeFileSync(path.join(folder, 'short-2.tfrecord'), cut.subarray(0, cut.length - 100));
  await expect(convert(folder, path.join(emptyFolder(), 'tars'), { workers: 1 })).rejects.toThrow(
    'it cannot be decompressed',
  );
});

test('image, class and key can be chosen from the features, by the loader and by convert', async () => {
  const features = { image: 'image/encoded', label: 'image/height', key: 'image/filename' } as const;
  const flags = ['--image-feature', features.image, '--label-feature', features.label, '--key-feature', features.key];
  const output = path.join(emptyFolder(), 'tars');
  await shardtool('convert', photos, output, ...flags);
  const keys: { key: string; image: string; label: number }[] = JSON.parse(
    readFileSync(path.join(fixtures, 'expected.json'), 'utf8'),
  );
  for (const dataset of [await openDataset(photos, { features }), await openDataset(output)]) {
    for (const { key, image } of keys) {
      const { label: cls, fields } = await dataset.get(key);
      expect([cls, createHash('sha256').update(fields.jpg!).digest('hex')]).toEqual([16, image]);
    }
    await dataset.close();
  }
  await expect(openDataset(photos, { features: { image: 'picture' } })).rejects.toThrow(
    'has no feature "picture"; its features are',
  );
  await expect(openDataset(photos, { features: { label: 'image/encoded' } })).rejects.toThrow(
    'so it cannot be the class number',
  );
  await expect(openDataset(photos, { features: { key: 'image/object/bbox/xmin' } })).rejects.toThrow(
    'has 2 values, so it cannot be the key',
  );
  await expect(openDataset('test/fixtures/mds/photos', { features: { image: 'image' } })).rejects.toThrow(
    'only for TFRecord and HDF5',
  );
});
