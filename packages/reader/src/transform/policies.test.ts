import { expect, test } from 'vitest';
import type { Effect } from './effects.js';
import { planSample } from './plan.js';
import { SampleRandom } from './random.js';
import { compileTransform, type StepInput } from './transform.js';

/** The effects that a step draws for 20,000 samples. */
function drawn(step: StepInput): (readonly Effect[])[] {
  const transform = compileTransform([step]);
  const random = new SampleRandom(7);
  return Array.from({ length: 20_000 }, (_, sample) =>
    planSample(transform, 64, 48, random.start(1, sample, 0)).passes.flatMap(({ effects }) => effects ?? []),
  );
}

/** Chi-square of counts against their expected shares. */
function chiSquare(counts: readonly number[], shares: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.reduce((sum, count, i) => sum + (count - total * shares[i]!) ** 2 / (total * shares[i]!), 0);
}

test('trivialAugmentWide and randAugment draw each of the 14 operations, and each sign, equally often', () => {
  for (const step of [{ name: 'trivialAugmentWide' }, { name: 'randAugment', numOps: 1 }] as const) {
    const kinds = [undefined, 'brightness', 'saturation', 'contrast', 'sharpness', 'posterize', 'solarize'];
    const all = [...kinds, 'autocontrast', 'equalize', 'rotate'];
    const effects = drawn(step).map(([effect]) => effect);
    const counts = all.map((kind) => effects.filter((effect) => effect?.kind === kind).length);
    // 99.9 % of all chi-squares with 9 degrees of freedom are below 27.9.
    expect(chiSquare(counts, [...Array<number>(9).fill(1 / 14), 5 / 14])).toBeLessThan(27.9);
    const factors = effects.flatMap((effect) =>
      effect?.kind === 'brightness' && effect.factor !== 1 ? [effect.factor] : [],
    );
    const more = factors.filter((factor) => factor > 1).length;
    expect(chiSquare([more, factors.length - more], [0.5, 0.5])).toBeLessThan(10.8);
  }
});

test('trivialAugmentWide draws each of the 31 magnitudes equally often', () => {
  const thresholds = drawn({ name: 'trivialAugmentWide' }).flatMap(([effect]) =>
    effect?.kind === 'solarize' ? [Math.round((1 - effect.threshold / 255) * 30)] : [],
  );
  const counts = Array.from({ length: 31 }, (_, bin) => thresholds.filter((one) => one === bin).length);
  // 99.9 % of all chi-squares with 30 degrees of freedom are below 59.7.
  expect(chiSquare(counts, Array<number>(31).fill(1 / 31))).toBeLessThan(59.7);
});

test('autoAugment applies each operation with its probability, and threeAugment one of three', () => {
  const samples = drawn({ name: 'autoAugment', policy: 'imagenet' });
  const inverted = samples.filter((effects) => effects.some(({ kind }) => kind === 'invert')).length;
  // Three of the 25 pairs have an invert, each with a probability of 0.6.
  expect(chiSquare([inverted, samples.length - inverted], [0.072, 0.928])).toBeLessThan(10.8);
  const three = drawn({ name: 'threeAugment' }).map(([effect]) => effect!.kind);
  const counts = ['saturation', 'solarize', 'pillowBlur'].map((kind) => three.filter((one) => one === kind).length);
  expect(chiSquare(counts, [1 / 3, 1 / 3, 1 / 3])).toBeLessThan(13.8);
});

test('a policy with p 0 or without operations changes nothing', () => {
  expect(drawn({ name: 'trivialAugmentWide', p: 0 }).flat()).toEqual([]);
  expect(drawn({ name: 'randAugment', numOps: 0 }).flat()).toEqual([]);
});

test('boxes move with the shear and the translation of a policy', () => {
  const boxes = (name: 'randAugment' | 'trivialAugmentWide', draws: number[]) => {
    const given = {
      ...{ count: 1, boxes: Float64Array.of(10, 0, 20, 10), labels: null, keypoints: null, polygons: null },
      normalized: { boxes: false, keypoints: false, polygons: false },
    };
    const random = { next: () => draws.shift()! };
    const transform = compileTransform([name === 'randAugment' ? { name, numOps: 1 } : { name }]);
    return [...planSample(transform, 100, 100, random, given).annotations!.boxes!].map((value) =>
      Number(value.toFixed(4)),
    );
  };
  const shearX = 1.5 / 14;
  const translateX = 3.5 / 14;
  // A row y of the result comes from 0.09 y to the right.
  expect(boxes('randAugment', [shearX, 0.75])).toEqual([9.1, 0, 20, 10]);
  // 150 / 331 * 100 * 9 / 30, without its fraction.
  expect(boxes('randAugment', [translateX, 0.75])).toEqual([23, 0, 33, 10]);
  expect(boxes('randAugment', [translateX, 0.25])).toEqual([0, 0, 7, 10]);
  // torch.linspace(0, 32, 31)[15] is slightly less than 16.
  expect(boxes('trivialAugmentWide', [translateX, 15.5 / 31, 0.75])).toEqual([25, 0, 35, 10]);
});
