import { philox } from '@shardtool/base';
import { expect, test } from 'vitest';
import { SampleRandom } from './random.js';

function numbers(seed: number, epoch: number, number: number, occurrence: number, count = 6): number[] {
  const random = new SampleRandom(seed).start(epoch, number, occurrence);
  return Array.from({ length: count }, () => random.next());
}

test('the numbers of sample 3 of epoch 1 with seed 42 equal those of version 1', () => {
  const words = [1643204430, 1415930637, 1210476236, 1141378146, 2827457181, 2380374338];
  expect(numbers(42, 1, 3, 0).map((value) => value * 2 ** 32)).toEqual(words);
});

test('random number i is word i mod 4 of the documented counter', () => {
  const seed = 2 ** 40 + 7;
  const number = 2 ** 33 + 5;
  const words = new Uint32Array(4);
  const expected = [0, 1].flatMap((quad) => [
    ...philox(quad + 2 * 2 ** 12, number | 0, (0x80000000 + 2) | 0, 9, seed | 0, 2 ** 8, words),
  ]);
  expect(numbers(seed, 9, number, 2, 8).map((value) => value * 2 ** 32)).toEqual(expected);
});

test('a different seed, epoch, sample or occurrence gives different numbers, all from 0 to below 1', () => {
  const all = [numbers(1, 0, 0, 0), numbers(2, 0, 0, 0), numbers(1, 1, 0, 0), numbers(1, 0, 1, 0), numbers(1, 0, 0, 1)];
  expect(new Set(all.flat()).size).toBe(30);
  expect(all.flat().every((value) => value >= 0 && value < 1)).toBe(true);
});

test('the random numbers do not depend on earlier samples', () => {
  const random = new SampleRandom(5);
  random.start(0, 17, 0).next();
  random.start(3, 4, 1);
  expect([random.next(), random.next()]).toEqual(numbers(5, 3, 4, 1, 2));
});
