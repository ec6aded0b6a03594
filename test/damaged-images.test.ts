/** Packs, checks, inspections and loaders agree on which images are damaged. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { crc32 } from '@shardtool/base';
import { imageKindOf, probeImage } from '@shardtool/format';
import { createChecker, inspect, openDataset } from '@shardtool/reader';
import { type PackOptions, pack, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { Workbench } from './codec-workbench.js';
import { newFolder, samplesOf, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';
import { plainTiff } from './tiff-craft.js';

const read = (name: string) => readFileSync(path.join('test/fixtures', name));
const upTo = (bytes: Buffer, share: number) => bytes.subarray(0, Math.floor(bytes.length * share));

/** The same PNG with another checksum for its first pixels, which are unchanged. */
function wrongSum(png: Buffer): Buffer {
  const bytes = Buffer.from(png);
  const at = bytes.indexOf('IDAT');
  const end = at + 4 + bytes.readUInt32BE(at - 4);
  expect(bytes.readUInt32BE(end)).toBe(crc32(bytes.subarray(at, end)));
  bytes[end]! ^= 1;
  return bytes;
}

const WHOLE = {
  'whole/0-stray-bytes.jpg': read('odd-images/flipped-bits.jpg'),
  'whole/1-behind.jpg': read('odd-images/trailing-garbage.jpg'),
  'whole/2-inks.jpg': read('odd-images/cmyk.jpg'),
  'whole/3-a.tif': plainTiff(100),
  'whole/4-larger.gif': read('pillow/frame-larger-than-screen.gif'),
  'whole/5-a.png': read('codec/rgb.png'),
  'whole/6-a.webp': read('odd-images/lossy.webp'),
  'whole/7-a.avif': read('codec/rgb.avif'),
};
const DAMAGED = {
  'bad/no-end.jpg': read('odd-images/no-end-marker.jpg'),
  'bad/half.jpg': read('odd-images/truncated-half.jpg'),
  'bad/progressive.jpg': upTo(read('odd-images/progressive.jpg'), 0.6),
  'bad/cut-tif.tif': upTo(plainTiff(100), 0.6),
  'bad/sum.png': wrongSum(read('codec/rgb.png')),
  'bad/cut-png.png': read('odd-images/truncated.png'),
  'bad/cut-gif.gif': upTo(read('pillow/full-table.gif'), 0.6),
  'bad/cut-webp.webp': upTo(read('odd-images/lossless.webp'), 0.6),
  'bad/cut-avif.avif': upTo(read('codec/rgb.avif'), 0.6),
};
const source = tree({ ...WHOLE, ...DAMAGED });
const bad = Object.keys(DAMAGED).sort();

const keyOf = (file: string) => file.replace(/\.\w+$/, '').replaceAll('.', '_');
const lenient = { onBad: 'quarantine', maxBad: 1, shuffle: false } as const;

/** The images that a pack with these options skips. */
async function leftOut(options: PackOptions): Promise<string[]> {
  const output = newFolder();
  await pack(source, output, { ...lenient, ...options });
  const lines = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n');
  return lines.map((line): string => JSON.parse(line).path).sort();
}

test.each<[string, PackOptions]>([
  ['check', { check: 'decode' }],
  ['resize', { resize: 50 }],
  ['encode again as PNG', { imageFormat: 'png' }],
  ['encode again as JPEG', { imageFormat: 'jpg' }],
  ['store as pixels', { imageFormat: 'npy' }],
])('packs that %s images quarantine exactly the damaged ones', async (_, options) => {
  expect(await leftOut(options)).toEqual(bad);
});

const packed = newFolder();
const report = await pack(source, packed, lenient);

test('a check of headers accepts damaged images', () => {
  expect(report.samples).toBe(Object.keys({ ...WHOLE, ...DAMAGED }).length);
});

test('verify and inspect report the same images, and so does a loader, unless only the end marker is missing', async () => {
  const found: string[] = [];
  await verify(packed, { check: 'decode', onFault: ({ key }) => found.push(key!) });
  expect(found.sort()).toEqual(bad.map(keyOf));

  await using dataset = await openDataset(packed);
  const inspected = await inspect(packed, { workers: 1 });
  expect(inspected.bad.samples.map(({ key }) => key).sort()).toEqual(bad.map(keyOf));

  const loader = dataset.loader({
    workers: 1,
    transform: [{ name: 'resize', size: [32, 32] }],
    onBad: 'skip',
    shuffle: false,
  });
  for await (const _ of loader);
  const refused = loader.report().badSamples.map(({ key }) => key);
  await loader.close();
  // All of its pixels are present, and a loader that needs a part of an image does not read to its end.
  expect(refused.sort()).toEqual(bad.map(keyOf).filter((key) => key !== 'bad/no-end'));
});

test('the reason for a rejected image is always one line', async () => {
  const output = newFolder();
  await pack(source, output, { ...lenient, resize: 50 });
  for (const line of readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8').trimEnd().split('\n')) {
    const { reason } = JSON.parse(line) as { reason: string };
    expect(reason).toMatch(/^[^\n]* cannot be fully decoded: \S[^\n]*\.$/);
  }
});

const checker = await createChecker({ maxPixels: 10_000_000 });
const workbench = await Workbench.open();
afterAll(() => checker.close());

test('the check, a pack that encodes again, and a decoder agree on random damage', async () => {
  const small = [...Object.values(WHOLE), read('codec/420.jpg'), read('codec/progressive-420.jpg')];
  const damaged = fc
    .record({
      image: fc.constantFrom(...small),
      cut: fc.oneof(fc.constant(1), fc.double({ min: 0.3, max: 1, noNaN: true })),
      flips: fc.array(fc.tuple(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(255)), {
        maxLength: 3,
      }),
    })
    .map(({ image, cut, flips }) => {
      const bytes = Buffer.from(upTo(image, cut));
      for (const [at, value] of flips) bytes[Math.floor(at * bytes.length)] = value;
      return bytes;
    });
  const isBad = async (look: () => unknown) => {
    try {
      await look();
      return false;
    } catch {
      return true;
    }
  };
  const cases: Record<string, Buffer> = {};
  const expected: string[] = [];
  await fc.assert(
    fc.asyncProperty(damaged, async (bytes) => {
      if (await isBad(() => probeImage(bytes, undefined, 1_000_000))) return;
      const isRefused = await isBad(() => checker.check(bytes));
      if (imageKindOf(bytes) !== 'jpeg') expect(await isBad(() => workbench.decode(bytes))).toBe(isRefused);
      const name = `${Object.keys(cases).length}.${imageKindOf(bytes)!}`;
      cases[name] = bytes;
      if (isRefused) expected.push(name);
    }),
    { numRuns: 150 * TIMES },
  );
  const output = newFolder();
  await pack(tree(cases), output, { ...lenient, imageFormat: 'npy' });
  const kept = new Set((await samplesOf(output)).map(({ source: file }) => file));
  expect(Object.keys(cases).filter((name) => !kept.has(name))).toEqual(expected);
});
