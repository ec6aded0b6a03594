import { deflateSync } from 'node:zlib';
import { SampleDecodeError } from '@shardtool/base';
import { encodeNpyHeader } from '@shardtool/format';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../../test/repetitions.js';
import { readMask } from '../mask.js';
import { readPngValues } from './png-values.js';

interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly bits: 1 | 2 | 4 | 8;
  readonly filters: readonly number[];
  readonly seed: number;
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  width: fc.integer({ min: 1, max: 40 }),
  height: fc.integer({ min: 1, max: 20 }),
  bits: fc.constantFrom(1, 2, 4, 8),
  filters: fc.array(fc.nat(4), { minLength: 20, maxLength: 20 }),
  seed: fc.nat(),
});

function valuesOf({ width, height, bits, seed }: Drawn): Uint8Array {
  return Uint8Array.from({ length: width * height }, (_, i) => Math.imul(i + seed, 0x9e3779b1) >>> (32 - bits));
}

/** Encodes row by row, each with a different filter (PNG, Third Edition, 9.2). */
function encode(picture: Drawn, colours = 3): Buffer {
  const { width, height, bits, filters } = picture;
  const values = valuesOf(picture);
  const rowBytes = Math.ceil((width * bits) / 8);
  const rows = Buffer.alloc((rowBytes + 1) * height);
  let before = new Uint8Array(rowBytes);
  for (let y = 0; y < height; y++) {
    const row = new Uint8Array(rowBytes);
    for (let x = 0; x < width; x++) row[(x * bits) >> 3]! |= values[y * width + x]! << (8 - bits - ((x * bits) & 7));
    const filter = filters[y]!;
    rows[y * (rowBytes + 1)] = filter;
    for (let i = 0; i < rowBytes; i++) {
      const [left, up, corner] = [row[i - 1] ?? 0, before[i]!, before[i - 1] ?? 0];
      const guess = left + up - corner;
      const nearest = [left, up, corner].toSorted((a, b) => Math.abs(guess - a) - Math.abs(guess - b))[0]!;
      rows[y * (rowBytes + 1) + 1 + i] = row[i]! - [0, left, up, (left + up) >> 1, nearest][filter]!;
    }
    before = row;
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([bits, colours], 8);
  const chunks = [
    chunk('IHDR', head),
    chunk('PLTE', Buffer.alloc(3 << bits)),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND'),
  ];
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks]);
}

function chunk(type: string, content = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(content.length);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, content, Buffer.alloc(4)]);
}

test('the indices of a palette are read back for all bit depths and filters', () => {
  fc.assert(
    fc.property(drawn, (picture) => {
      for (const colours of [0, 3]) {
        const { width, height, values } = readPngValues(encode(picture, colours), 1e6);
        expect({ width, height }).toEqual({ width: picture.width, height: picture.height });
        expect(Buffer.compare(values, valuesOf(picture))).toBe(0);
      }
    }),
    { numRuns: 40 * TIMES },
  );
});

test('changed and truncated files are read, or rejected with a SampleDecodeError', () => {
  const whole = encode({ width: 9, height: 5, bits: 4, filters: [0, 1, 2, 3, 4], seed: 1 });
  fc.assert(
    fc.property(
      fc.nat(whole.length),
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 3 }),
      (length, changes) => {
        const bytes = whole.subarray(0, length).slice();
        const copy = new Uint8Array(bytes);
        for (const [at, value] of changes) if (at < copy.length) copy[at] = value;
        try {
          readMask(copy, 1e6);
        } catch (error) {
          expect(error).toBeInstanceOf(SampleDecodeError);
        }
      },
    ),
    { numRuns: 200 * TIMES },
  );
});

test('a mask with colours, and one with too many pixels, is rejected with a message', () => {
  const picture: Drawn = { width: 4, height: 4, bits: 8, filters: [0, 0, 0, 0], seed: 0 };
  expect(() => readPngValues(encode(picture, 2), 1e6)).toThrow(/a mask is gray or has a palette/);
  expect(() => readPngValues(encode(picture), 15)).toThrow(/4x4 pixels, more than 15/);
  expect(() => readMask(Buffer.from('GIF89a'), 15)).toThrow(/a mask is a gray or palette PNG, or a uint8 .npy array/);
});

test('the error about an array that is not a mask names its order, or where it ends', () => {
  const mask = (order: string, bytes: number) => {
    const header = encodeNpyHeader('|u1', [4, 6]);
    const text = Buffer.from(header).toString('latin1').replace('False, ', order);
    return Buffer.concat([Buffer.from(text, 'latin1'), new Uint8Array(bytes)]);
  };
  expect(readMask(mask('False, ', 24), 1000)).toMatchObject({ width: 6, height: 4 });
  expect(() => readMask(mask('True,  ', 24), 1000)).toThrow(
    'it is an array of |u1 with the shape (4, 6) in Fortran order, but a mask is uint8 (height, width) in C order',
  );
  expect(() => readMask(mask('False, ', 20), 1000)).toThrow('its array ends after 20 of 24 values');
});
