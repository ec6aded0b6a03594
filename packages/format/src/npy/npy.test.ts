import { NpyError } from '@shardtool/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIMES } from '../../../../test/repetitions.js';
import { readNpy } from './array.js';
import { encodeNpyHeader, readNpyHeader } from './header.js';
import { encodeNpyImage, readNpyImage } from './image.js';
import { NpyRowCopier, npyRowBytes, npyRowOf, npyRowValues } from './rows.js';

function npy(header: string, data: readonly number[] = [], version = 1): Uint8Array {
  const text = Buffer.from(header, 'latin1');
  const length = version === 1 ? [text.length & 255, text.length >> 8] : [text.length & 255, text.length >> 8, 0, 0];
  return Uint8Array.from([0x93, ...Buffer.from('NUMPY'), version, 0, ...length, ...text, ...data]);
}

test('an array of version 1.0 is read: dtype, shape, order and values', () => {
  const bytes = npy(
    "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n",
    [1, 0, 2, 0, 3, 0, 255, 255, 5, 0, 0, 1],
  );
  expect(readNpy(bytes)).toEqual({
    dtype: '<i2',
    shape: [2, 3],
    fortranOrder: false,
    data: Int16Array.of(1, 2, 3, -1, 5, 256),
  });
});

test.each([
  ["{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}", [1, 2, 3, 4], { fortranOrder: true, shape: [2, 2] }],
  [
    "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }",
    [1, 0, 0, 7],
    { dtype: '<u2', data: Uint16Array.of(256, 7) },
  ],
  [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    [0, 0, 0, 0, 0, 0, 240, 63],
    { shape: [], data: Float64Array.of(1) },
  ],
  ["{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", [2, 0, 0, 0, 0, 0, 0, 0], { data: BigInt64Array.of(2n) }],
  ["{'descr': '<f2', 'fortran_order': False, 'shape': (1,)}", [0, 60], { dtype: '<f2', data: Uint8Array.of(0, 60) }],
  ["{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}", [65, 0, 0, 0, 66, 0, 0, 0], { dtype: '<U2' }],
  [
    "{'descr': [('a', '<i2'), ('b', '|u1')], 'fortran_order': False, 'shape': (1,)}",
    [1, 0, 2],
    { data: Uint8Array.of(1, 0, 2) },
  ],
  ["{'descr': '|b1', 'fortran_order': False, 'shape': (0, 3)}", [], { shape: [0, 3], data: new Uint8Array(0) }],
  ['{"descr": "|u1", "fortran_order": False, "shape": (1L,)}'.replaceAll('"', "'"), [9], { shape: [1] }],
])('%s is read', (header, data, expected) => {
  expect(readNpy(npy(header, data))).toMatchObject(expected);
  expect(readNpy(npy(header, data, 2))).toMatchObject(expected);
});

test.each([
  ["{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", [1], /pickled/],
  ["{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,)}", [1], /pickled/],
  ["{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}", [1], /2 bytes, but it has 1/],
  ["{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", [1, 2], /1 bytes, but it has 2/],
  ["{'descr': '|q3', 'fortran_order': False, 'shape': (1,)}", [1], /unknown/],
  ["{'descr': '<f0', 'fortran_order': False, 'shape': (1,)}", [], /unknown/],
  ["{'descr': '<M8[x]', 'fortran_order': False, 'shape': (1,)}", [0, 0, 0, 0, 0, 0, 0, 0], /unknown/],
  ["{'descr': '|u1', 'shape': (1,)}", [1], /does not follow NumPy's format/],
  ["{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}", [1], /does not follow NumPy's format/],
  ["{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", [1], /does not follow NumPy's format/],
  ["{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}", [1], /does not follow NumPy's format/],
  ["__import__('os').system('true')", [1], /does not follow NumPy's format/],
])('%s is refused', (header, data, message) => {
  expect(() => readNpy(npy(header, data))).toThrow(message);
  expect(() => readNpy(npy(header, data))).toThrow(NpyError);
});

test('random bytes are read or rejected with an NpyError', () => {
  const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  const whole = npy(
    header,
    Array.from({ length: 16 }, (_, i) => i),
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 4 }),
      fc.nat(whole.length),
      (changes, length) => {
        const bytes = whole.slice(0, length);
        for (const [at, value] of changes) if (at < length) bytes[at] = value;
        try {
          readNpy(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(NpyError);
        }
      },
    ),
    { numRuns: 400 * TIMES },
  );
});

test('an image is read back from its bytes, and its values start at a multiple of 64', () => {
  const pixels = Uint8Array.from({ length: 2 * 3 * 3 }, (_, i) => i);
  const bytes = encodeNpyImage(pixels, 3, 2);
  const { width, height, offset } = readNpyImage(bytes);
  expect({ width, height, rest: offset % 64 }).toEqual({ width: 3, height: 2, rest: 0 });
  expect(readNpy(bytes)).toEqual({ dtype: '|u1', shape: [2, 3, 3], fortranOrder: false, data: pixels });
  for (const shape of [[], [5], [224, 224, 3], [1, 2, 3, 4]]) {
    expect(readNpyHeader(encodeNpyHeader('<f4', shape))).toMatchObject({ dtype: '<f4', shape, fortranOrder: false });
  }
});

test('only an array of uint8 height x width x 3 is an image', () => {
  const image = (dtype: string, shape: readonly number[], bytes: number) =>
    Buffer.concat([encodeNpyHeader(dtype, shape), new Uint8Array(bytes)]);
  expect(() => readNpyImage(image('|u1', [2, 2], 4))).toThrow('(2, 2), but an image must be uint8 (height, width, 3)');
  expect(() => readNpyImage(image('<f4', [1, 1, 3], 12))).toThrow('array of <f4');
  expect(() => readNpyImage(image('|u1', [2, 2, 3], 11))).toThrow('ends 1 bytes before its last pixel');
});

test.each([
  ['<u2', [2, 3], true, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], [1, 3, 5, 2, 4, 6]],
  ['>u2', [2, 3], true, [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6], [1, 3, 5, 2, 4, 6]],
  ['>u2', [2, 3], false, [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6], [1, 2, 3, 4, 5, 6]],
  ['<u2', [1, 3, 2], true, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0], [1, 4, 2, 5, 3, 6]],
  ['<u2', [], false, [7, 0], [7]],
  ['<u2', [0, 2], true, [], []],
] as const)(
  'an array of %s %j, in Fortran order: %s, becomes a row in C order',
  (dtype, shape, isFortran, data, expected) => {
    const tuple = `(${shape.map((size) => `${size},`).join(' ')})`;
    const file = npy(
      `{'descr': '${dtype}', 'fortran_order': ${isFortran ? 'True' : 'False'}, 'shape': ${tuple}, }`,
      data,
    );
    const row = npyRowOf(file)!;
    expect(row).toEqual({ dtype: '<u2', shape });
    const target = new Uint8Array(npyRowBytes(row));
    const copier = new NpyRowCopier(row);
    // The second time, the header is known.
    for (let time = 0; time < 2; time++) {
      target.fill(255);
      copier.copy(file, target);
      expect([...npyRowValues(target, row)]).toEqual(expected);
    }
  },
);

test('a row of another shape or dtype is rejected, also after one that matches', () => {
  const header = (dtype: string, shape: string) => `{'descr': '${dtype}', 'fortran_order': False, 'shape': ${shape}, }`;
  const copier = new NpyRowCopier({ dtype: '<u2', shape: [2] });
  const target = new Uint8Array(4);
  copier.copy(npy(header('<u2', '(2,)'), [1, 0, 2, 0]), target);
  expect(() => copier.copy(npy(header('<i2', '(2,)'), [1, 0, 2, 0]), target)).toThrow('array of int16 (2,)');
  expect(() => copier.copy(npy(header('<u2', '(1, 2)'), [1, 0, 2, 0]), target)).toThrow('array of uint16 (1, 2)');
  expect(() => copier.copy(npy(header('<u2', '(2,)'), [1, 0, 2]), target)).toThrow('4 bytes of values');
  expect([...target]).toEqual([1, 0, 2, 0]);
});

test.each([
  [`(${'1, '.repeat(33)})`, /33 dimensions/],
  ['(0, 9007199254740991, 9007199254740991)', /3 dimensions/],
])('a shape that NumPy does not allow is rejected', (shape, message) => {
  expect(() => npyRowOf(npy(`{'descr': '|u1', 'fortran_order': False, 'shape': ${shape}, }`))).toThrow(message);
});
