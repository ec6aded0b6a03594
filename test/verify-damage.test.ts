import { copyFileSync, cpSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { indexPathOf, type LayoutName, readManifest, readShardIndex } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { type Fault, pack, type VerifyOptions, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkShard, type ShardToVerify } from '#writer/check/check-shard';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

const source = tree(
  Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [
      [`${i % 2 === 0 ? 'even' : 'odd'}/${i}.jpg`, jpeg(`number ${i}`)],
      [`${i % 2 === 0 ? 'even' : 'odd'}/${i}.txt`, `a caption ${'x'.repeat(i)}`],
    ]).flat(),
  ),
);
const formats = ['tar', 'msgpack', 'lmdb'] as const;
const sound = Object.fromEntries(
  await Promise.all(
    formats.map(async (format) => {
      const output = newFolder();
      await pack(source, output, { workers: 1, format, maxShardSamples: 6, shuffle: false });
      return [format, output] as const;
    }),
  ),
) as Record<LayoutName, string>;

/** A copy of a sound dataset that may be damaged. */
function copyOf(format: LayoutName): string {
  const copy = path.join(emptyFolder(), 'shards');
  cpSync(sound[format], copy, { recursive: true });
  return copy;
}

function shardFile(dataset: string, format: LayoutName, shard = 0): string {
  const file = path.join(dataset, `00000${shard}.${format}`);
  return format === 'lmdb' ? path.join(file, 'data.mdb') : file;
}

function change(file: string, edit: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  edit(bytes);
  writeFileSync(file, bytes);
}

async function faultsOf(dataset: string, options: VerifyOptions = {}): Promise<Fault[]> {
  const faults: Fault[] = [];
  const report = await verify(dataset, { workers: 1, ...options, onFault: (fault) => faults.push(fault) });
  expect(report.faults).toBe(faults.length);
  expect(report.damagedSamples).toBe(faults.filter(({ key }) => key !== undefined).length);
  return faults;
}

const keyed = (faults: readonly Fault[]) => faults.map(({ shard, key }) => `${shard} ${key ?? '-'}`);

test.each(formats)('a sound %s dataset has no faults, decoded or not', async (format) => {
  expect(await faultsOf(sound[format])).toEqual([]);
  const progress: number[] = [];
  const report = await verify(sound[format], {
    workers: 1,
    check: 'decode',
    onProgress: ({ shards }) => progress.push(shards),
  });
  expect(report).toMatchObject({ shards: 2, samples: 12, faults: 0, damagedSamples: 0, warnings: 0, checksums: true });
  expect(progress).toEqual([1, 2]);
});

test.each(formats)(
  'changed bytes in two fields of a sample of a %s shard are one fault that names both',
  async (format) => {
    const dataset = copyOf(format);
    const file = shardFile(dataset, format, 1);
    const { key, fields } = await readShardIndex(indexPathOf(path.join(dataset, `000001.${format}`)));
    const last = fields.get('jpg')!.bytes[2]! - 1;
    change(file, (bytes) => {
      bytes[fields.get('jpg')!.offset[2]! + last]! ^= 1;
      bytes[fields.get('txt')!.offset[2]!]! ^= 0x20;
    });
    const faults = await faultsOf(dataset);
    expect(keyed(faults)).toEqual([`000001.${format} ${key[2]}`]);
    expect(faults[0]!.reason).toMatch(
      /^field "(jpg|txt)" has changed: crc32 \w{8}, the index says \w{8}; field "(txt|jpg)" has changed: /,
    );
  },
);

test('a number that a msgpack shard stores as a value is compared with the packed text', async () => {
  const dataset = copyOf('msgpack');
  const { key, fields } = await readShardIndex(path.join(dataset, '000000.parquet'));
  const cls = fields.get('cls')!;
  expect(cls.msgpack?.[4]).toBe(1);
  change(shardFile(dataset, 'msgpack'), (bytes) => {
    bytes[cls.offset[4]!]! ^= 2;
  });
  const [fault, ...more] = await faultsOf(dataset);
  expect([fault!.key, more]).toEqual([key[4], []]);
  expect(fault!.reason).toContain('field "cls" has changed');
});

test('a changed tar header is assigned to its sample, and the samples after it are still checked', async () => {
  const dataset = copyOf('tar');
  const { key, offset, fields } = await readShardIndex(path.join(dataset, '000000.parquet'));
  change(shardFile(dataset, 'tar'), (bytes) => {
    bytes[offset[2]! + 3]! ^= 1;
    bytes[fields.get('txt')!.offset[5]!]! ^= 1;
  });
  const faults = await faultsOf(dataset);
  expect(keyed(faults)).toEqual([`000000.tar ${key[2]}`, `000000.tar ${key[5]}`]);
  expect(faults[0]!.reason).toMatch(new RegExp(`^the header at byte ${offset[2]} `));
});

test('changed padding is detected only by the checksum of the file', async () => {
  const dataset = copyOf('tar');
  const { fields } = await readShardIndex(path.join(dataset, '000000.parquet'));
  const { offset, bytes } = fields.get('txt')!;
  change(shardFile(dataset, 'tar'), (file) => {
    file[offset[0]! + bytes[0]! + 1] = 1;
  });
  const reason = 'the file has changed since it was packed, although every sample in it matches its index';
  expect(await faultsOf(dataset)).toEqual([{ shard: '000000.tar', reason }]);
});

test('changed padding is detected even if an image cannot be decoded', async () => {
  const dataset = newFolder();
  await pack('test/fixtures/odd-images', dataset, { workers: 1, include: ['truncated.png', 'gray.jpg'] });
  const { fields } = await readShardIndex(path.join(dataset, '000000.parquet'));
  const { offset, bytes } = fields.get('jpg')!;
  const row = offset.findIndex((at) => at >= 0);
  change(shardFile(dataset, 'tar'), (file) => {
    file[offset[row]! + bytes[row]! + 1] = 1;
  });
  expect(keyed(await faultsOf(dataset, { check: 'decode' }))).toEqual(['000000.tar -', '000000.tar truncated']);
});

test.each(formats)('in a truncated %s shard, lost samples are listed, and the others are checked', async (format) => {
  const dataset = copyOf(format);
  const file = shardFile(dataset, format);
  const { key, fields } = await readShardIndex(path.join(dataset, '000000.parquet'));
  const { offset } = fields.get('jpg')!;
  const kept = Math.floor(offset[3]! + 5);
  const isLost = (row: number) => [...fields.values()].some((field) => field.offset[row]! + field.bytes[row]! > kept);
  truncateSync(file, kept);
  const faults = await faultsOf(dataset);
  const name = `000000.${format}`;
  expect(faults[0]).toEqual({
    shard: name,
    reason: expect.stringMatching(new RegExp(`^the file has ${kept} bytes, the manifest says \\d+$`)),
  });
  expect(faults.flatMap((fault) => fault.key ?? []).sort()).toEqual(key.filter((_, row) => isLost(row)).sort());
});

test.each(formats)('two swapped %s shards are detected, sample by sample', async (format) => {
  const dataset = copyOf(format);
  const [a, b] = [shardFile(dataset, format, 0), shardFile(dataset, format, 1)];
  renameSync(a, `${a}.aside`);
  renameSync(b, a);
  renameSync(`${a}.aside`, b);
  const faults = await faultsOf(dataset);
  for (const shard of [`000000.${format}`, `000001.${format}`]) {
    const reasons = faults
      .filter((fault) => fault.shard === shard && fault.key !== undefined)
      .map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'it is in the index, but not in the shard')).toHaveLength(6);
    expect(reasons.filter((reason) => reason === 'it is in the shard, but not in the index')).toHaveLength(6);
  }
});

test('a missing shard, a missing index and a damaged index are one line each, which says what is still intact', async () => {
  const dataset = copyOf('tar');
  rmSync(shardFile(dataset, 'tar', 0));
  rmSync(path.join(dataset, '000001.parquet'));
  const [noShard, noIndex, ...more] = await faultsOf(dataset);
  expect(more).toEqual([]);
  expect(noShard).toEqual({ shard: '000000.tar', reason: expect.stringMatching(/000000\.tar cannot be opened/) });
  expect(noIndex).toEqual({
    shard: '000001.tar',
    reason: expect.stringMatching(
      /000001\.parquet cannot be opened: no such file or folder\. \(The shard itself is unchanged\.\)$/,
    ),
  });

  const other = copyOf('tar');
  change(path.join(other, '000001.parquet'), (bytes) => {
    bytes[20]! ^= 1;
  });
  const [damaged, ...nothing] = await faultsOf(other);
  expect(nothing).toEqual([]);
  expect(damaged!.reason).toMatch(/000001\.parquet has changed since it was written.*The shard itself is unchanged/);
  change(shardFile(other, 'tar', 1), (bytes) => {
    bytes[600]! ^= 1;
  });
  expect((await faultsOf(other))[0]!.reason).not.toContain('as it was packed');
});

test('the index of another shard, or of another pack, is detected', async () => {
  const dataset = copyOf('tar');
  copyFileSync(path.join(dataset, '000000.parquet'), path.join(dataset, '000001.parquet'));
  expect((await faultsOf(dataset)).every(({ shard }) => shard === '000001.tar')).toBe(true);
  expect((await faultsOf(dataset)).length).toBe(12);
  const half = newFolder();
  await pack(source, half, { workers: 1, maxShardSamples: 6, shuffle: false, exclude: ['odd/9.*'] });
  const other = copyOf('tar');
  copyFileSync(path.join(half, '000001.parquet'), path.join(other, '000001.parquet'));
  expect((await faultsOf(other)).map(({ reason }) => reason)).toEqual([
    'the index has 5 samples, the manifest says 6',
    'it is in the shard, but not in the index',
  ]);
});

test('reading with an index that has fewer samples than its shard throws an error that names the index', async () => {
  const half = newFolder();
  await pack(source, half, { workers: 1, maxShardSamples: 6, shuffle: false, exclude: ['odd/9.*'] });
  const location = copyOf('tar');
  copyFileSync(path.join(half, '000001.parquet'), path.join(location, '000001.parquet'));
  await using dataset = await openDataset(location);
  const take = async (values: AsyncIterable<unknown>) => {
    for await (const _ of values);
  };
  const options = { transform: 'raw', fields: [], workers: 1, onBad: 'skip' } as const;
  for (const read of [
    () => dataset.get(11),
    () => take(dataset.samples()),
    () => take(dataset.loader(options)),
    () => take(dataset.loader({ ...options, where: 'class == "odd"' })),
    () => dataset.stats(),
  ]) {
    await expect(read()).rejects.toThrow('000001.parquet has 5 samples, but dataset.json lists 6 for its shard');
  }
});

test('a sample that was replaced with one of another size is listed, with all samples after it', async () => {
  const longer = tree({ 'even/2.jpg': Buffer.concat([jpeg('number 2'), Buffer.alloc(1000)]) });
  cpSync(source, longer, { recursive: true, force: false });
  const other = newFolder();
  await pack(longer, other, { workers: 1, maxShardSamples: 6, shuffle: false });
  const dataset = copyOf('tar');
  copyFileSync(path.join(other, '000000.tar'), path.join(dataset, '000000.tar'));
  const { key } = await readShardIndex(path.join(dataset, '000000.parquet'));
  const changed = key.indexOf('even/2');
  const faults = await faultsOf(dataset);
  expect(faults[0]!.reason).toMatch(/^the file has \d+ bytes, the manifest says \d+$/);
  expect(keyed(faults.slice(1))).toEqual(key.slice(changed).map((name) => `000000.tar ${name}`));
  expect(faults[1]!.reason).toMatch(/^field "jpg" has \d+ bytes, the index says \d+$/);
  expect(faults[2]!.reason).toMatch(/^field "\w+" is at byte \d+, the index says \d+$/);

  // With its own index the shard is consistent, but it is not the packed shard.
  copyFileSync(path.join(other, '000000.parquet'), path.join(dataset, '000000.parquet'));
  expect((await faultsOf(dataset)).map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/^the file has \d+ bytes, the manifest says \d+$/),
  ]);
});

test('a changed manifest is an error that says so', async () => {
  for (const [from, to] of [
    ['"samples": 12', '"samples": 13'],
    ['"000001.tar"', '"000002.tar"'],
    ['"crc32":"', '"crc32":"0'],
    ['"version": 1', '"version": 2'],
    ['{', ''],
  ] as const) {
    const dataset = copyOf('tar');
    const file = path.join(dataset, 'dataset.json');
    const text = readFileSync(file, 'utf8');
    expect(text).toContain(from);
    writeFileSync(file, text.replace(from, to));
    await expect(verify(dataset, { workers: 1 }), `${from} to ${to}`).rejects.toMatchObject({
      name: expect.stringMatching(/^(Manifest|Version)Error$/),
    });
  }
  const dataset = copyOf('tar');
  rmSync(path.join(dataset, 'dataset.json'));
  await expect(verify(dataset, { workers: 1 })).rejects.toMatchObject({ name: 'UnfinishedPackError' });
});

test.each(formats)(
  'any flipped bit and any truncation of a %s shard or its index is detected, without other errors',
  async (format) => {
    const dataset = copyOf(format);
    const { shards } = await readManifest(dataset);
    const shard: ShardToVerify = {
      format,
      name: 'shard',
      path: path.join(dataset, shards[0]!.file),
      indexPath: path.join(dataset, '000000.parquet'),
      cropsPath: null,
      record: shards[0]!,
    };
    const files = [shard.path, shard.indexPath!];
    const whole = files.map((file) => readFileSync(file));
    const damage = fc.record({
      file: fc.constantFrom(0, 1),
      at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      bit: fc.option(fc.nat(7)),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ file, at, bit }) => {
        const bytes = Buffer.from(whole[file]!);
        const place = Math.floor(at * bytes.length);
        if (bit !== null) bytes[place]! ^= 1 << bit;
        writeFileSync(files[file]!, bit === null ? bytes.subarray(0, place) : bytes);
        const { faults } = await checkShard(shard, null);
        writeFileSync(files[file]!, whole[file]!);
        expect(faults.length).toBeGreaterThan(0);
        for (const { reason } of faults) expect(reason).toMatch(/^\S[^\n]*\S$/);
      }),
      { numRuns: 40 * TIMES },
    );
    expect((await checkShard(shard, null)).faults).toEqual([]);
  },
);

test('verify rejects an invalid number of workers', async () => {
  for (const workers of [0, -1, 1.5, Number.NaN, 1e6]) {
    await expect(verify(sound.tar, { workers })).rejects.toThrow(
      /The option workers of verify is invalid: .* from 1 to 1,024/,
    );
  }
});

test('in LMDB shards of images only, an image keeps the name of its field, which only the index has', async () => {
  const image = readFileSync('test/fixtures/odd-images/gray.jpg');
  const folder = newFolder();
  await pack(tree({ 'a.jpeg': image, 'b.jpg': image }), folder, { workers: 1, format: 'lmdb', lmdbValues: 'image' });
  expect(await verify(folder, { workers: 1 })).toMatchObject({ samples: 2, faults: 0 });
});
