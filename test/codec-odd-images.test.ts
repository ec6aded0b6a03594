import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { crc32 } from '@shardtool/base';
import { afterAll, expect, test } from 'vitest';
import { createChecker } from '#reader/codec/check';
import { cut, difference, fixture, MAX_PIXELS, Workbench, wholeOf } from './codec-workbench.js';

/**
 * The columns "whole" and "read" of fixtures/odd-images/EXPECTED.md, file by file. `refused`: the file is never packed, and
 * neither checked nor read; `top`: a crop above the truncation has pixels, and any other crop is bad.
 */
const EXPECTED = {
  'alpha.png': { whole: 'good', read: 'pixels' },
  'animated.gif': { whole: 'good', read: 'pixels' },
  'claims-65500x65500.jpg': { whole: 'refused', read: 'refused' },
  'claims-zero-width.jpg': { whole: 'refused', read: 'refused' },
  'cmyk.jpg': { whole: 'good', read: 'pixels' },
  'empty.jpg': { whole: 'refused', read: 'refused' },
  'exif-rotated-6.jpg': { whole: 'good', read: 'pixels' },
  'flipped-bits.jpg': { whole: 'warnings', read: 'pixels' },
  'gray-16bit.png': { whole: 'good', read: 'pixels' },
  'gray.jpg': { whole: 'good', read: 'pixels' },
  'jpeg-named.png': { whole: 'good', read: 'pixels' },
  'lossless.webp': { whole: 'good', read: 'pixels' },
  'lossy.webp': { whole: 'good', read: 'pixels' },
  'no-end-marker.jpg': { whole: 'bad', read: 'pixels' },
  'odd-size-317x239.jpg': { whole: 'good', read: 'pixels' },
  'one-pixel.jpg': { whole: 'good', read: 'pixels' },
  'palette.png': { whole: 'good', read: 'pixels' },
  'bitmap.bmp': { whole: 'good', read: 'pixels' },
  'picture.tif': { whole: 'good', read: 'pixels' },
  'png-named.jpg': { whole: 'good', read: 'pixels' },
  'progressive.jpg': { whole: 'good', read: 'pixels' },
  'restart-markers.jpg': { whole: 'good', read: 'pixels' },
  'strip-3x2000.jpg': { whole: 'good', read: 'pixels' },
  'subsampling-422.jpg': { whole: 'good', read: 'pixels' },
  'subsampling-444.jpg': { whole: 'good', read: 'pixels' },
  'text-named.jpg': { whole: 'refused', read: 'refused' },
  'trailing-garbage.jpg': { whole: 'good', read: 'pixels' },
  'truncated-half.jpg': { whole: 'bad', read: 'top' },
  'truncated-header.jpg': { whole: 'refused', read: 'refused' },
  'truncated.png': { whole: 'bad', read: 'bad' },
} as const;

const pillow = (
  JSON.parse(readFileSync(new URL('./fixtures/codec/expected.json', import.meta.url), 'utf8')) as {
    readonly 'odd-images': Readonly<Record<string, { width: number; height: number; sha256: string }>>;
  }
)['odd-images'];

const workbench = await Workbench.open();
const { choice, other, own } = workbench.codecs;
const checker = await createChecker({ maxPixels: MAX_PIXELS });
afterAll(() => checker.close());
const bad = { name: 'SampleDecodeError' };

test.each(Object.entries(EXPECTED))('%s is checked and read as EXPECTED.md says', async (name, { whole, read }) => {
  const bytes = fixture(`odd-images/${name}`);
  const check = async () => checker.check(bytes);
  if (whole === 'bad' || whole === 'refused') await expect(check()).rejects.toMatchObject(bad);
  else await expect(check()).resolves.toEqual({ warnings: warningsOf(name) });

  if (read === 'bad' || read === 'refused') await expect(workbench.decode(bytes)).rejects.toMatchObject(bad);
  else if (read === 'top') await expectPixelsAboveTheCut(bytes);
  else await expectPixels(name, bytes);
});

test('the codecs differ only in the warnings of one file', () => {
  // libvips does not notice stray bytes before the end marker.
  expect(warningsOf('flipped-bits.jpg')).toBe(choice.name === 'turbojpeg' ? 1 : 0);
});

test.each([
  { what: 'gray', colour: 0, channels: 1 },
  { what: 'of colours', colour: 2, channels: 3 },
])(
  'for a 16-bit PNG that is $what, the upper byte of each value is used, and no value is clipped',
  async ({ colour, channels }) => {
    const values = [0, 127, 255, 256, 511, 512, 32_767, 40_000, 65_279, 65_280, 65_535];
    const { pixels } = await workbench.decode(png16(values, colour, channels));
    expect([...pixels]).toEqual(values.flatMap((value) => Array(3).fill(value >> 8)));
  },
);

/** One row of pixels whose channels are all this value. PNG specification, chapters 5 and 11. */
function png16(values: readonly number[], colour: number, channels: number): Uint8Array {
  const row = Buffer.alloc(1 + values.length * channels * 2);
  values.forEach((value, pixel) => {
    for (let channel = 0; channel < channels; channel++) row.writeUInt16BE(value, 1 + (pixel * channels + channel) * 2);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(values.length, 0);
  header.writeUInt32BE(1, 4);
  header.set([16, colour], 8);
  const chunk = (kind: string, data: Uint8Array) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(row)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** The warnings that the check counts. */
function warningsOf(name: keyof typeof EXPECTED | string): number {
  return name === 'flipped-bits.jpg' && choice.name === 'turbojpeg' ? 1 : 0;
}

async function expectPixels(name: string, bytes: Uint8Array): Promise<void> {
  const picture = await workbench.decode(bytes);
  // sharp does not read BMP.
  const codec = name.endsWith('.bmp') ? own : other;
  codec.header(bytes);
  const exact = await workbench.decodeWith(codec, bytes, wholeOf(picture), 1);
  expect(difference(picture.pixels, exact.pixels).largest).toBe(0);
  // Pillow rejects a file without an end marker.
  if (name === 'no-end-marker.jpg') return;
  expect(picture).toMatchObject({ width: pillow[name]!.width, height: pillow[name]!.height });
  expect(createHash('sha256').update(exact.pixels).digest('hex')).toBe(pillow[name]!.sha256);
}

async function expectPixelsAboveTheCut(bytes: Uint8Array): Promise<void> {
  const top = { x: 30, y: 0, width: 200, height: 60 };
  const above = await workbench.decode(bytes, top);
  // The same photo, undamaged.
  const original = await workbench.decode(fixture('odd-images/no-end-marker.jpg'));
  expect(Buffer.compare(above.pixels, cut(original, top))).toBe(0);
  await expect(workbench.decode(bytes)).rejects.toMatchObject(bad);
  await expect(workbench.decode(bytes, { x: 0, y: 200, width: 10, height: 10 })).rejects.toMatchObject(bad);
}
