import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import {
  addOverlay,
  type InspectReport,
  inspect,
  openDataset,
  planDataset,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import { pack, verify } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';

const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');

const CAT = 'examples/photos/cat/cat_000.jpg';
const COFFEE = 'examples/photos/coffee/coffee_000.jpg';
const MOON = 'examples/photos/moon/moon_000.jpg';

let source: string;
let shards: string;
let report: InspectReport;

/** A folder with a few photos, copies of them and odd images, each named by its property. */
async function plant(folder: string): Promise<string> {
  for (const name of ['a', 'b']) mkdirSync(path.join(folder, name), { recursive: true });
  const at = (name: string) => path.join(folder, name);
  cpSync(CAT, at('a/cat.jpg'));
  cpSync(COFFEE, at('a/coffee.jpg'));
  cpSync(MOON, at('a/moon.jpg'));
  cpSync('examples/photos/rocket/rocket_000.jpg', at('a/rocket.jpg'));
  cpSync(CAT, at('b/cat-same.jpg'));
  const { width, height } = await sharp(COFFEE).metadata();
  const inner = { left: 5, top: 4, width: width - 10, height: height - 8 };
  await sharp(COFFEE).jpeg({ quality: 40 }).toFile(at('a/coffee-compressed.jpg'));
  await sharp(COFFEE).resize(200).toFile(at('a/coffee-small.png'));
  await sharp(COFFEE).extract(inner).jpeg({ quality: 90 }).toFile(at('b/coffee-cropped.jpg'));
  await sharp(COFFEE).modulate({ brightness: 1.2 }).jpeg({ quality: 90 }).toFile(at('a/coffee-light.jpg'));
  await sharp(CAT).flip().linear(0.2, 0).jpeg().toFile(at('b/night.jpg'));
  await sharp(COFFEE).flip().linear(0.05, 242).jpeg().toFile(at('b/snow.jpg'));
  await sharp(MOON).flip().resize(64).resize(480, 320, { fit: 'fill' }).blur(8).jpeg().toFile(at('b/fog.jpg'));
  await sharp(COFFEE).resize(640, 80, { fit: 'fill' }).flop().jpeg().toFile(at('b/strip.jpg'));
  for (const value of [100, 140]) {
    const create = { width: 64, height: 64, channels: 3 as const, background: { r: value, g: value, b: value } };
    await sharp({ create })
      .png()
      .toFile(at(`b/flat-${value}.png`));
  }
  return folder;
}

beforeAll(async () => {
  source = await plant(emptyFolder());
  shards = path.join(emptyFolder(), 'shards');
  await pack(source, shards, { maxShardSamples: 6, workers: 1 });
  report = await inspect(shards, { workers: 1 });
});

const keysOf = (samples: readonly { readonly key: string }[]) => samples.map(({ key }) => key).sort();
const finding = (name: string) => keysOf(report.findings.find((one) => one.name === name)!.samples);

async function chosen(where: string): Promise<string[]> {
  await using dataset = await openDataset(shards);
  const keys: string[] = [];
  for await (const batch of dataset.loader({ transform: 'raw', fields: [], where, workers: 1 }))
    keys.push(...batch.keys);
  return keys.sort();
}

test('equal files are reported as duplicates, also across two classes', () => {
  const { groups, acrossClasses, samples, first } = report.duplicates;
  expect([groups, acrossClasses, samples]).toEqual([1, 1, 2]);
  expect(keysOf(first[0]!.samples)).toEqual(['a/cat', 'b/cat-same']);
});

test('a copy that was compressed, reduced, slightly cropped or lightened is a near duplicate of its original', () => {
  expect(report.nearDuplicates.first.map(({ samples }) => keysOf(samples))).toEqual([
    ['a/coffee', 'a/coffee-compressed', 'a/coffee-light', 'a/coffee-small', 'b/coffee-cropped'],
  ]);
  expect(report.nearDuplicates.first[0]!.isAcrossClasses).toBe(true);
});

test('dark, bright, empty, blurred and long images are found, the worst first', () => {
  expect(finding('dark')).toEqual(['b/night']);
  expect(finding('bright')).toEqual(['b/snow']);
  expect(finding('low-information')).toEqual(expect.arrayContaining(['b/flat-100', 'b/flat-140']));
  expect(finding('blurry')).toEqual(expect.arrayContaining(['b/flat-100', 'b/flat-140', 'b/fog']));
  expect(finding('odd-aspect')).toEqual(['b/strip']);
  const values = report.findings.find(({ name }) => name === 'blurry')!.samples.map(({ value }) => value);
  expect(values).toEqual(values.toSorted((a, b) => a - b));
});

test('the columns are stored next to the shards, and usable in where, overlays, subsets and splits', async () => {
  expect(readdirSync(shards).filter((name) => name.endsWith('.inspect'))).toHaveLength(3);
  expect(await chosen('inspect.aspect > 3')).toEqual(['b/strip']);
  expect(await chosen('inspect.duplicate != null')).toEqual(['a/cat', 'b/cat-same']);
  const copies = 'inspect.near != null and inspect.near != key';
  expect(await chosen(copies)).toHaveLength(5);
  expect((await addOverlay(shards, { name: 'clean', excludeWhere: copies })).excluded).toBe(5);
  await using clean = await openDataset(shards, { overlay: 'clean' });
  expect(clean.size).toBe(report.samples - 5);
  expect((await planDataset(clean, { where: 'inspect.aspect > 3' })).samples).toBe(1);
  expect((await subsetDataset(shards, { name: 'sharp', where: 'inspect.sharpness >= 40' })).samples).toBeGreaterThan(4);
  await splitDataset(shards, { shares: new Map([['val', 0.5]]), group: 'inspect.near' });
  const sides = await Promise.all(['train', 'val'].map((split) => keysOfSplit(split)));
  const coffees = sides.map((keys) => keys.filter((key) => key.includes('coffee')).length);
  expect(coffees.toSorted()).toEqual([0, 5]);
});

async function keysOfSplit(split: string): Promise<string[]> {
  await using dataset = await openDataset(shards, { split });
  const keys: string[] = [];
  for await (const { key } of dataset.samples()) keys.push(key);
  return keys;
}

test('samples that were measured before are not measured again, and have the same results', async () => {
  const again = await inspect(shards, { workers: 1 });
  expect(again.known).toBe(report.samples);
  expect({ ...again, known: 0 }).toEqual(report);
});

test('the error for a missing column shows the command that creates it', async () => {
  await expect(chosen('inspect.sharpnes > 1')).rejects.toThrow('"shardtool inspect DATASET" makes');
});

/** Number of samples in a shard. */
function packedIn(shard: number): number {
  const { shards: records } = JSON.parse(readFileSync(path.join(shards, 'dataset.json'), 'utf8'));
  return records[shard].samples;
}

test('a copy of a dataset keeps its columns, in whatever order its files were copied', async () => {
  const place = path.join(emptyFolder(), 'shards');
  cpSync(shards, place, { recursive: true });
  for (const name of readdirSync(place)) if (name.endsWith('.inspect')) utimesSync(path.join(place, name), 0, 0);
  expect((await inspect(place, { workers: 1 })).known).toBe(report.samples);
});

test('columns of other images are ignored, and are removed together with their shards', async () => {
  const place = path.join(emptyFolder(), 'shards');
  cpSync(shards, place, { recursive: true, preserveTimestamps: true });
  cpSync(path.join(place, '000000.inspect'), path.join(place, '000001.inspect'));
  const inspected = await inspect(place, { workers: 1 });
  expect(inspected.known).toBe(report.samples - packedIn(1));
  expect({ ...inspected, known: 0, location: '' }).toEqual({ ...report, known: 0, location: '' });
  expect((await verify(place, { workers: 1 })).faults).toBe(0);
  writeFileSync(path.join(place, '000002.inspect'), 'of another program');
  await pack(source, place, { maxShardSamples: 100, workers: 1, overwrite: true });
  expect(readdirSync(place).filter((name) => name.endsWith('.inspect'))).toEqual(['000002.inspect']);
  expect(readFileSync(path.join(place, '000002.inspect'), 'utf8')).toBe('of another program');
});

test('images that also occur in a second dataset are leaks, whatever their keys', async () => {
  const other = emptyFolder();
  mkdirSync(path.join(other, 'a'));
  await sharp(MOON).jpeg({ quality: 50 }).toFile(path.join(other, 'a/from-the-moon.jpg'));
  cpSync('examples/photos/galaxies/galaxies_000.jpg', path.join(other, 'a/galaxy.jpg'));
  const place = path.join(emptyFolder(), 'val');
  await pack(other, place, { workers: 1 });
  const { leaks } = await inspect(shards, { against: place, workers: 1 });
  expect(leaks!.first.map(({ samples, others }) => [keysOf(samples), keysOf(others)])).toEqual([
    [['a/moon'], ['a/from-the-moon']],
  ]);
  expect(await chosen("inspect.leak = 'a/from-the-moon'")).toEqual(['a/moon']);
});

test('a folder of photos can be inspected before it is packed, with bad images and one warning', async () => {
  const folder = emptyFolder();
  mkdirSync(path.join(folder, 'a'));
  cpSync(CAT, path.join(folder, 'a/cat.jpg'));
  cpSync('test/fixtures/odd-images/truncated-half.jpg', path.join(folder, 'a/half.jpg'));
  cpSync('test/fixtures/odd-images/flipped-bits.jpg', path.join(folder, 'a/flipped.jpg'));
  const { bad, findings, isKept } = await inspect(folder, { workers: 1 });
  expect(isKept).toBe(false);
  expect(bad.samples.map(({ key, reason }) => [key, reason])).toEqual([
    ['a/half', expect.stringMatching(/ends|cut|end/)],
  ]);
  const warned = findings.find(({ name }) => name === 'warnings')!.samples;
  expect(keysOf(warned)).toEqual(['a/flipped']);
  expect(existsSync(path.join(folder, 'a.inspect'))).toBe(false);
});

test('the command prints its findings, ranked, with the step normalize', async () => {
  const { stdout, code } = await shardtool('inspect', shards, '--workers', '1');
  expect(code).toBe(0);
  expect(stdout).toContain('equal bytes: 2 samples in 1 group, 1 across classes\n  ');
  expect(stdout).toMatch(/odd-aspect: 1 sample .*\n {2}b\/strip\t8\n/);
  expect(stdout).toMatch(/\{"name":"normalize","mean":\[0\.\d+,0\.\d+,0\.\d+\],"std":\[0\.\d+,0\.\d+,0\.\d+\]\}/);
});

test('the report is one page with a picture of each finding, without scripts or requests', async () => {
  const file = path.join(emptyFolder(), 'report.html');
  const { code, stderr } = await shardtool('inspect', shards, '--report', file);
  expect([code, stderr]).toEqual([0, '']);
  const page = readFileSync(file, 'utf8');
  expect(page).toContain("default-src 'none'");
  expect(page).not.toMatch(/<script|https?:|javascript:|\son\w+=/i);
  for (const title of ['Equal bytes', 'Look alike', 'Dark', 'Bright', 'Blurry']) expect(page).toContain(`<h2>${title}`);
  for (const key of ['a/cat', 'b/cat-same', 'b/night', 'b/fog']) expect(page).toContain(`<bdi>${key}</bdi>`);
  const [, picture] = /src="data:image\/jpeg;base64,([^"]+)"/.exec(page)!;
  const { width, height } = await sharp(Buffer.from(picture!, 'base64')).metadata();
  expect(Math.max(width, height)).toBe(160);

  expect((await shardtool('inspect', shards, '--report', file)).code).toBe(0);
  writeFileSync(file, '<h1>mine</h1>');
  const refused = await shardtool('inspect', shards, '--report', file);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is not a report of shardtool')]);
  expect(readFileSync(file, 'utf8')).toBe('<h1>mine</h1>');
});

test('names with markup and bidirectional control characters are shown as text in the report', async () => {
  const folder = emptyFolder();
  const evil = '<img src=x onerror=alert(1)>\u202e&';
  mkdirSync(path.join(folder, evil));
  for (const name of ['"one"', 'two']) cpSync(CAT, path.join(folder, evil, `${name}.jpg`));
  const hostile = path.join(emptyFolder(), 'shards');
  await pack(folder, hostile, { workers: 1 });
  const against = path.join(emptyFolder(), 'val');
  await pack(folder, against, { workers: 1 });
  const file = path.join(emptyFolder(), 'report.html');
  const { code } = await shardtool('inspect', hostile, '--against', against, '--report', file);
  expect(code).toBe(0);
  const page = readFileSync(file, 'utf8');
  expect(page).toContain('&lt;img src=x onerror=alert(1)&gt;');
  expect(page).toContain('&quot;one&quot;');
  expect(page).toContain('of the other dataset');
  expect(page).not.toMatch(/<img src=x|\u202e/);
});
