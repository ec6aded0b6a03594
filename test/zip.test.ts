import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert, type Fault, indexShards, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

/** Made by Python's zipfile: see make.py there. */
const fixtures = 'test/fixtures/zip';
const expected: Record<string, string> = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** sha256 by name of the file, and the class of each sample. */
async function contents(dataset: Dataset, prefix = '') {
  const files: Record<string, string> = {};
  const classes = new Set<string>();
  for await (const { key, cls, fields } of dataset.samples({ checksum: true })) {
    const name = key.slice(prefix.length);
    expect(name.startsWith(`${dataset.classes[cls]}/`)).toBe(true);
    classes.add(dataset.classes[cls]!);
    for (const [field, bytes] of Object.entries(fields)) if (field !== 'cls') files[`${name}.${field}`] = sha256(bytes);
  }
  return { files, classes: [...classes].sort() };
}
const all = { files: expected, classes: ['ant', 'bee', 'ångström'] };

test('zip files of class folders open as they are: stored, deflated and zip64', async () => {
  for (const [name, prefix] of [
    ['stored.zip', ''],
    ['deflated.zip', 'photos/train/'],
    ['zip64.zip', ''],
  ] as const) {
    await using dataset = await openDataset(path.join(fixtures, name));
    expect([dataset.format, dataset.size, dataset.classes], name).toEqual(['zip', 18, all.classes]);
    expect(await contents(dataset, prefix), name).toEqual(all);
    await expect(dataset.get(`${prefix}bee/04`)).resolves.toMatchObject({ cls: 1 });
  }
});

test('several zips are one dataset, whose classes are those of all of them', async () => {
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

test('folders called train and val are the label column split', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'deflated.zip'));
  expect((await dataset.files.index(0)).columns.get('split')).toEqual(new Array(18).fill('train'));
});

test('convert and index take them, with the classes of all zips', async () => {
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

test('what cannot be read is refused by a sentence', async () => {
  await expect(openDataset(path.join(fixtures, 'lzma.zip'))).rejects.toThrow(
    'is compressed by method 14; make the zip anew',
  );
  const folder = emptyFolder();
  const whole = readFileSync(path.join(fixtures, 'stored.zip'));
  writeFileSync(path.join(folder, 'cut.zip'), whole.subarray(0, whole.length >> 1));
  await expect(openDataset(path.join(folder, 'cut.zip'))).rejects.toThrow('does not end as a zip does');
  const changed = Buffer.from(whole);
  changed[200]! ^= 1;
  writeFileSync(path.join(folder, 'changed.zip'), changed);
  await using dataset = await openDataset(path.join(folder, 'changed.zip'));
  await expect(dataset.get(0)).rejects.toThrow('has changed since it was packed (checksum: crc32 ');
  const outside = Buffer.from(whole.toString('latin1').replaceAll('ant/00.jpg', '../../.jpg'), 'latin1');
  writeFileSync(path.join(folder, 'outside.zip'), outside);
  await expect(openDataset(path.join(folder, 'outside.zip'))).rejects.toThrow('leads out of its folder');
});

test.each(['stored', 'deflated'])('a damaged file in a zip, %s, costs its sample and no other', async (kind) => {
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
    await using loader = dataset.loader({ transform: 'raw', batchSize: 18, onBadSample: 'skip' });
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

test('a zip without samples is shown as one, and of a damaged one the sentence says how the rest is taken', async () => {
  const folder = emptyFolder();
  const place = path.join(folder, 'empty.zip');
  writeFileSync(place, Buffer.concat([Buffer.from('PK\x05\x06', 'latin1'), Buffer.alloc(18)]));
  expect((await shardtool('ls', place)).stdout).toContain('1 zip shard, and no sample in it.\n');
  expect(await shardtool('preview', place, '--output', path.join(folder, 'a.png'))).toMatchObject({
    code: 2,
    stderr: `shardtool: There is no sample in ${place}, so there is nothing to show.\n`,
  });
  const damaged = path.join(folder, 'damaged.zip');
  const bytes = readFileSync(path.join(fixtures, 'stored.zip'));
  bytes[200]! ^= 1;
  writeFileSync(damaged, bytes);
  const told = await shardtool('unpack', damaged, path.join(folder, 'out'));
  expect(told.stderr).toContain(
    'Run "shardtool verify" to list every damaged sample. --exclude-keys leaves them out.\n',
  );
  const found = (await shardtool('verify', damaged)).stdout.split('\t');
  const list = path.join(folder, 'bad.txt');
  writeFileSync(list, `${found[1]}\n`);
  const unpacked = await shardtool('unpack', damaged, path.join(folder, 'out2'), '--exclude-keys', list);
  expect(unpacked.stdout).toContain('of 17 samples');
});

test('an index goes under its other name where a folder has the first, and a folder that is not there is no cache', async () => {
  const folder = emptyFolder();
  const place = path.join(folder, 'a.zip');
  cpSync(path.join(fixtures, 'stored.zip'), place);
  mkdirSync(path.join(folder, 'a.parquet'));
  expect(await shardtool('index', place)).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(`${place}.shardtool`)).toBe(true);
  const nowhere = path.join(folder, 'nowhere');
  expect(await shardtool('cache', 'ls', nowhere)).toMatchObject({
    code: 2,
    stderr: `shardtool: There is no folder ${nowhere}; name that of a cache.\n`,
  });
});

test('a zip without samples is not converted to a dataset without samples, and a file that is not there is not called a mixture', async () => {
  const folder = emptyFolder();
  const empty = Buffer.alloc(22);
  empty.write('PK\x05\x06', 'latin1');
  writeFileSync(path.join(folder, 'empty.zip'), empty);
  const output = path.join(folder, 'tars');
  await expect(convert(path.join(folder, 'empty.zip'), output)).rejects.toThrow('There is no sample to convert');
  expect(existsSync(path.join(output, 'dataset.json'))).toBe(false);
  await expect(convert(path.join(folder, 'none.json'), output)).rejects.toThrow(/none\.json cannot be opened/);
});
