import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { crc32Combine } from './crc32-combine.js';

test('the checksum of two parts is computed from the checksums of the parts', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array({ maxLength: 5000 }), (first, second) => {
      expect(crc32Combine(crc32(first), crc32(second), second.length)).toBe(crc32(second, crc32(first)));
    }),
  );
});

test('a second part of more than 4 GiB is combined with its full length', () => {
  const zeros = new Uint8Array(1 << 20);
  let twelve = 0;
  for (let i = 0; i < 12; i++) twelve = crc32(zeros, twelve);
  const megabyte = crc32(zeros);
  let combined = megabyte;
  // 12 * 1 MiB one by one, and the same in two steps whose lengths have many bits.
  for (let i = 1; i < 12; i++) combined = crc32Combine(combined, megabyte, 1 << 20);
  expect(combined).toBe(twelve);
  const once = crc32Combine(megabyte, 0, 2 ** 33 + 12345);
  const twice = crc32Combine(crc32Combine(megabyte, 0, 2 ** 33), 0, 12345);
  expect(once).toBe(twice);
});
