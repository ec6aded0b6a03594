import fc from 'fast-check';
import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { jsonText } from './json-text.js';
import {
  binHeadBytes,
  decodeHead,
  encodeBinHead,
  encodeMapHead,
  encodeStrHead,
  headBytes,
  mapHeadBytes,
} from './object.js';

const edges = [0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536, 2 ** 31, 2 ** 32 - 1];

test('heads of every length are read back unchanged', () => {
  const target = Buffer.alloc(8);
  for (const length of edges) {
    const str = encodeStrHead(target, 0, length);
    expect(decodeHead(target, 0)).toEqual({ kind: 'str', bytes: str, payload: length, children: 0 });
    const bin = encodeBinHead(target, 0, length);
    expect(bin).toBe(binHeadBytes(length));
    expect(decodeHead(target, 0)).toEqual({ kind: 'bin', bytes: bin, payload: length, children: 0 });
    const map = encodeMapHead(target, 0, length);
    expect(map).toBe(mapHeadBytes(length));
    expect(decodeHead(target, 0)).toEqual({ kind: 'map', bytes: map, payload: 0, children: 2 * length });
    expect(headBytes(target[0]!)).toBe(map);
  }
});

test('extension types and the unused byte have no head', () => {
  for (const first of [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8]) {
    expect(decodeHead(Buffer.from([first, 0, 0, 0, 0]), 0)).toBeNull();
  }
});

test('a value becomes the same JSON as with JSON.stringify', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      // msgpackr keeps -0 and JSON does not; msgpackr handles a key named __proto__ differently.
      fc.pre(!JSON.stringify(value).includes('__proto__'));
      expect(JSON.parse(jsonText(pack(value)))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('an integer of 64 bits keeps all its digits', () => {
  expect(jsonText(pack(2n ** 64n - 1n))).toBe('18446744073709551615');
  expect(jsonText(pack([-(2n ** 63n)]))).toBe('[-9223372036854775808]');
});

test('a value that JSON cannot express throws an error', () => {
  expect(() => jsonText(pack([Buffer.from('x')]))).toThrow('binary data');
  expect(() => jsonText(pack(Number.NaN))).toThrow('NaN');
  expect(() => jsonText(pack(new Map([[1, 2]])))).toThrow('a key that is not a string (integer)');
  expect(() => jsonText(pack(new Date()))).toThrow('extension');
  expect(() => jsonText(Buffer.alloc(5000, 0x91))).toThrow('nested more than');
  expect(() => jsonText(Buffer.from([0x92, 1]))).toThrow('ends early');
  expect(() => jsonText(Buffer.from([1, 1]))).toThrow('bytes follow');
});
