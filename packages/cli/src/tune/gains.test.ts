import { expect, test } from 'vitest';
import { gainsOf, type Tried } from './gains.js';

const index: Tried = { remedy: { what: 'crop index', how: 'index' }, workers: 2, rate: 150 };
const oneLess: Tried = { remedy: { what: 'core', how: 'core', workers: 1 }, workers: 2, rate: 60 };
const oneMore: Tried = { remedy: { what: 'core', how: 'core', workers: 3 }, workers: 2, rate: 140 };

const timesOf = (rates: Parameters<typeof gainsOf>[0], ...tried: Tried[]) =>
  Object.fromEntries(gainsOf(rates, tried).map(({ what, times }) => [what, Number(times.toFixed(3))]));

test('where decoding limits, a remedy brings what it brought to the sample, and faster storage brings nothing', () => {
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, index)).toEqual({ 'crop index': 1.5, 'faster storage': 1 });
});

test('where reading limits, faster decoding brings nothing, and faster storage brings the rate from memory', () => {
  expect(timesOf({ here: 40, read: 40, decoded: 100 }, index)).toEqual({ 'crop index': 1, 'faster storage': 2.5 });
});

test('where images are read faster than they are decoded, faster storage brings nothing, also to a small dataset whose epochs end often', () => {
  expect(timesOf({ here: 60, read: 5000, decoded: 100 })).toEqual({ 'faster storage': 1 });
});

test('a remedy brings no more than storage delivers', () => {
  expect(timesOf({ here: 100, read: 120, decoded: 100 }, index)).toEqual({ 'crop index': 1.2, 'faster storage': 1 });
});

test('one more core brings what it brought where there is one, else as much as the last one did', () => {
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, oneMore).core).toBe(1.4);
  expect(timesOf({ here: 100, read: 1000, decoded: 100 }, oneLess).core).toBe(1.4);
});

test('the largest gain comes first, and nothing makes a loader slower', () => {
  const slower: Tried = { remedy: { what: 'decode fast', how: 'fast' }, workers: 2, rate: 90 };
  const gains = gainsOf({ here: 100, read: 1000, decoded: 100 }, [slower, index]);
  expect(gains.map(({ what, times }) => [what, times])).toEqual([
    ['crop index', 1.5],
    ['decode fast', 1],
    ['faster storage', 1],
  ]);
});
