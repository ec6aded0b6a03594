import { expect, test } from 'vitest';
import { gainsOf, type Tried } from './gains.js';

const index: Tried = { remedy: { what: 'crop index', how: 'index' }, workers: 2, ratios: [1.5], size: 1 };
const oneLess: Tried = { remedy: { what: 'core', how: 'core', workers: 1 }, workers: 2, ratios: [0.6], size: 1 };
const oneMore: Tried = { remedy: { what: 'core', how: 'core', workers: 3 }, workers: 2, ratios: [1.4], size: 1 };

const timesOf = (rates: Parameters<typeof gainsOf>[0], ...tried: Tried[]) =>
  Object.fromEntries(gainsOf(rates, tried).map(({ what, times }) => [what, Number(times.toFixed(3))]));

test('if decoding is the limit, a remedy has the gain that it had on the sample, and faster storage has none', () => {
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, index)).toEqual({ 'crop index': 1.5, 'faster storage': 1 });
});

test('if reading is the limit, faster decoding has no gain, and faster storage reaches the rate from memory', () => {
  expect(timesOf({ here: 40, read: 40, decoded: 100 }, index)).toEqual({ 'crop index': 1, 'faster storage': 2.5 });
});

test('if images are read faster than they are decoded, faster storage has no gain, even for a small dataset with short epochs', () => {
  expect(timesOf({ here: 60, read: 5000, decoded: 100 })).toEqual({ 'faster storage': 1 });
});

test('the gain of a remedy is limited by the rate of the storage', () => {
  expect(timesOf({ here: 100, read: 120, decoded: 100 }, index)).toEqual({ 'crop index': 1.2, 'faster storage': 1 });
});

test('the gain of one more core is measured if there is one, and otherwise equals that of the last core', () => {
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, oneMore).core).toBe(1.4);
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, oneLess).core).toBe(1.4);
});

test('gains are sorted, the largest first, and no gain is below 1', () => {
  const slower: Tried = { remedy: { what: 'decode fast', how: 'fast' }, workers: 2, ratios: [0.9], size: 1 };
  const gains = gainsOf({ here: 100, read: 1000, decoded: 100 }, [slower, index]);
  expect(gains.map(({ what, times }) => [what, times])).toEqual([
    ['crop index', 1.5],
    ['decode fast', 1],
    ['faster storage', 1],
  ]);
});

test('the gain is the median of the turns, with the smallest and the largest', () => {
  const turns: Tried = { ...index, ratios: [1.9, 1.5, 1.6, 0.8, 1.7] };
  expect(gainsOf({ here: 100, read: 1000, decoded: 100 }, [turns])[0]).toMatchObject({
    times: 1.6,
    least: 1,
    most: 1.9,
  });
});

test('a machine that became faster or slower between two measurements changes no gain, if decoding is the limit', () => {
  for (const here of [60, 100, 140]) expect(timesOf({ here, read: 1000, decoded: 100 }, index)['crop index']).toBe(1.5);
});

test('a smaller copy is also read faster', () => {
  const resized: Tried = { remedy: { what: 'resized copy', how: 'resize' }, workers: 2, ratios: [4], size: 0.5 };
  expect(timesOf({ here: 40, read: 40, decoded: 100 }, resized)).toEqual({ 'resized copy': 2, 'faster storage': 2.5 });
  expect(timesOf({ here: 40, read: 40, decoded: 100 }, { ...resized, size: 0.05 })['resized copy']).toBe(10);
});
