import { spawnSync } from 'node:child_process';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { indexPathOf, readShardIndex, type WrittenLayoutName } from '@shardtool/format';
import { pack, repair, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { digestsOf, JPEG, newFolder, tree } from './pack-workbench.js';

/** More than is kept in memory of a sample that is written to a tar. */
const LARGE_BYTES = (65 << 20) + 7;
const photo = readFileSync('test/fixtures/odd-images/gray.jpg');

/** Two samples in one shard: `a` with a field of this many bytes, few of which are not 0, and `b` without. */
async function packed(bytes: number, format: WrittenLayoutName = 'tar') {
  const source = tree({ 'a.jpg': photo, 'a.bin': 'first', 'b.jpg': JPEG });
  truncateSync(path.join(source, 'a.bin'), bytes);
  const folder = newFolder();
  await pack(source, folder, { workers: 1, format, maxShardBytes: 2 ** 31, shuffle: false });
  const shard = path.join(folder, format === 'lmdb' ? '000000.lmdb/data.mdb' : `000000.${format}`);
  return { source, folder, shard };
}

/** Changes a byte in the middle of a field. */
async function damage(shard: string, key: string, field: string): Promise<void> {
  const index = await readShardIndex(indexPathOf(shard));
  const { offset, bytes } = index.fields.get(field)!;
  const row = index.key.indexOf(key);
  const content = readFileSync(shard);
  content[offset[row]! + (bytes[row]! >> 1)]! ^= 4;
  writeFileSync(shard, content);
}

test('a shard is repaired with less memory than one of its fields needs', async () => {
  const bytes = 300 << 20;
  const { folder, shard } = await packed(bytes);
  await damage(shard, 'b', 'jpg');
  const child = fileURLToPath(new URL('repair-child.mjs', import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, [child, folder], { encoding: 'utf8', timeout: 150_000 });
  expect(stderr).toBe('');
  const { peakBytes, ...report } = JSON.parse(stdout);
  expect(report).toMatchObject({ samples: 1, takenOut: 1, repairedShards: 1 });
  expect(peakBytes).toBeLessThan(bytes);
  expect(await verify(folder, { workers: 1 })).toMatchObject({ samples: 1, faults: 0 });
});

test('a large damaged field is restored from the packed folder, and its sample is removed without the folder', async () => {
  const { source, folder, shard } = await packed(LARGE_BYTES);
  const before = digestsOf(folder);
  await damage(shard, 'a', 'bin');
  expect(await repair(folder, { workers: 1, source })).toMatchObject({ samples: 2, takenOut: 0, restored: 1 });
  expect(digestsOf(folder)).toMatchObject(before);
  await damage(shard, 'a', 'bin');
  const reasons: string[] = [];
  expect(await repair(folder, { workers: 1, onTakenOut: ({ reason }) => reasons.push(reason) })).toMatchObject({
    samples: 1,
  });
  expect(reasons).toEqual([expect.stringMatching(/^field "bin" has changed: crc32 \w{8}, the index says \w{8}$/)]);
});

test.each(['msgpack', 'lmdb'] as const)(
  'a sample that %s cannot write in pieces is rejected above the limit, and nothing is lost',
  async (format) => {
    const { folder, shard } = await packed(100_000, format);
    await damage(shard, 'b', 'jpg');
    const before = digestsOf(folder);
    const size = photo.length + 100_000;
    await expect(repair(folder, { workers: 1, maxSampleBytes: size - 1 })).rejects.toMatchObject({
      name: 'SampleSizeError',
      message: `000000.${format}: sample "a" has ${size} bytes, more than the limit of ${size - 1} (maxSampleBytes); omit it, or raise the limit.`,
      key: 'a',
    });
    expect(digestsOf(folder)).toEqual(before);
    expect(await repair(folder, { workers: 1, maxSampleBytes: size })).toMatchObject({ samples: 1, takenOut: 1 });
  },
);

test('an image that must be decoded is rejected above the limit, and nothing is lost', async () => {
  const { folder, shard } = await packed(10);
  await damage(shard, 'b', 'jpg');
  const before = digestsOf(folder);
  const outcome = await shardtool('verify', folder, '--fix', '--check', 'decode', '--max-sample-bytes', '1000');
  expect(outcome).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^shardtool: 000000\.tar: sample "a" has \d+ bytes, .*\(--max-sample-bytes\).*\n$/),
  });
  expect(digestsOf(folder)).toEqual(before);
  const without = await shardtool('verify', folder, '--max-sample-bytes', '1000');
  expect(without).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--max-sample-bytes is for repairs: also set --fix.'),
  });
});
