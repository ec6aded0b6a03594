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

test('timmAugment draws each operation equally often, half of them apply, and magnitudes are normal and clipped', () => {
  const effects = drawn({ name: 'timmAugment', config: 'rand-m9-mstd0.5-inc1-n1' });
  const applied = effects.filter(({ length }) => length > 0);
  expect(chiSquare([applied.length, effects.length - applied.length], [0.5, 0.5])).toBeLessThan(10.8);
  const kinds = [
    'autocontrast',
    'equalize',
    'invert',
    'posterize',
    'solarize',
    'solarizeAdd',
    'saturation',
    'contrast',
  ];
  const all = [...kinds, 'brightness', 'sharpness', 'rotate'];
  const counts = all.map((kind) => applied.filter(([effect]) => effect!.kind === kind).length);
  // 99.9 % of all chi-squares with 10 degrees of freedom are below 29.6.
  expect(chiSquare(counts, [...Array<number>(10).fill(1 / 15), 5 / 15])).toBeLessThan(29.6);
  const added = applied.flatMap(([effect]) => (effect!.kind === 'brightness' ? [effect.factor - 1] : []));
  const up = added.filter((change) => change > 0).length;
  expect(chiSquare([up, added.length - up], [0.5, 0.5])).toBeLessThan(10.8);
  // Magnitudes: the shares of a normal distribution with mean 9 and deviation 0.5, in steps of one deviation, clipped at 10.
  const magnitudes = added.map((change) => (Math.abs(change) / 0.9) * 10);
  const bins = [0, 0, 0, 0];
  for (const magnitude of magnitudes) bins[magnitude < 8.5 ? 0 : magnitude < 9 ? 1 : magnitude < 9.5 ? 2 : 3]!++;
  expect(chiSquare(bins, [0.1587, 0.3413, 0.3413, 0.1587])).toBeLessThan(16.3);
  expect(Math.max(...magnitudes)).toBeLessThanOrEqual(10 + 1e-9);
});

test('timmAugment draws weighted operations without replacement, and uniform magnitudes for a deviation above 100', () => {
  const pairs = drawn({ name: 'timmAugment', config: 'rand-t3aw-n2-p1-m5-mstd101-inc1' });
  const blurs = pairs.filter((effects) => effects.some(({ kind }) => kind === 'pillowBlur')).length;
  // 6 of 33 at first; otherwise a second draw from the rest.
  const others = [6, 6, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1];
  const share = 6 / 33 + others.reduce((sum, weight) => sum + (weight / 33) * (6 / (33 - weight)), 0);
  expect(chiSquare([blurs, pairs.length - blurs], [share, 1 - share])).toBeLessThan(10.8);
  expect(pairs.every((effects) => effects.filter(({ kind }) => kind === 'pillowBlur').length < 2)).toBe(true);
  const sigmas = pairs.flat().flatMap((effect) => (effect.kind === 'pillowBlur' ? [(effect.sigma - 0.1) / 0.95] : []));
  const bins = Array.from({ length: 10 }, (_, bin) => sigmas.filter((one) => Math.floor(one * 10) === bin).length);
  expect(chiSquare(bins, Array<number>(10).fill(0.1))).toBeLessThan(27.9);
});

test('augMix and augmix draw chains of one to three operations, with weights that add up to 1', () => {
  for (const step of [{ name: 'augMix' }, { name: 'timmAugment', config: 'augmix-m3-w3' }] as const) {
    const mixtures = drawn(step).map(([effect]) => (effect?.kind === 'mixChains' ? effect : null)!);
    const lengths = mixtures.flatMap(({ chains }) => chains.map(({ effects }) => effects.length));
    expect(lengths.every((length) => length <= 3)).toBe(true);
    const sums = mixtures.map(({ own, chains }) => own + chains.reduce((sum, { weight }) => sum + weight, 0));
    expect(Math.max(...sums.map((sum) => Math.abs(sum - 1)))).toBeLessThan(1e-9);
    // The image's own share is uniform for alpha 1.
    const shares = mixtures.map(({ own, part }) => (step.name === 'augMix' ? own : 1 - part));
    const bins = Array.from({ length: 10 }, (_, bin) => shares.filter((one) => Math.floor(one * 10) === bin).length);
    expect(chiSquare(bins, Array<number>(10).fill(0.1))).toBeLessThan(27.9);
  }
});

test('the name of a timm policy is checked, and typos get a hint', () => {
  const message = (config: string) => {
    try {
      compileTransform([{ name: 'timmAugment', config }]);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };
  expect(message('ran-m9')).toMatch('did you mean "rand"?');
  expect(message('rand-mst0.5')).toMatch('has the unknown section "mst0.5"; did you mean "mstd"?');
  expect(message('rand-w0')).toMatch('has the unknown section "w0"');
  expect(message('rand-tweight')).toMatch('did you mean "weights"?');
  expect(message('rand-m9.5')).toMatch('must be an integer from 0 to 100');
  expect(message('rand-m')).toMatch('must be an integer');
  expect(message('rand-m9-m7')).toMatch('has the section m twice');
  expect(message('rand-tweights-n16')).toMatch('draws 16 operations without replacement');
  expect(message('original-m9')).toMatch('has the unknown section "m9"');
  expect(message('augmix-n3')).toMatch('has the unknown section "n3"');
  expect(message('')).toMatch('unknown policy ""');
});
