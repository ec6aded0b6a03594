import { philox } from '@shardtool/base';
import { expect, test } from 'vitest';
import { EffectKernels, NOISE_SCRATCH_BYTES } from '#reader/kernels/effects';

const ADDRESS = 65_536 * 3;
const memory = new WebAssembly.Memory({ initial: 8, maximum: 8, shared: true });
const bytes = new Uint8Array(memory.buffer);
const kernels = new EffectKernels(memory);

/** The sum of each value and an amount: the halves of the words of counters 0, 1, 2, ..., lower half first. */
function expected(values: Uint8Array, amounts: Int16Array, [low, high]: readonly [number, number]): Uint8Array {
  const words = new Uint32Array(4);
  return values.map((value, i) => {
    if (i % 8 === 0) philox(i / 8, 0, 0, 0, low, high, words);
    const word = words[(i >> 1) & 3]!;
    return Math.max(0, Math.min(255, value + amounts[i & 1 ? word >>> 16 : word & 0xffff]!));
  });
}

test.each([
  [1, 1],
  [3, 1],
  [7, 5],
  [32, 1],
  [33, 31],
])('noise of %ix%i pixels adds the amounts that Philox draws, and changes no other byte', (width, height) => {
  const amounts = Int16Array.from({ length: 65_536 }, (_, i) => ((i * 40_503) % 700) - 350);
  for (const key of [[0, 0] as const, [0x9e3779b9, 0xfedcba98] as const]) {
    const values = Uint8Array.from({ length: width * height * 3 + 64 }, (_, i) => (i * 37) & 255);
    bytes.set(values, ADDRESS);
    bytes.fill(0xa5, NOISE_SCRATCH_BYTES, NOISE_SCRATCH_BYTES + 64);
    kernels.addNoise({ address: ADDRESS, width, height }, amounts, key, 0);
    const end = width * height * 3;
    expect(bytes.slice(ADDRESS, ADDRESS + end)).toEqual(expected(values.subarray(0, end), amounts, key));
    expect(bytes.slice(ADDRESS + end, ADDRESS + values.length)).toEqual(values.slice(end));
    expect(bytes.slice(NOISE_SCRATCH_BYTES, NOISE_SCRATCH_BYTES + 64).every((byte) => byte === 0xa5)).toBe(true);
  }
});
