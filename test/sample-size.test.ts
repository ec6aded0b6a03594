import { createReadStream, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { JPEG, jpeg, newFolder, tree } from './pack-workbench.js';

/** More than is kept in memory of a sample that is written to a tar. */
const LARGE_BYTES = (65 << 20) + 7;

/** `a` has a field of 3,000 bytes, `b` has no such field. */
const source = tree({ 'a.jpg': JPEG, 'a.bin': Buffer.alloc(3000), 'b.jpg': jpeg(2) });
const packed = newFolder();
await pack(source, packed, { workers: 1 });
const size = JPEG.length + 3000;

test('a sample above the size limit ends a pack with its path, and is packed once the limit is raised', async () => {
  const output = newFolder();
  await expect(pack(source, output, { workers: 1, maxSampleBytes: size - 1 })).rejects.toMatchObject({
    name: 'BadFileError',
    message: expect.stringContaining(
      `a.jpg and the 1 next to it have ${size} bytes, more than the limit of ${size - 1} (maxSampleBytes); exclude it, or raise maxSampleBytes.`,
    ),
  });
  expect(await pack(source, output, { workers: 1, maxSampleBytes: size })).toMatchObject({ samples: 2 });
  const without = await pack(source, newFolder(), { workers: 1, maxSampleBytes: 2000, onBad: 'quarantine', maxBad: 1 });
  expect(without).toMatchObject({ samples: 1, quarantined: 1 });
});

test.each(['tar', 'msgpack', 'lmdb'] as const)('a sample above the limit is not converted to %s', async (format) => {
  const refused = { name: 'SampleSizeError', key: 'a', limit: 2000 };
  await expect(convert(packed, newFolder(), { workers: 1, format, maxSampleBytes: 2000 })).rejects.toMatchObject(
    refused,
  );
  const [tar] = (await openDataset(packed)).shards;
  const stream = convert(createReadStream(tar!.path), newFolder(), { workers: 1, format, maxSampleBytes: 2000 });
  await expect(stream).rejects.toMatchObject(refused);
});

test('a sample above the limit cannot be read: by key, by index, sequentially, by a loader, by commands', async () => {
  await using dataset = await openDataset(packed, { maxSampleBytes: 3000 });
  const refused = {
    name: 'SampleSizeError',
    shard: '000000.tar',
    key: 'a',
    limit: 3000,
    message: expect.stringMatching(
      /^000000\.tar: sample "a" has \d+ bytes, more than the limit of 3000 \(maxSampleBytes\); omit it, or raise the limit\.$/,
    ),
  };
  const all = async () => {
    for await (const sample of dataset.samples()) expect(sample.key).toBe('b');
  };
  const batches = async () => {
    for await (const batch of dataset.loader({ transform: 'raw', shuffle: false }))
      expect(batch.labels).toHaveLength(1);
  };
  await expect(dataset.get('a')).rejects.toMatchObject(refused);
  await expect(all()).rejects.toMatchObject(refused);
  await expect(batches()).rejects.toMatchObject(refused);
  expect((await dataset.get('b')).key).toBe('b');
  await expect(openDataset(packed, { maxSampleBytes: 0 })).rejects.toMatchObject({ name: 'OptionError' });
  expect(await shardtool('cat', packed, 'a', 'bin', '--max-sample-bytes', '3000')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^shardtool: 000000\.tar: sample "a" has .*\(--max-sample-bytes\); .*\n$/),
  });
  await using without = await openDataset(packed, { maxSampleBytes: 3000, excludeKeys: ['a'] });
  for await (const batch of without.loader({ transform: 'raw' })) expect(batch.labels).toHaveLength(1);
});

test('a large field is written to a tar in pieces, from files, shards and streams, with the same bytes', async () => {
  const folder = tree({ 'a.jpg': JPEG, 'a.cls': '3', 'a.json': '{}', 'a.zip': 'first', 'b.jpg': JPEG });
  truncateSync(path.join(folder, 'a.zip'), LARGE_BYTES);
  const options = { name: 'x', maxShardSamples: 2, shuffle: false } as const;
  const [plain, ahead, mapped, back, streamed] = Array.from({ length: 5 }, newFolder) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const shard = (output: string) => readFileSync(path.join(output, 'x-000000.tar'));
  await pack(folder, plain, options);
  expect(await verify(plain, { workers: 1 })).toMatchObject({ faults: 0, samples: 2 });
  await pack(folder, mapped, { workers: 1, ...options, format: 'msgpack' });
  for (const made of [
    () => pack(folder, ahead, { workers: 1, ...options, inFlight: 8 }),
    () => convert(mapped, back, { workers: 1, format: 'tar' }),
    () => convert(createReadStream(path.join(plain, 'x-000000.tar')), streamed, { workers: 1, name: 'x' }),
  ]) {
    await made();
  }
  for (const output of [ahead, back, streamed]) expect(shard(output).equals(shard(plain))).toBe(true);
  await using dataset = await openDataset(streamed);
  const { fields, label: cls } = await dataset.get('a');
  expect(cls).toBe(3);
  expect(fields.zip!.length).toBe(LARGE_BYTES);
  expect(Buffer.from(fields.zip!.subarray(0, 6)).toString()).toBe('first\0');
});

test('damage in a large field is detected when it is converted', async () => {
  const folder = tree({ 'a.jpg': JPEG, 'a.zip': '' });
  truncateSync(path.join(folder, 'a.zip'), LARGE_BYTES);
  const output = newFolder();
  await pack(folder, output, { workers: 1 });
  const [shard] = (await openDataset(output)).shards;
  const bytes = readFileSync(shard!.path);
  bytes[bytes.length - 5000]! ^= 1;
  writeFileSync(shard!.path, bytes);
  await expect(convert(output, newFolder(), { workers: 1, format: 'tar' })).rejects.toMatchObject({
    name: 'SampleChecksumError',
    key: 'a',
    field: 'zip',
  });
});

test('an archive that announces a sample above the limit uses no memory and no disk space', async () => {
  const header = readFileSync((await openDataset(packed)).shards[0]!.path).subarray(0, 512);
  const file = path.join(emptyFolder(), 'huge.tar');
  // The size in octal, and the checksum of the header with spaces in its field (POSIX.1-2017 pax).
  header.write('77777777777\0', 124, 'latin1');
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  writeFileSync(file, header);
  await expect(convert(createReadStream(file), newFolder(), { workers: 1 })).rejects.toMatchObject({
    name: 'SampleSizeError',
    limit: 2 ** 30,
  });
});
