/** Images whose values do not fit 8 bits are never narrowed or lost without a message. */
import { readFileSync } from 'node:fs';
import { probeImage } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { pack, verify } from '@shardtool/writer';
import { afterEach, expect, test, vi } from 'vitest';
import { shardtool } from './cli-here.js';
import { jpeg, newFolder, PNG, tree } from './pack-workbench.js';
import { plainTiff } from './tiff-craft.js';

/** A gray PNG with 16 bits per channel. */
const DEEP = readFileSync('test/fixtures/odd-images/gray-16bit.png');
const SIDE = 16;
const FLOATS = plainTiff(SIDE, {
  bits: 32,
  format: 3,
  values: Buffer.from(Float32Array.from({ length: SIDE ** 2 }, (_, i) => i / SIDE ** 2).buffer),
});

afterEach(() => vi.restoreAllMocks());

/** The messages of shardtool's warnings. */
function warnings(): () => string[] {
  const spy = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  return () => spy.mock.calls.map(([message]) => String(message)).filter((message) => !message.includes('no class'));
}

test.each([
  ['a 16-bit PNG', DEEP, 'narrowed'],
  ['a 16-bit TIFF', plainTiff(2, { bits: 16, format: 1, values: Buffer.alloc(8) }), 'narrowed'],
  ['a TIFF of floats', FLOATS, 'refused'],
  ['a TIFF of signed bytes', plainTiff(2, { bits: 8, format: 2, values: Buffer.alloc(4) }), 'refused'],
  ['a 32-bit TIFF', plainTiff(2, { bits: 32, format: 1, values: Buffer.alloc(16) }), 'refused'],
  ['a 12-bit JPEG', readFileSync('test/fixtures/codec/twelve-bit.jpg'), 'refused'],
  ['a palette PNG', PNG, undefined],
  ['a JPEG', jpeg(1), undefined],
  ['a TIFF of bytes', plainTiff(2), undefined],
  ['an AVIF of bytes', readFileSync('test/fixtures/codec/rgb.avif'), undefined],
])('values that do not fit 8 bits are detected from the header of %s', (_, bytes, precision) => {
  expect(probeImage(bytes).precision).toBe(precision);
});

const source = tree({
  'a/1.png': DEEP,
  'a/2.jpg': jpeg(2),
  'a/2.depth.png': DEEP,
  'a/3.tif': FLOATS,
  'a/4.jpg': DEEP,
});

test('a pack reports once how many images loaders narrow and how many they reject, including extra images', async () => {
  const options = { fields: ['depth.png'] };
  for (const format of ['tar', 'lmdb'] as const) {
    expect(await pack(source, newFolder(), { ...options, format })).toMatchObject({ narrowed: 3, refused: 1 });
  }
  const { stdout } = await shardtool('pack', source, newFolder(), '--fields', 'depth.png');
  expect(stdout).toContain('  3 images have more than 8 bits per channel, of which loaders return the upper 8; ');
  expect(stdout).toContain('  1 image has floating-point, signed or long values, which are not pixels; ');

  const plain = await shardtool('pack', tree({ 'a/1.jpg': jpeg(1) }), newFolder());
  expect(plain.stdout).not.toMatch(/per channel|floating-point/);
});

test('packs that decode images reject values that are not pixels, and verify lists them', async () => {
  for (const options of [{ check: 'decode' }, { resize: 8 }, { imageFormat: 'png' }] as const) {
    const packing = pack(source, newFolder(), { ...options, fields: ['depth.png'] });
    await expect(packing).rejects.toThrow(
      /3\.tif cannot be fully decoded: its values are floating-point, signed or longer/,
    );
  }
  const packed = newFolder();
  await pack(source, packed, { fields: ['depth.png'] });
  const faults: string[] = [];
  await verify(packed, { check: 'decode', onFault: ({ key }) => faults.push(key!) });
  expect(faults).toEqual(['a/3']);
});

test('a loader warns once, with the first batch, that values were narrowed', async () => {
  const packed = newFolder();
  await pack(tree({ 'a/1.png': DEEP, 'a/2.png': DEEP }), packed);
  await using dataset = await openDataset(packed);
  const said = warnings();
  const loader = dataset.loader({ workers: 1, batchSize: 1, collate: 'list', epochsPerLoop: 2 });
  for await (const _ of loader) expect(said()).toHaveLength(1);
  await loader.close();
  expect(said()[0]).toMatch(/^Some images have more than 8 bits per channel, and their pixels are the upper 8 bits/);
});

test('a loader warns about extra images of 16 bits, and not about images that it does not decode', async () => {
  const values = Buffer.alloc(2 * SIDE ** 2);
  const packed = newFolder();
  await pack(
    tree({ 'a/1.tif': plainTiff(SIDE), 'a/1.depth.tif': plainTiff(SIDE, { bits: 16, format: 1, values }) }),
    packed,
    { fields: ['depth.tif'] },
  );
  await using dataset = await openDataset(packed);
  const said = warnings();
  const transform = [{ name: 'resize', size: 8 }] as const;
  for (const [options, count] of [
    [{ transform: 'raw' }, 0],
    [{ transform }, 0],
    [{ transform, extraImages: ['depth.tif'] }, 1],
  ] as const) {
    const loader = dataset.loader({ workers: 1, ...options });
    for await (const _ of loader);
    await loader.close();
    expect(said()).toHaveLength(count);
  }
});

test('an image of floating-point values is a bad sample, not an image of zeros', async () => {
  const packed = newFolder();
  await pack(tree({ 'a/1.tif': FLOATS }), packed);
  await using dataset = await openDataset(packed);
  const loader = dataset.loader({ workers: 1, collate: 'list' });
  await expect(async () => {
    for await (const _ of loader);
  }).rejects.toThrow(
    /"a\/1" cannot be used: its values are floating-point, signed or longer than 16 bits, but pixelDtype is uint8: set it to float32 or int16/,
  );
  await loader.close();
});
