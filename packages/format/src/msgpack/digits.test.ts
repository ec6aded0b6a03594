import { pack } from 'msgpackr';
import { expect, test } from 'vitest';
import { digitsOf } from './digits.js';

test('every integer of up to two bytes has digits, and other values have none', () => {
  for (let value = 0; value < 0x10000; value++) {
    if (Buffer.from(digitsOf(pack(value))!).toString() !== String(value)) throw new Error(`not the digits of ${value}`);
  }
  for (const other of [-1, -33, 0x10000, 1.5, 'a', null, true, [], {}]) expect(digitsOf(pack(other))).toBeNull();
  expect(digitsOf(new Uint8Array(0))).toBeNull();
  expect(digitsOf(Uint8Array.of(7, 7))).toBeNull();
});
