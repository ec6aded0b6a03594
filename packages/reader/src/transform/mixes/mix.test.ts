import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FIRST_NUMBER, SampleRandom } from '../random.js';
import { type DrawnLabelMix, drawMix, drawnParts, drawTimmMix, otherRow } from './mix.js';
import { checkMix, imagesPerRow, type MixInput, spareImages, type TimmMix } from './mix-option.js';
import { softLabels } from './soft-labels.js';

const size = { width: 20, height: 10 };
const random = new SampleRandom(1);
const numbersOf = (number: number) => random.start(0, number, 0, FIRST_NUMBER.mix);

test.each([0.2, 1, 3])('the weights of mixup have the mean and the variance of Beta(%d, %d)', (alpha) => {
  const mixes = checkMix({ name: 'mixup', alpha });
  const weights = Array.from({ length: 4000 }, (_, i) => drawRows(mixes, size, 1, numbersOf(i))[0]!.weight);
  const mean = weights.reduce((sum, weight) => sum + weight) / weights.length;
  const variance = weights.reduce((sum, weight) => sum + (weight - mean) ** 2, 0) / weights.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.02);
  expect(Math.abs(variance - 1 / (4 * (2 * alpha + 1)))).toBeLessThan(0.01);
});

test.each([0.1, 0.009, 0.002, 1e-5, 1e-300])('mixup with an alpha of %d keeps almost all of one image', (alpha) => {
  const mixes = checkMix({ name: 'mixup', alpha });
  const weights = Array.from({ length: 4000 }, (_, i) => drawRows(mixes, size, 1, numbersOf(i))[0]!.weight);
  const mean = weights.reduce((sum, weight) => sum + weight) / weights.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.03);
  // About 2 alpha ln 9 / 2 of Beta(alpha, alpha) is between 0.1 and 0.9.
  const between = weights.filter((weight) => weight > 0.1 && weight < 0.9).length / weights.length;
  expect(Math.abs(between - alpha * Math.log(9))).toBeLessThan(0.02 + alpha / 5);
});

/** The rows of a mix with one other row. */
const drawRows = (...given: Parameters<typeof drawMix>) => (drawMix(...given) as DrawnLabelMix).rows;

test('the rectangle of cutmix is inside the image, and the weight is the remaining share of the area', () => {
  const mixes = checkMix([{ name: 'cutmix' }]);
  for (let i = 0; i < 500; i++) {
    const { rect, weight } = drawRows(mixes, size, 1, numbersOf(i))[0]!;
    const { x, y, width, height } = rect!;
    expect(Math.min(x, y, width, height)).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(20);
    expect(y + height).toBeLessThanOrEqual(10);
    expect(weight).toBeCloseTo(1 - (width * height) / 200, 12);
  }
});

test('each batch uses one of several mixes, and none without mixes', () => {
  const mixes = checkMix([{ name: 'mixup' }, { name: 'cutmix' }]);
  const names = Array.from({ length: 200 }, (_, i) => drawRows(mixes, size, 1, numbersOf(i))[0]!.name);
  expect(names.filter((name) => name === 'mixup').length).toBeGreaterThan(60);
  expect(names.filter((name) => name === 'cutmix').length).toBeGreaterThan(60);
  expect(drawMix(checkMix(undefined), size, 1, numbersOf(0))).toBeNull();
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

test('the mixes of a sequence draw their own random numbers, which the mixes after them do not change', () => {
  const drawn = (...mixes: object[]) =>
    drawnParts(drawMix(checkMix({ name: 'sequence', mixes } as MixInput), size, 8, numbersOf(5)));
  const [mosaic, paste, mixup] = drawn({ name: 'mosaic' }, { name: 'copyPaste' }, { name: 'mixup' });
  expect([mosaic!.kind, paste!.kind, mixup!.kind]).toEqual(['mosaic', 'paste', 'labels']);
  expect(drawn({ name: 'mosaic' })).toEqual([mosaic]);
  const [first, second] = drawn({ name: 'mosaic' }, { name: 'mosaic' });
  expect(first).toEqual(mosaic);
  expect(second).not.toEqual(mosaic);
});

test('a row of a sequence has room for the objects of all images that may be in it', () => {
  const mixes = checkMix([{ name: 'sequence', mixes: [{ name: 'mosaic' }, { name: 'mixup' }] }, { name: 'mosaic' }]);
  expect(imagesPerRow(mixes)).toBe(8);
  expect(spareImages(mixes)).toBe(3);
});

interface TimmCase {
  readonly options: Readonly<Record<string, unknown>>;
  readonly draws: readonly number[];
  /** For each row, the share of its pixels that is from the other row. */
  readonly shares: readonly number[];
  readonly softLabels: readonly number[];
}

const cases: TimmCase[] = JSON.parse(
  readFileSync(new URL('../../../../../test/fixtures/transforms/mix.json', import.meta.url), 'utf8'),
);
const LABELS = Int32Array.of(3, 0, 4, 1, 2, 2);

test('timmMixup with the random numbers of timm mixes the same rows, with the same soft labels', () => {
  for (const { options, draws, shares, softLabels: expected } of cases) {
    const [mix] = checkMix({ name: 'timm_mixup', num_classes: 5, ...options } as unknown as MixInput);
    let at = 0;
    const rows = drawTimmMix(mix as TimmMix, size20x12, 6, { next: () => draws[at++]! });
    const moved = rows.map(({ rect, weight }) => (rect === null ? 1 - weight : (rect.width * rect.height) / 240));
    for (const [row, share] of moved.entries()) expect(share).toBeCloseTo(shares[row]!, 4);
    const otherLabels = LABELS.map((_, row) => LABELS[otherRow('mirrored', row, 6)]!);
    const weights = Float64Array.from(rows, ({ weight }) => weight);
    const given = { labels: LABELS, otherLabels, weights, valid: new Uint8Array(6).fill(1) };
    const soft = softLabels(given, { numClasses: 5, labelSmoothing: (mix as TimmMix).labelSmoothing });
    for (const [i, value] of soft.entries()) expect(value).toBeCloseTo(expected[i]!, 4);
  }
});

const size20x12 = { width: 20, height: 12 };

test('timmMixup draws a mix for each row or each pair of rows, and pairs are equal', () => {
  const drawn = (mode: 'pair' | 'elem', rows: number) => {
    const mixes = checkMix({ name: 'timmMixup', mixupAlpha: 0.8, cutmixAlpha: 1, mode });
    return drawRows(mixes, size20x12, rows, numbersOf(3));
  };
  const each = drawn('elem', 2000);
  expect(new Set(each.map(({ weight }) => weight)).size).toBeGreaterThan(900);
  const cuts = each.filter(({ name }) => name === 'cutmix').length;
  // 99.9 % of all chi-squares with one degree of freedom are below 10.8.
  expect((cuts - 1000) ** 2 / 500).toBeLessThan(10.8);
  const pairs = drawn('pair', 7);
  for (let row = 0; row < 3; row++) expect(pairs[6 - row]).toEqual(pairs[row]);
  expect(pairs[3]!.weight).toBe(1);
});

test('soft labels need a class for every row that counts', () => {
  const given = { otherLabels: Int32Array.of(1, 0), weights: Float64Array.of(0.5, 0.5), valid: Uint8Array.of(1, 1) };
  const soft = (labels: Int32Array, valid = given.valid) =>
    softLabels({ ...given, labels, valid }, { numClasses: 2, labelSmoothing: 0 });
  expect([...soft(Int32Array.of(0, 1))]).toEqual([0.5, 0.5, 0.5, 0.5]);
  expect(() => soft(Int32Array.of(0, -1))).toThrow(/A sample without a class has no soft label/);
  expect(() => soft(Int32Array.of(0, 2))).toThrow(/The label 2 is too large for numClasses 2/);
  expect([...soft(Int32Array.of(0, -1), Uint8Array.of(1, 0))]).toEqual([0.5, 0.5, 0.5, 0]);
});

test.each<[object | object[], RegExp]>([
  [{ name: 'timmMixp' }, /did you mean "timmMixup"/],
  [{ name: 'timmMixup', mixupAlpha: 0 }, /mixupAlpha is 0, and so is cutmixAlpha/],
  [{ name: 'timmMixup', cutmixMinmax: [0.8, 0.2] }, /cutmixMinmax must have the smaller value first/],
  [{ name: 'timmMixup', mode: 'each' }, /mode/],
  [[{ name: 'mixup', numClasses: 2 }, { name: 'cutmix' }], /different numClasses/],
  [{ name: 'sequence', mixes: [] }, /mixes /],
  [{ name: 'sequence', mixes: [{ name: 'sequence', mixes: [{ name: 'mixup' }] }] }, /cannot be sequences/],
  [{ name: 'sequence', mixes: [{ name: 'timm_mixup', num_classes: 5 }] }, /numClasses is not allowed in a sequence/],
  [{ name: 'sequence', mixes: [{ name: 'mosiac' }] }, /did you mean "mosaic"/],
  [{ name: 'sequense', mixes: [{ name: 'mosaic' }] }, /did you mean "sequence"/],
])('the mix %j is rejected with a clear message', (mix, message) => {
  expect(() => checkMix(mix as MixInput)).toThrow(message);
});
