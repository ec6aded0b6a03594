import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32, crc32Hex } from './checksum.js';

test('the checksum of "123456789" is the check value of CRC-32/ISO-HDLC', () => {
  expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
});

test('the checksum of a payload does not depend on the pieces in which it is computed', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (head, tail) => {
      expect(crc32(tail, crc32(head))).toBe(crc32(Buffer.concat([head, tail])));
    }),
  );
});

test('appending an empty array does not change a checksum, even an array without memory', () => {
  for (const nothing of [new Uint8Array(0), new Uint8Array(new Float64Array(0).buffer), Buffer.alloc(0)]) {
    expect([crc32(nothing), crc32(nothing, 0xcbf43926)]).toEqual([0, 0xcbf43926]);
  }
});

test('long payloads have the checksum that zlib computes, at any alignment in memory', () => {
  const shared = Buffer.from(new SharedArrayBuffer(100_000)).fill('some bytes');
  fc.assert(
    fc.property(fc.nat(60_000), fc.nat(40_000), fc.nat(0xffffffff), (from, bytes, before) => {
      const payload = shared.subarray(from, from + bytes);
      expect(crc32(payload, before)).toBe(zlibCrc32(payload, before));
    }),
  );
});

test('bytes in shared memory have the same checksum as a copy of them', () => {
  const shared = new Uint8Array(new SharedArrayBuffer(5));
  shared.set([1, 2, 3, 4, 5]);
  expect(crc32(shared)).toBe(crc32(Uint8Array.of(1, 2, 3, 4, 5)));
});

test('a checksum is formatted as eight hexadecimal digits', () => {
  expect(crc32Hex(0xcbf43926)).toBe('cbf43926');
  expect(crc32Hex(0x2a)).toBe('0000002a');
});
