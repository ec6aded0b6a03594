import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32c, crc32cByTables, maskedCrc32c } from './crc32c.js';

test('crc32c gives the values of RFC 3720, appendix B.4', () => {
  expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
  expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x46dd794e);
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
});

test('a masked crc32c equals the one that TensorFlow writes before a record of 1,065 bytes', () => {
  // The first 12 bytes of test/fixtures/tfrecord/short.tfrecord.
  expect(maskedCrc32c(Buffer.from('2904000000000000', 'hex'))).toBe(0x79014a76);
});

test('the processor and the tables compute the same crc32c, for any length and alignment', () => {
  const shared = Buffer.from(new SharedArrayBuffer(100_000)).fill('some bytes');
  fc.assert(
    fc.property(fc.nat(60_000), fc.oneof(fc.nat(600), fc.nat(40_000)), (from, length) => {
      const bytes = shared.subarray(from, from + length);
      expect(crc32c(bytes)).toBe(crc32cByTables(bytes));
    }),
  );
});

test('the tables alone compute the values of RFC 3720', () => {
  expect(crc32cByTables(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
  expect(crc32cByTables(Buffer.from('123456789'))).toBe(0xe3069283);
});
