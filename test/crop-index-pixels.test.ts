/// <reference path="../packages/reader/src/webassembly.d.ts" />
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { CropIndexKernel, refusalOf } from '#reader/kernels/crop-index';
import { CropBench, checkPixels, draw, images } from './crop-index-workbench.js';
import { makeJpeg } from './jpeg-maker.js';
import { walkJpeg } from './jpeg-walk.js';

let bench: CropBench;
beforeAll(async () => {
  bench = await CropBench.open();
});

const noise = draw(97, 61, 3, 1, 5);

test('crops with an index have the same pixels as without, for every sampling, table and restart interval', async () => {
  expect(await checkPixels(bench, 250, 200)).toBe(2000);
});

test('the last columns of an image keep the chroma that depends on their neighbours', async () => {
  for (let width = 65; width < 76; width++) {
    const image = makeJpeg(draw(width, 40, 3, 1, width), { quality: 90, subsampling: 2 });
    const index = (bench.maker.make(image) as Uint8Array).slice();
    for (const reduction of [1, 2, 4] as const) {
      const crop = { x: Math.ceil(width / reduction) - 1, y: 3, width: 1, height: 5 };
      expect(bench.spliced(image, index, crop, reduction)).toEqual(await bench.today(image, crop, reduction));
    }
  }
});

test('an index unpacks to the same offsets and DC values as a plain walk', () => {
  const memory = new WebAssembly.Memory({ initial: 64, maximum: 64, shared: true });
  const bytes = new Uint8Array(memory.buffer);
  const kernel = new CropIndexKernel(memory, 0);
  const [source, packedAt, entries] = [65_536, 2 ** 20, 2 ** 21];
  fc.assert(
    fc.property(images(90), (image) => {
      const packed = bench.maker.make(image.bytes) as Uint8Array;
      bytes.set(image.bytes, source);
      bytes.set(packed, packedAt);
      expect(kernel.parse(source, image.bytes.length)).toBe(0);
      const walked = walkJpeg(image.bytes);
      const group = packed[0]!;
      const perRow = Math.ceil(walked.mcusX / group);
      const count = perRow * walked.mcusY + 1;
      expect(kernel.unpack(packedAt, packed.length, count, entries)).toBe(group);
      const view = new DataView(memory.buffer, entries);
      for (let i = 0; i < count; i++) {
        const isEnd = i === count - 1;
        const mcu = isEnd ? walked.mcusX * walked.mcusY : Math.floor(i / perRow) * walked.mcusX + (i % perRow) * group;
        const [place, ...dcs] = walked.entries[mcu]!;
        const found = dcs.map((_, c) => view.getInt16(i * 12 + 4 + c * 2, true));
        expect([view.getUint32(i * 12, true), ...found]).toEqual([place, ...dcs]);
      }
    }),
    { numRuns: 60 },
  );
});

test('the reason why an image has no index is reported', () => {
  const why = (image: Uint8Array) => refusalOf(bench.maker.make(image) as number);
  const options = { quality: 80, subsampling: 2 };
  const plain = makeJpeg(noise, options);
  expect(why(makeJpeg(noise, { ...options, progressive: true }))).toBe('progressive');
  expect(why(makeJpeg(noise, { ...options, arithmetic: true }))).toBe('arithmetic coding');
  expect(why(Uint8Array.from([...plain, 0]).subarray(0, plain.length - 2))).toBe(
    'more than an end marker after the scan',
  );
  expect(why(plain.subarray(0, plain.length >> 1))).toBe('damaged data');
  expect(why(Buffer.from('GIF89a of no use'))).toBe('not a JPEG, or markers out of order');
  const frame = plain.findIndex((byte, i) => byte === 0xff && plain[i + 1] === 0xc0);
  expect(why(patched(plain, frame + 4, 12))).toBe('not 8 bits per sample');
  expect(why(patched(patched(plain, frame + 5, 0), frame + 6, 0))).toBe('its height is defined after the scan');
  const scan = plain.findIndex((byte, i) => byte === 0xff && plain[i + 1] === 0xda);
  expect(why(patched(plain, scan + 4, 1))).toBe('several scans');
});

test('an index of another image, or an empty one, gives no pixels', () => {
  const crop = { x: 10, y: 20, width: 30, height: 30 };
  const image = makeJpeg(noise, { quality: 80, subsampling: 2 });
  const other = bench.maker.make(makeJpeg(draw(300, 300, 3, 1, 9), { quality: 90, subsampling: 0 })) as Uint8Array;
  expect(bench.spliced(image, other.slice(), crop, 1)).toBeNull();
  expect(bench.spliced(image, new Uint8Array(0), crop, 1)).toBeNull();
  expect(bench.spliced(image, Uint8Array.of(0, 0, 0, 0, 0, 0), crop, 1)).toBeNull();
});

function patched(bytes: Uint8Array, at: number, value: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = value;
  return copy;
}
