import { expect, test } from 'vitest';
import { gainsOf, type Tried } from './gains.js';

const index: Tried = { remedy: { what: 'crop index', how: 'index' }, workers: 2, rate: 150 };
const oneLess: Tried = { remedy: { what: 'core', how: 'core', workers: 1 }, workers: 2, rate: 60 };
const oneMore: Tried = { remedy: { what: 'core', how: 'core', workers: 3 }, workers: 2, rate: 140 };

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
  const slower: Tried = { remedy: { what: 'decode fast', how: 'fast' }, workers: 2, rate: 90 };
  const gains = gainsOf({ here: 100, read: 1000, decoded: 100 }, [slower, index]);
  expect(gains.map(({ what, times }) => [what, times])).toEqual([
    ['crop index', 1.5],
    ['decode fast', 1],
    ['faster storage', 1],
  ]);
});
