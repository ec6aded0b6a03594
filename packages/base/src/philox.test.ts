import { expect, test } from 'vitest';
import { multiplyHigh, philox, shuffle } from './philox.js';

test('the words of the zero counter and key equal those of the reference implementation (Random123, kat_vectors)', () => {
  const words = philox(0, 0, 0, 0, 0, 0, new Uint32Array(4));
  expect([...words]).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
});

test('the words of all ones, and of the digits of pi, equal those of the reference implementation', () => {
  const ones = 0xffffffff;
  const words = philox(ones, ones, ones, ones, ones, ones, new Uint32Array(4));
  expect([...words]).toEqual([0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
  philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, words);
  expect([...words]).toEqual([0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
});

test('the upper half of a product is exact over the whole range', () => {
  for (const a of [0, 1, 0xffff, 0x10000, 0x12345678, 0x80000000, 0xffffffff]) {
    for (const b of [0, 1, 3, 0xffff, 0x10001, 0x9abcdef0, 0xffffffff]) {
      expect(multiplyHigh(a, b)).toBe(Number((BigInt(a) * BigInt(b)) >> 32n));
    }
  }
});

test('a shuffle keeps every value, and depends on each of seed, epoch, stream and block', () => {
  const shuffled = (...words: [number, number, number, number]) => {
    const values = Uint32Array.from({ length: 50 }, (_, i) => i);
    shuffle(values, 50, ...words);
    return values;
  };
  const base = shuffled(7, 0, 0, 0);
  expect([...base].sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  for (const other of [
    shuffled(7 + 2 ** 32, 0, 0, 0),
    shuffled(7, 1, 0, 0),
    shuffled(7, 0, 1, 0),
    shuffled(7, 0, 0, 1),
  ]) {
    expect(other).not.toEqual(base);
  }
});
