import { expect, test } from 'vitest';
import { joined } from './joined.js';

test('arrays are joined in order, in a new buffer of exactly their size', () => {
  const bytes = new Uint8Array(8).subarray(2, 4).fill(7);
  const whole = joined([bytes, new Uint8Array(0), new Uint8Array([1, 2, 3])], Uint8Array);
  expect(whole).toEqual(new Uint8Array([7, 7, 1, 2, 3]));
  expect(whole.buffer.byteLength).toBe(5);
  expect(joined([[1.5], new Float64Array([2 ** 40])], Float64Array)).toEqual(new Float64Array([1.5, 2 ** 40]));
});
