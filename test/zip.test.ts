import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, type Fault, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { PNG } from './pack-workbench.js';

/** Written by Python's zipfile: see make.py there. */
const fixtures = 'test/fixtures/zip';
const expected: Record<string, string> = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** sha256 by file name, and the class of each sample. */
async function contents(dataset: Dataset, prefix = '') {
  const files: Record<string, string> = {};
  const classes = new Set<string>();
  for await (const { key, label: cls, fields } of dataset.samples({ checksum: true })) {
    const name = key.slice(prefix.length);
    expect(name.startsWith(`${dataset.classes[cls]}/`)).toBe(true);
    classes.add(dataset.classes[cls]!);
    for (const [field, bytes] of Object.entries(fields)) if (field !== 'cls') files[`${name}.${field}`] = sha256(bytes);
  }
  return { files, classes: [...classes].sort() };
}
const all = { files: expected, classes: ['ant', 'bee', 'ångström'] };

test('zip files of class folders open in place: stored, deflated and zip64', async () => {
  for (const [name, prefix] of [
    ['stored.zip', ''],
    ['deflated.zip', 'photos/train/'],
    ['zip64.zip', ''],
  ] as const) {
    await using dataset = await openDataset(path.join(fixtures, name));
    expect([dataset.format, dataset.size, dataset.classes], name).toEqual(['zip', 18, all.classes]);
    expect(await contents(dataset, prefix), name).toEqual(all);
    await expect(dataset.get(`${prefix}bee/04`)).resolves.toMatchObject({ label: 1 });
  }
});

test('several zips are one dataset with the classes of all of them', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'several'));
  expect([dataset.shards.length, dataset.classes]).toEqual([2, all.classes]);
  expect(await contents(dataset)).toEqual(all);
  const loader = dataset.loader({
    batchSize: 4,
    transform: 'train224',
    workers: 1,
    classes: ['bee'],
    checksum: 'always',
  });
  const labels: number[] = [];
  for await (const batch of loader) labels.push(...batch.labels.subarray(0, batch.size));
  await loader.close();
  expect(new Set(labels)).toEqual(new Set([1]));
});

test('folders called train and val become the label column split', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'deflated.zip'));
  expect((await dataset.files.index(0)).columns.get('split')).toEqual(new Array(18).fill('train'));
});

test('convert and index accept zips, with the classes of all zips', async () => {
  const output = path.join(emptyFolder(), 'tars');
  await convert(path.join(fixtures, 'several'), output, { workers: 1 });
  expect((await readManifest(output)).classes.map(({ name, samples }) => [name, samples])).toEqual([
    ['ant', 6],
    ['bee', 6],
    ['ångström', 6],
  ]);
  await using tars = await openDataset(output);
  expect(await contents(tars)).toEqual(all);
  const folder = path.join(emptyFolder(), 'zips');
  cpSync(path.join(fixtures, 'several'), folder, { recursive: true });
  await indexShards([folder]);
  expect((await verify(folder, { workers: 1 })).faults).toBe(0);
  await using indexed = await openDataset(folder);
  expect(await contents(indexed)).toEqual(all);
  expect((await indexed.files.index(1)).width.every((width) => width > 0)).toBe(true);
});

test('zips that cannot be read are rejected with clear messages', async () => {
  await expect(openDataset(path.join(fixtures, 'lzma.zip'))).rejects.toThrow(
    'is compressed with method 14; create the zip again',
  );
  const folder = emptyFolder();
  const whole = readFileSync(path.join(fixtures, 'stored.zip'));
  writeFileSync(path.join(folder, 'cut.zip'), whole.subarray(0, whole.length >> 1));
  await expect(openDataset(path.join(folder, 'cut.zip'))).rejects.toThrow('does not end like a zip');
  const changed = Buffer.from(whole);
  changed[200]! ^= 1;
  writeFileSync(path.join(folder, 'changed.zip'), changed);
  await using dataset = await openDataset(path.join(folder, 'changed.zip'));
  await expect(dataset.get(0)).rejects.toThrow('has changed since it was packed (checksum: crc32 ');
  const outside = Buffer.from(whole.toString('latin1').replaceAll('ant/00.jpg', '../../.jpg'), 'latin1');
  writeFileSync(path.join(folder, 'outside.zip'), outside);
  await expect(openDataset(path.join(folder, 'outside.zip'))).rejects.toThrow('leads out of its folder');
});

test.each(['stored', 'deflated'])('a damaged file in a zip, %s, loses only its sample', async (kind) => {
  const folder = emptyFolder();
  const zip = path.join(folder, 'a.zip');
  const bytes = readFileSync(path.join(fixtures, `${kind}.zip`));
  await using sound = await openDataset(path.join(fixtures, `${kind}.zip`));
  const { key } = await sound.get(0);
  // In the first file, which is longer than that.
  bytes.fill(0xff, 200, 210);
  writeFileSync(zip, bytes);
  const faults: Fault[] = [];
  const report = await verify(zip, { workers: 1, onFault: (fault) => faults.push(fault) });
  expect(report).toMatchObject({ samples: 18, faults: 1, damagedSamples: 1, checksums: true });
  expect(faults).toMatchObject([{ key, reason: expect.stringContaining('" has changed: crc32 ') }]);
  const opened = async () => {
    await using dataset = await openDataset(zip);
    await using loader = dataset.loader({ transform: 'raw', batchSize: 18, onBad: 'skip' });
    let samples = 0;
    for await (const { valid } of loader) samples += valid.filter((isValid) => isValid === 1).length;
    return samples;
  };
  expect(await opened()).toBe(17);
  await expect(convert(zip, path.join(folder, 'tars'), { workers: 1 })).rejects.toThrow(`sample "${key}" has changed`);
  await indexShards([zip]);
  expect(await verify(zip, { workers: 1 })).toMatchObject({ faults: 1, damagedSamples: 1 });
  expect(await opened()).toBe(17);
});

test('a zip without samples is listed as such, and the error for a damaged zip says how to extract the rest', async () => {
  const folder = emptyFolder();
  const place = path.join(folder, 'empty.zip');
  writeFileSync(place, Buffer.concat([Buffer.from('PK\x05\x06', 'latin1'), Buffer.alloc(18)]));
  expect((await shardtool('ls', place)).stdout).toContain('1 zip shard without samples.\n');
  expect(await shardtool('preview', place, '--output', path.join(folder, 'a.png'))).toMatchObject({
    code: 2,
    stderr: `shardtool: ${place} contains no samples, so there is nothing to show.\n`,
  });
  const damaged = path.join(folder, 'damaged.zip');
  const bytes = readFileSync(path.join(fixtures, 'stored.zip'));
  bytes[200]! ^= 1;
  writeFileSync(damaged, bytes);
  const failed = await shardtool('unpack', damaged, path.join(folder, 'out'));
  expect(failed.stderr).toContain(
    'Run "shardtool verify" to list every damaged sample. To exclude such samples, use --exclude-keys.\n',
  );
  const found = (await shardtool('verify', damaged)).stdout.split('\t');
  const list = path.join(folder, 'bad.txt');
  writeFileSync(list, `${found[1]}\n`);
  const unpacked = await shardtool('unpack', damaged, path.join(folder, 'out2'), '--exclude-keys', list);
  expect(unpacked.stdout).toContain('of 17 samples');
});

test('an index gets its other name if a folder has the first, and a missing folder is not a cache', async () => {
  const folder = emptyFolder();
  const place = path.join(folder, 'a.zip');
  cpSync(path.join(fixtures, 'stored.zip'), place);
  mkdirSync(path.join(folder, 'a.parquet'));
  expect(await shardtool('index', place)).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(`${place}.shardtool`)).toBe(true);
  const nowhere = path.join(folder, 'nowhere');
  expect(await shardtool('cache', 'ls', nowhere)).toMatchObject({
    code: 2,
    stderr: `shardtool: No such folder: ${nowhere}. Give the folder of a cache.\n`,
  });
});

test('a zip without samples is not converted, and a missing file is not called a mixture', async () => {
  const folder = emptyFolder();
  const empty = Buffer.alloc(22);
  empty.write('PK\x05\x06', 'latin1');
  writeFileSync(path.join(folder, 'empty.zip'), empty);
  const output = path.join(folder, 'tars');
  await expect(convert(path.join(folder, 'empty.zip'), output)).rejects.toThrow('There is no sample to convert');
  expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
  await expect(convert(path.join(folder, 'none.json'), output)).rejects.toThrow(/none\.json cannot be opened/);
});

interface Crafted {
  /** The stored bytes. */
  readonly name: string | Buffer;
  /** General purpose flags: 0x800 says that the name is UTF-8. */
  readonly flags?: number;
  readonly extra?: Buffer;
}

/** A zip of these files, stored uncompressed; all are the same image. */
function zipOf(files: readonly Crafted[], comment = ''): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const { name, flags = 0x800, extra = Buffer.alloc(0) } of files) {
    const stored = Buffer.from(name as string);
    const data = stored.at(-1) === 0x2f || stored.at(-1) === 0x5c ? Buffer.alloc(0) : PNG;
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(stored.length, 22);
    const head = Buffer.concat([Buffer.from('PK\x03\x04'), common, stored, data]);
    common.writeUInt16LE(extra.length, 24);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), common, rest, stored, extra]));
    local.push(head);
    offset += head.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  for (const at of [8, 10]) end.writeUInt16LE(files.length, at);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  end.writeUInt16LE(comment.length, 20);
  return Buffer.concat([...local, directory, end, Buffer.from(comment)]);
}

function placed(bytes: Buffer, name = 'a.zip'): string {
  const file = path.join(emptyFolder(), name);
  writeFileSync(file, bytes);
  return file;
}

/** Keys with the names of their classes; every image is read. */
async function found(file: string, options = {}): Promise<unknown[]> {
  await using dataset = await openDataset(file, options);
  const samples: unknown[] = [];
  for await (const { key, label: cls, fields, columns } of dataset.samples({ checksum: true })) {
    expect(Buffer.from(fields.png!).equals(PNG)).toBe(true);
    samples.push([key, dataset.classes[cls], ...(columns.split === undefined ? [] : [columns.split])]);
  }
  return samples;
}

test('backslashes between folders, as written by old .NET, count as slashes if a zip has no slashes', async () => {
  const old = placed(zipOf(['cat\\', 'cat\\1.png', 'dog\\2.png'].map((name) => ({ name }))));
  expect(await found(old)).toEqual([
    ['cat/1', 'cat'],
    ['dog/2', 'dog'],
  ]);
  const mixed = placed(zipOf(['cat/1\\2.png', 'dog/3.png'].map((name) => ({ name }))));
  expect(await found(mixed)).toEqual([
    ['cat/1\\2', 'cat'],
    ['dog/3', 'dog'],
  ]);
  const outside = placed(zipOf([{ name: '..\\1.png' }]));
  await expect(openDataset(outside)).rejects.toThrow('leads out of its folder');
});

test('a zip of the folder ".", whose names begin with "./", has the same samples as that folder', async () => {
  const dotted = placed(
    zipOf(['./', './cat/', './cat/1.png', './././dog/./2.png', './.hidden/3.png'].map((name) => ({ name }))),
  );
  expect(await found(dotted)).toEqual([
    ['cat/1', 'cat'],
    ['dog/2', 'dog'],
  ]);
});

test('bytes before a zip, such as a self-extracting program, are skipped, whether offsets count them or not', async () => {
  const plain = zipOf(
    ['cat/1.png', 'dog/2.png'].map((name) => ({ name })),
    'a comment',
  );
  const expectedSamples = await found(placed(plain));
  expect(expectedSamples).toHaveLength(2);
  for (const front of ['#!/bin/sh\nexit\n', 'x'.repeat(70_000), 'PK\x03\x04']) {
    const prefixed = Buffer.concat([Buffer.from(front), plain]);
    expect(await found(placed(prefixed)), `${front.length} bytes`).toEqual(expectedSamples);
  }
  // Zip64, as Python writes it.
  const large = readFileSync(path.join(fixtures, 'zip64.zip'));
  await using dataset = await openDataset(placed(Buffer.concat([Buffer.alloc(1000, 7), large])));
  expect(await contents(dataset)).toEqual(all);
  // As written by "zip -A": all offsets are relative to the whole file.
  const counted = Buffer.from(plain);
  const front = Buffer.alloc(500, 1);
  const end = counted.lastIndexOf('PK\x05\x06');
  const directory = counted.readUInt32LE(end + 16);
  counted.writeUInt32LE(directory + front.length, end + 16);
  for (let at = counted.indexOf('PK\x01\x02'); at !== -1; at = counted.indexOf('PK\x01\x02', at + 4))
    counted.writeUInt32LE(counted.readUInt32LE(at + 42) + front.length, at + 42);
  expect(await found(placed(Buffer.concat([front, counted])))).toEqual(expectedSamples);
});

test('names without the UTF-8 flag are read as UTF-8 if possible, otherwise as code page 437, and never collide', async () => {
  const unicode = (stored: Buffer, name: string) => {
    const bytes = Buffer.from(name);
    const extra = Buffer.alloc(9 + bytes.length);
    extra.writeUInt16LE(0x7075, 0);
    extra.writeUInt16LE(5 + bytes.length, 2);
    extra[4] = 1;
    extra.writeUInt32LE(crc32(stored), 5);
    bytes.copy(extra, 9);
    return extra;
  };
  const kept = Buffer.from('m?we/4.png');
  const file = placed(
    zipOf([
      { name: Buffer.from('m\x84use/1.png', 'latin1'), flags: 0 },
      { name: Buffer.from('m\x94use/2.png', 'latin1'), flags: 0x800 },
      { name: 'mäuse/3.png', flags: 0 },
      { name: kept, flags: 0, extra: unicode(kept, 'möwe/4.png') },
      { name: 'm?we/5.png', flags: 0, extra: unicode(kept, 'möwe/5.png') },
    ]),
  );
  expect(await found(file)).toEqual([
    ['mäuse/1', 'mäuse'],
    ['möuse/2', 'möuse'],
    ['mäuse/3', 'mäuse'],
    ['möwe/4', 'möwe'],
    // The name in the field differs from the current name of the entry.
    ['m?we/5', 'm?we'],
  ]);
});

test('split selects the samples of one of the folders train and val in a zip, with the same classes', async () => {
  const names = [
    'set/train/cat/1.png',
    'set/val/dog/2.png',
    'set/train/dog/3.png',
    'set/val/cat/4.png',
    'set/train/owl/5.png',
  ];
  const file = placed(zipOf(names.map((name) => ({ name }))));
  await using dataset = await openDataset(file);
  expect([dataset.splits, dataset.classes]).toEqual([
    ['train', 'validation'],
    ['cat', 'dog', 'owl'],
  ]);
  const val = [
    ['set/val/dog/2', 'dog', 'val'],
    ['set/val/cat/4', 'cat', 'val'],
  ];
  for (const split of ['val', 'validation', 'dev']) expect(await found(file, { split }), split).toEqual(val);
  expect(await found(file, { split: 'train' })).toHaveLength(3);
  await expect(openDataset(file, { split: 'test' })).rejects.toThrow(
    'No split "test" here; the files belong to train, validation.',
  );
  const { stdout } = await shardtool('ls', file, '--split', 'val', '--samples');
  expect(stdout).toContain('set/val/dog/2');
  expect(stdout).not.toContain('set/train');
  const output = path.join(emptyFolder(), 'tars');
  expect(await convert(file, output, { split: 'val', workers: 1 })).toMatchObject({ samples: 2 });
  expect((await readManifest(output)).classes.map(({ name }) => name)).toEqual(['cat', 'dog', 'owl']);
  // An index next to it contains all samples.
  await indexShards([file]);
  expect(await found(file, { split: 'val' })).toEqual(val);
});
