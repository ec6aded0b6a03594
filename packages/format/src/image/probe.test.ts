import { readdirSync, readFileSync } from 'node:fs';
import { ImageError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { fieldOfKind, isImageExtension, isImageField, kindOfField } from './kinds.js';
import { MAX_PIXELS, probeImage } from './probe.js';

const fixtures = new URL('../../../../test/fixtures/', import.meta.url);
const oddImages = new URL('odd-images/', fixtures);
const headers = new URL('image-headers/', fixtures);
const headerNames = readdirSync(headers).filter((name) => !name.endsWith('.md'));

function read(folder: URL, name: string): Buffer {
  return readFileSync(new URL(name, folder));
}

/** `jpeg 320x240`, followed by the orientation if it is not 1; or `out: ` and the reason. */
function verdict(bytes: Uint8Array, name: string): string {
  try {
    const { kind, width, height, orientation } = probeImage(bytes, name);
    return `${kind} ${width}x${height}${orientation === 1 ? '' : ` turned ${orientation}`}`;
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    expect(error.message).toContain(name);
    expect(error.path).toBe(name);
    return `out: ${error.trouble}`;
  }
}

test('every odd image is packed or rejected as the column "pack" of EXPECTED.md says', () => {
  const names = readdirSync(oddImages).filter((name) => !name.endsWith('.md'));
  expect(Object.fromEntries(names.map((name) => [name, verdict(read(oddImages, name), name)]))).toEqual({
    'alpha.png': 'png 320x240',
    'animated.gif': 'gif 320x240',
    'claims-65500x65500.jpg': 'out: too-large',
    'claims-zero-width.jpg': 'out: no-size',
    'cmyk.jpg': 'jpeg 320x240',
    'empty.jpg': 'out: empty',
    'exif-rotated-6.jpg': 'jpeg 240x320 turned 6',
    'flipped-bits.jpg': 'jpeg 320x240',
    'gray-16bit.png': 'png 64x48',
    'gray.jpg': 'jpeg 320x240',
    'jpeg-named.png': 'jpeg 320x240',
    'lossless.webp': 'webp 160x120',
    'lossy.webp': 'webp 320x240',
    'no-end-marker.jpg': 'jpeg 320x240',
    'odd-size-317x239.jpg': 'jpeg 317x239',
    'one-pixel.jpg': 'jpeg 1x1',
    'palette.png': 'png 320x240',
    'bitmap.bmp': 'bmp 80x60',
    'picture.tif': 'tiff 80x60',
    'png-named.jpg': 'png 320x240',
    'progressive.jpg': 'jpeg 320x240',
    'restart-markers.jpg': 'jpeg 320x240',
    'strip-3x2000.jpg': 'jpeg 3x2000',
    'subsampling-422.jpg': 'jpeg 320x240',
    'subsampling-444.jpg': 'jpeg 320x240',
    'text-named.jpg': 'out: not-an-image',
    'trailing-garbage.jpg': 'jpeg 320x240',
    'truncated-half.jpg': 'jpeg 320x240',
    'truncated-header.jpg': 'out: cut',
    'truncated.png': 'png 320x240',
  });
});

test('size and orientation of images that Pillow wrote are detected, or the error names the unsupported kind', () => {
  expect(Object.fromEntries(headerNames.map((name) => [name, verdict(read(headers, name), name)]))).toEqual({
    'animated.webp': 'webp 40x30',
    'big.tif': 'out: unsupported',
    'lzma.tif': 'out: unsupported',
    'plain.avif': 'avif 40x30',
    'plain.heic': 'out: unsupported',
    'plain.ico': 'out: unsupported',
    'plain.jp2': 'out: unsupported',
    'plain.jxl': 'out: unsupported',
    'plain.ppm': 'pnm 4x3',
    'plain.webp': 'webp 40x30',
    'sequence.avif': 'out: unsupported',
    'turned-6.avif': 'avif 30x40',
    'turned-6.png': 'png 40x30 turned 6',
    'turned-6.tif': 'tiff 40x30 turned 6',
    'turned-6.webp': 'webp 40x30 turned 6',
    'zstd.tif': 'out: unsupported',
  });
});

test('the error for an unsupported kind names it and how to convert it', () => {
  expect(() => probeImage(read(headers, 'plain.ico'), 'a/plain.ico')).toThrow(
    'a/plain.ico is of kind ICO: ICO is not supported; convert it first, for example with "magick "a/plain.ico[0]" a/plain.png".',
  );
  expect(() => probeImage(read(headers, 'big.tif'), 'big.tif')).toThrow('"tiffcp big.tif big-classic.tif"');
  expect(() => probeImage(read(headers, 'zstd.tif'), 'zstd.tif')).toThrow('"tiffcp -c zip zstd.tif zstd-zip.tif"');
  expect(() => probeImage(read(headers, 'sequence.avif'), 'a.avif')).toThrow(
    'a.avif is of kind AVIF sequence: AVIF sequence is not supported; convert it first, for example with "avifdec a.avif a.png".',
  );
  const bmp = read(oddImages, 'bitmap.bmp');
  bmp.writeUInt32LE(5, 30);
  expect(() => probeImage(bmp, 'a.bmp')).toThrow('is of kind BMP with JPEG or PNG inside');
  const heic = Buffer.from('....ftypheic....mif1heic', 'latin1');
  heic.writeUInt32BE(heic.length, 0);
  expect(() => probeImage(heic)).toThrow('HEIC is not supported');
});

test('the pixel limit is the one at which Pillow raises an error', () => {
  const jpeg = (width: number, height: number) =>
    Uint8Array.of(
      0xff,
      0xd8,
      0xff,
      0xc0,
      0,
      17,
      8,
      height >> 8,
      height,
      width >> 8,
      width,
      3,
      1,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
    );
  // 12,345 x 14,496 pixels are 150 fewer than the limit, 12,346 x 14,496 are more.
  expect(MAX_PIXELS).toBe(178_956_970);
  expect(probeImage(jpeg(12_345, 14_496))).toMatchObject({ width: 12_345, height: 14_496 });
  expect(() => probeImage(jpeg(12_346, 14_496))).toThrow('claims 12346x14496 pixels, more than the limit of 178956970');
  expect(() => probeImage(jpeg(20, 10), 'x.jpg', 199)).toThrow('x.jpg claims 20x10 pixels, more than the limit of 199');
});

/** A big-endian TIFF structure of one directory, whose entries are [tag, type, value]. */
function bigEndianTiff(...entries: readonly [tag: number, type: 3 | 4, value: number][]): Buffer {
  const tiff = Buffer.alloc(10 + entries.length * 12);
  tiff.write('MM\0*\0\0\0\x08\0', 'latin1');
  tiff[9] = entries.length;
  for (const [n, [tag, type, value]] of entries.entries()) {
    tiff.writeUInt16BE(tag, 10 + n * 12);
    tiff.writeUInt16BE(type, 12 + n * 12);
    tiff.writeUInt32BE(1, 14 + n * 12);
    if (type === 3) tiff.writeUInt16BE(value, 18 + n * 12);
    else tiff.writeUInt32BE(value, 18 + n * 12);
  }
  return tiff;
}

test('a TIFF with L*a*b* colours or an unusual number of bits is rejected, with a command that converts it', () => {
  const probe = (bits: number, photometric: number) =>
    probeImage(bigEndianTiff([256, 3, 2], [257, 3, 1], [258, 3, bits], [262, 3, photometric]), 'a.tif');
  for (const [bits, photometric] of [
    [8, 8],
    [8, 9],
    [16, 10],
  ] as const) {
    expect(() => probe(bits, photometric)).toThrow(
      /TIFF with L\*a\*b\* colours is not supported.*"magick a.tif a.png"/,
    );
  }
  for (const bits of [3, 10, 12])
    expect(() => probe(bits, 1)).toThrow(/TIFF with an unusual number of bits is not supported.*"magick a.tif a.png"/);
  for (const bits of [1, 2, 4, 8, 16, 32, 64]) expect(probe(bits, 1).kind).toBe('tiff');
  expect(probe(16, 8).kind).toBe('tiff');
});

test('a big-endian TIFF with long numbers is read', () => {
  const tiff = bigEndianTiff([256, 4, 70_000], [257, 3, 12], [274, 3, 8]);
  expect(probeImage(tiff)).toEqual({ kind: 'tiff', width: 70_000, height: 12, orientation: 8 });
});

test('an orientation out of range is ignored', () => {
  for (const orientation of [0, 9]) {
    const tiff = bigEndianTiff([256, 3, 2], [257, 3, 1], [274, 3, orientation]);
    expect(probeImage(tiff)).toEqual({ kind: 'tiff', width: 2, height: 1, orientation: 1 });
  }
});

test('bytes between the segments of a JPEG are skipped, as libjpeg does', () => {
  const jpeg = read(oddImages, 'one-pixel.jpg');
  const second = 4 + jpeg.readUInt16BE(4);
  const noise = Buffer.concat([jpeg.subarray(0, second), Buffer.from([0, 1, 2, 0xff, 0xff]), jpeg.subarray(second)]);
  expect(probeImage(noise)).toEqual(probeImage(jpeg));
});

test('bytes in shared memory are read in place', () => {
  const bytes = read(oddImages, 'lossy.webp');
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  expect(probeImage(shared)).toEqual(probeImage(bytes));
});

const samples = [
  ...['one-pixel.jpg', 'exif-rotated-6.jpg', 'gray-16bit.png', 'picture.tif', 'lossy.webp', 'bitmap.bmp'].map((name) =>
    read(oddImages, name),
  ),
  ...headerNames.map((name) => read(headers, name)),
];

test('a truncated image gives the same header or a ShardtoolError', () => {
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.nat({ max: 1000 }), (bytes, length) => {
      expect(verdict(bytes.subarray(0, length), 'cut')).toMatch(
        /^(jpeg|png|gif|webp|tiff|avif|bmp|pnm) \d+x\d+|^out: /,
      );
    }),
    { numRuns: 400 * TIMES },
  );
});

test('changed and removed bytes give a header within the limit or a ShardtoolError', () => {
  const change = fc.tuple(fc.nat({ max: 600 }), fc.nat({ max: 255 }));
  fc.assert(
    fc.property(
      fc.constantFrom(...samples),
      fc.array(change, { maxLength: 6 }),
      fc.nat({ max: 40 }),
      (bytes, changes, removed) => {
        const damaged = Buffer.concat([bytes.subarray(0, 20), bytes.subarray(20 + removed)]);
        for (const [at, byte] of changes) if (at < damaged.length) damaged[at] = byte;
        try {
          const { width, height, orientation } = probeImage(damaged);
          expect(width > 0 && height > 0 && width * height <= MAX_PIXELS).toBe(true);
          expect(orientation >= 1 && orientation <= 8).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ImageError);
        }
      },
    ),
    { numRuns: 600 * TIMES },
  );
});

test('a megabyte of repeated bytes after a signature has a verdict', () => {
  const million = 1_000_000;
  const signatures = [
    '\xff\xd8\xff',
    '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01',
    'RIFF\0\0\0\0WEBPVP8X',
    'II*\0\x08\0\0\0\xff\xff',
    '\0\0\0\x10ftypavifavifavif',
    'P3 1',
    'P6 #',
  ];
  for (const signature of signatures) {
    for (const fill of [0, 1, 0xff]) {
      const bytes = Buffer.alloc(million, fill);
      bytes.write(signature, 'latin1');
      expect(() => verdict(bytes, 'long')).not.toThrow();
    }
  }
});

test('each kind has one field name, and the other usual names of it are recognised', () => {
  expect(fieldOfKind('jpeg')).toBe('jpg');
  expect(fieldOfKind('tiff')).toBe('tif');
  for (const field of ['jpg', 'jpeg', 'png', 'webp', 'gif', 'tif', 'tiff', 'avif', 'bmp', 'ppm', 'pgm']) {
    expect(isImageField(field)).toBe(true);
    expect(isImageExtension(field)).toBe(true);
  }
  expect(kindOfField('jpeg')).toBe('jpeg');
  expect(kindOfField('cls')).toBeUndefined();
  for (const field of ['cls', 'json', 'heic', 'seg.png', '']) expect(isImageField(field)).toBe(false);
  expect(isImageExtension('heic')).toBe(true);
  expect(isImageExtension('txt')).toBe(false);
});
