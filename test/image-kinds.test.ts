import { createHash } from 'node:crypto';
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { SampleDecodeError } from '@shardtool/base';
import { encodeNpyImage, type ImageKind, imageKindOf, kindOfField } from '@shardtool/format';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Scratch } from '#reader/codec/scratch';
import { openCodecs, openImage } from '#reader/codec/select';
import { emptyFolder } from './datasets.js';
import { newFolder } from './pack-workbench.js';
import { TIMES } from './repetitions.js';
import { plainTiff } from './tiff-craft.js';

const sharp = createRequire(new URL('../packages/reader/package.json', import.meta.url))('sharp');
const FIXTURES = 'test/fixtures/pillow';
/** The pixels of each image as Pillow decodes it. */
const expected = JSON.parse(readFileSync(path.join(FIXTURES, 'expected.json'), 'utf8')) as Readonly<
  Record<string, { readonly stored: { readonly width: number; readonly height: number; readonly sha256: string } }>
>;
const own = Object.keys(expected).filter((name) => /\.(bmp|p[bgpn]m)$/.test(name));

/** Files with the same stem would be one sample. */
const keyOf = (name: string) => name.replaceAll('.', '_');

/** A folder with copies of these images, each of which is a sample. */
function folderOf(names: readonly string[]): string {
  const folder = emptyFolder();
  for (const name of names)
    copyFileSync(path.join(FIXTURES, name), path.join(folder, `${keyOf(name)}${path.extname(name)}`));
  return folder;
}

async function loaded(
  shards: string,
  options: LoaderOptions = {},
): Promise<Map<string, { pixels: Buffer; width: number; height: number }>> {
  const images = new Map<string, { pixels: Buffer; width: number; height: number }>();
  await using dataset = await openDataset(shards);
  for await (const { keys, list } of dataset.loader({ workers: 1, collate: 'list', ...options })) {
    for (const [row, image] of list!.entries()) {
      const bytes = image.pixels as Uint8Array;
      const pixels = Buffer.from(
        bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer,
      );
      images.set(keys[row]!, { pixels, width: image.width, height: image.height });
    }
  }
  return images;
}

test('every kind and variant of image that is packed is decoded to the same pixels as with Pillow', async () => {
  // Pillow rotates a TIFF when it opens it.
  const names = Object.keys(expected).filter((name) => name !== 'xmp-6.tif');
  const shards = newFolder();
  const { samples } = await pack(folderOf(names), shards, { workers: 1, check: 'decode' });
  expect(samples).toBe(names.length);
  const images = await loaded(shards);
  const found = Object.fromEntries(
    names.map((name) => {
      const { pixels, width, height } = images.get(keyOf(name))!;
      return [name, { width, height, sha256: createHash('sha256').update(pixels).digest('hex') }];
    }),
  );
  expect(found).toEqual(Object.fromEntries(names.map((name) => [name, expected[name]!.stored])));
  const { faults } = await verify(shards, { workers: 1, check: 'decode' });
  expect(faults).toBe(0);
});

test('a TIFF with inks of 16 bits has the colours of Pillow', async () => {
  const folder = emptyFolder();
  const inks = [0, 0x1234, 0x8000, 0, 0xffff, 0, 0, 0, 0x40ff, 0x4100, 0xc0c0, 0x2000, 0, 0, 0, 0xff00];
  const values = Buffer.from(Uint16Array.from(inks).buffer);
  writeFileSync(path.join(folder, 'a.tif'), plainTiff(2, { bits: 16, format: 1, values, isCmyk: true }));
  const shards = newFolder();
  await pack(folder, shards, { workers: 1, check: 'decode' });
  const { pixels } = (await loaded(shards)).get('a')!;
  expect([...pixels]).toEqual([255, 237, 127, 0, 255, 255, 167, 166, 55, 0, 0, 0]);
});

test('BMP and PPM become PNGs with the same pixels if they are encoded again', async () => {
  const shards = newFolder();
  await pack(folderOf(own), shards, { workers: 1, imageFormat: 'png' });
  await using dataset = await openDataset(shards);
  expect(dataset.fields).toEqual(['png']);
  const images = await loaded(shards);
  for (const name of own) {
    const { pixels } = images.get(keyOf(name))!;
    expect(createHash('sha256').update(pixels).digest('hex'), name).toBe(expected[name]!.stored.sha256);
  }
});

test('16-bit values in a PGM and a PPM, and the alpha of a BMP, are kept if the loader requests them', async () => {
  const shards = newFolder();
  await pack(folderOf(['deep.pgm', 'deep.ppm', '32-bgra.bmp', '24.bmp']), shards, { workers: 1 });
  const stored = (name: string) => readFileSync(path.join(FIXTURES, name));
  const keys = (name: string) => ({ keys: [keyOf(name)] });
  for (const [name, channels] of [
    ['deep.pgm', 1],
    ['deep.ppm', 3],
  ] as const) {
    const { pixels } = (await loaded(shards, { ...keys(name), channels, pixelDtype: 'uint16' })).get(keyOf(name))!;
    expect(Buffer.from(pixels).swap16().equals(stored(name).subarray(-pixels.length)), name).toBe(true);
  }
  const clear = (await loaded(shards, { ...keys('32-bgra.bmp'), channels: 4 })).get(keyOf('32-bgra.bmp'))!;
  const rows = stored('32-bgra.bmp').subarray(-17 * 11 * 4);
  for (let y = 0; y < 11; y++) {
    for (let x = 0; x < 17; x++) {
      const [blue, green, red, alpha] = rows.subarray(((10 - y) * 17 + x) * 4);
      expect([...clear.pixels.subarray((y * 17 + x) * 4).subarray(0, 4)]).toEqual([red, green, blue, alpha]);
    }
  }
  const opaque = (await loaded(shards, { ...keys('24.bmp'), channels: 4 })).get(keyOf('24.bmp'))!;
  expect(opaque.pixels.filter((_, i) => i % 4 === 3).every((alpha) => alpha === 255)).toBe(true);
});

/** Raw pixels of a picture with alpha, 24 x 20. */
const RAW = { width: 24, height: 20, channels: 4 } as const;
const picture = () =>
  sharp(Buffer.from(Array.from({ length: 24 * 20 * 4 }, (_, i) => (i * 7 + (i >> 6) * 13) % 256)), { raw: RAW });
const flat = () => picture().removeAlpha();

/** Variants of each kind that sharp writes; for the other kinds, the fixtures of Pillow. */
const VARIANTS: Readonly<Record<ImageKind, readonly (() => Promise<Buffer>)[]>> = {
  jpeg: [
    () => flat().jpeg().toBuffer(),
    () => flat().jpeg({ progressive: true, chromaSubsampling: '4:4:4' }).toBuffer(),
    () => flat().toColourspace('b-w').jpeg().toBuffer(),
    () => flat().toColourspace('cmyk').jpeg().toBuffer(),
  ],
  png: [
    () => picture().png().toBuffer(),
    () => picture().png({ palette: true }).toBuffer(),
    () => flat().png({ progressive: true }).toBuffer(),
    () => flat().toColourspace('b-w').png().toBuffer(),
    () => flat().toColourspace('rgb16').png().toBuffer(),
    () => flat().toColourspace('grey16').png().toBuffer(),
  ],
  gif: [() => picture().gif().toBuffer(), () => flat().gif({ interFrameMaxError: 0 }).toBuffer()],
  webp: [
    () => flat().webp().toBuffer(),
    () => picture().webp({ alphaQuality: 60 }).toBuffer(),
    () => picture().webp({ lossless: true }).toBuffer(),
  ],
  tiff: (['none', 'lzw', 'deflate', 'packbits', 'jpeg'] as const)
    .flatMap((compression) => [
      () => flat().tiff({ compression }).toBuffer(),
      () => flat().tiff({ compression, tile: true, tileWidth: 16, tileHeight: 16 }).toBuffer(),
      () => flat().toColourspace('b-w').tiff({ compression }).toBuffer(),
    ])
    .concat([
      () => flat().tiff({ compression: 'webp' }).toBuffer(),
      () => flat().toColourspace('b-w').tiff({ compression: 'ccittfax4', bitdepth: 1 }).toBuffer(),
    ]),
  avif: [
    () => flat().avif({ effort: 0 }).toBuffer(),
    () => picture().avif({ effort: 0, chromaSubsampling: '4:2:0' }).toBuffer(),
    () => flat().avif({ effort: 0, lossless: true }).toBuffer(),
  ],
  bmp: [async () => readFileSync(path.join(FIXTURES, '24.bmp'))],
  pnm: [async () => readFileSync(path.join(FIXTURES, 'raw.ppm'))],
};

/** Extensions of images that docs/image-kinds.md lists as decoded, except that of arrays. */
function listedExtensions(): string[] {
  const page = readFileSync('docs/image-kinds.md', 'utf8');
  const rows = page.slice(page.indexOf('## Decoded'), page.indexOf('## Rejected')).match(/^\| (?!kind).*$/gm)!;
  return rows.flatMap((row) => row.split('|')[2]!.match(/\w+/g)!).filter((name) => name !== 'npy');
}

test('every variant of every kind of image is packed and decoded by a loader, with each extension', async () => {
  const names = listedExtensions();
  expect(new Set(names.map(kindOfField))).toEqual(new Set(Object.keys(VARIANTS)));
  const folder = emptyFolder();
  let written = 0;
  for (const name of names) {
    for (const variant of VARIANTS[kindOfField(name)!])
      writeFileSync(path.join(folder, `${written++}.${name}`), await variant());
  }
  writeFileSync(path.join(folder, 'array.npy'), encodeNpyImage(new Uint8Array(24 * 20 * 3).fill(7), 24, 20));
  const shards = newFolder();
  const { samples } = await pack(folder, shards, { workers: 1 });
  const arrays = newFolder();
  await pack(folder, arrays, { workers: 1, primary: 'npy' });
  expect(samples).toBe(written);
  expect((await loaded(shards)).size).toBe(written);
  expect((await loaded(arrays)).size).toBe(1);
});

test('sharp decodes none of the kinds that pack rejects, as the page says', async () => {
  const headers = 'test/fixtures/image-headers';
  const undecoded: string[] = [];
  for (const name of readdirSync(headers).filter((file) => !file.endsWith('.md'))) {
    const bytes = readFileSync(path.join(headers, name));
    if (imageKindOf(bytes) === 'pnm') continue;
    await sharp(bytes)
      .raw()
      .toBuffer()
      .catch(() => undecoded.push(name));
  }
  expect(undecoded).toEqual([
    'lzma.tif',
    'plain.heic',
    'plain.ico',
    'plain.jp2',
    'plain.jxl',
    'sequence.avif',
    'zstd.tif',
  ]);
});

const MAX_PIXELS = 100_000;
const codecs = await openCodecs({ maxPixels: MAX_PIXELS });
const memory = new WebAssembly.Memory({ initial: 16, maximum: 16, shared: true });
const scratch = new Scratch(memory, { offset: 0, bytes: 16 * 65_536 });
const images = own.map((name) => readFileSync(path.join(FIXTURES, name)));

/** Decodes an image, or returns the error of a bad image. */
async function decoded(bytes: Uint8Array): Promise<number | SampleDecodeError> {
  scratch.reset();
  try {
    const { codec, header } = openImage(codecs, bytes, MAX_PIXELS);
    const { width, height } = header;
    await codec.check(bytes);
    const { stride } = await codec.decodeRegion(bytes, { x: 0, y: 0, width, height }, 1, scratch);
    return stride * height;
  } catch (error) {
    if (error instanceof SampleDecodeError) return error;
    throw error;
  }
}

test('a BMP or PPM that is truncated before its last pixel is bad, and is not filled up', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...images), fc.nat({ max: 400 }), async (bytes, removed) => {
      const whole = await decoded(bytes);
      const cut = await decoded(bytes.subarray(0, Math.max(0, bytes.length - 8 - removed)));
      expect(whole).toBeTypeOf('number');
      expect(cut).toBeInstanceOf(SampleDecodeError);
    }),
    { numRuns: 200 * TIMES },
  );
});

test('a damaged BMP or PPM has pixels within the limit, or is bad, and never causes another error', async () => {
  const change = fc.tuple(fc.nat({ max: 120 }), fc.nat({ max: 255 }));
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...images),
      fc.array(change, { minLength: 1, maxLength: 6 }),
      async (bytes, changes) => {
        const damaged = Buffer.from(bytes);
        for (const [at, byte] of changes) if (at >= 2 && at < damaged.length) damaged[at] = byte;
        const result = await decoded(damaged);
        if (typeof result === 'number') expect(result).toBeLessThanOrEqual(3 * MAX_PIXELS);
      },
    ),
    { numRuns: 500 * TIMES },
  );
});

test('headers that claim huge images are rejected before memory is allocated', async () => {
  const bmp = Buffer.from(readFileSync(path.join(FIXTURES, 'rle8.bmp')));
  bmp.writeInt32LE(0x7fffffff, 18);
  bmp.writeInt32LE(-0x80000000, 22);
  expect(await decoded(bmp)).toBeInstanceOf(SampleDecodeError);
  for (const head of [
    'P6 4294967295 4294967295 255 ',
    'P1 9999999999 9999999999 ',
    'P2 99999 1 65535 1 2',
    'P5 300 300 0 ',
  ]) {
    expect(await decoded(Buffer.from(head))).toBeInstanceOf(SampleDecodeError);
  }
});
