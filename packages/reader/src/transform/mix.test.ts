import { expect, test } from 'vitest';
import { checkMix, drawMix } from './mix.js';
import { FIRST_NUMBER, SampleRandom } from './random.js';

const size = { width: 20, height: 10 };
const random = new SampleRandom(1);
const numbersOf = (number: number) => random.start(0, number, 0, FIRST_NUMBER.mix);

test.each([0.2, 1, 3])('the weights of mixup have the mean and the variance of Beta(%d, %d)', (alpha) => {
  const mixes = checkMix({ name: 'mixup', alpha });
  const weights = Array.from({ length: 4000 }, (_, i) => drawMix(mixes, size, numbersOf(i))!.weight);
  const mean = weights.reduce((sum, weight) => sum + weight) / weights.length;
  const variance = weights.reduce((sum, weight) => sum + (weight - mean) ** 2, 0) / weights.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.02);
  expect(Math.abs(variance - 1 / (4 * (2 * alpha + 1)))).toBeLessThan(0.01);
});

test.each([0.1, 0.009, 0.002, 1e-5, 1e-300])('mixup with an alpha of %d keeps almost all of one image', (alpha) => {
  const mixes = checkMix({ name: 'mixup', alpha });
  const weights = Array.from({ length: 4000 }, (_, i) => drawMix(mixes, size, numbersOf(i))!.weight);
  const mean = weights.reduce((sum, weight) => sum + weight) / weights.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.03);
  // About 2 alpha ln 9 / 2 of Beta(alpha, alpha) is between 0.1 and 0.9.
  const between = weights.filter((weight) => weight > 0.1 && weight < 0.9).length / weights.length;
  expect(Math.abs(between - alpha * Math.log(9))).toBeLessThan(0.02 + alpha / 5);
});

test('the rectangle of cutmix is inside the image, and the weight is the remaining share of the area', () => {
  const mixes = checkMix([{ name: 'cutmix' }]);
  for (let i = 0; i < 500; i++) {
    const { rect, weight } = drawMix(mixes, size, numbersOf(i))!;
    const { x, y, width, height } = rect!;
    expect(Math.min(x, y, width, height)).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(20);
    expect(y + height).toBeLessThanOrEqual(10);
    expect(weight).toBeCloseTo(1 - (width * height) / 200, 12);
  }
});

test('each batch uses one of several mixes, and none if there are none', () => {
  const mixes = checkMix([{ name: 'mixup' }, { name: 'cutmix' }]);
  const names = Array.from({ length: 200 }, (_, i) => drawMix(mixes, size, numbersOf(i))!.name);
  expect(names.filter((name) => name === 'mixup').length).toBeGreaterThan(60);
  expect(names.filter((name) => name === 'cutmix').length).toBeGreaterThan(60);
  expect(drawMix(checkMix(undefined), size, numbersOf(0))).toBeNull();
});

test('mixing and the transform use different random numbers', () => {
  const first = new SampleRandom(1).start(0, 7, 0);
  const transform = Array.from({ length: 100 }, () => first.next());
  const second = numbersOf(7);
  const mixes = Array.from({ length: 100 }, () => second.next());
  expect(transform.some((value) => mixes.includes(value))).toBe(false);
  for (let i = 100; i < FIRST_NUMBER.mix; i++) first.next();
  expect(first.next()).toBe(mixes[0]);
});
