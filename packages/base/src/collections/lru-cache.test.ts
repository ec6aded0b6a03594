import { expect, test } from 'vitest';
import { LruCache } from './lru-cache.js';

test('the least recently used value is evicted and dropped', () => {
  const dropped: string[] = [];
  const cache = new LruCache<number, string>(2, (value) => dropped.push(value));
  cache.set(1, 'one');
  cache.set(2, 'two');
  expect(cache.get(1)).toBe('one');
  cache.set(3, 'three');
  expect(dropped).toEqual(['two']);
  expect([1, 2, 3].map((key) => cache.get(key))).toEqual(['one', undefined, 'three']);
});

test('setting a key again replaces its value and uses no additional space', () => {
  const dropped: string[] = [];
  const cache = new LruCache<number, string>(2, (value) => dropped.push(value));
  cache.set(1, 'one');
  cache.set(2, 'two');
  cache.set(1, 'one again');
  expect(dropped).toEqual([]);
  cache.delete(2);
  cache.set(3, 'three');
  expect([dropped, cache.get(1), cache.has(2)]).toEqual([[], 'one again', false]);
});

test('with sizes, the most recently used values that fit are kept, and always the last one', () => {
  const dropped: string[] = [];
  const cache = new LruCache<number, string>(
    10,
    (value) => dropped.push(value),
    ({ length }) => length,
  );
  cache.set(1, 'four');
  cache.set(2, 'four');
  cache.set(3, 'ab');
  expect(dropped).toEqual([]);
  cache.get(1);
  cache.set(4, 'x');
  expect(dropped).toEqual(['four']);
  expect([1, 2, 3, 4].filter((key) => cache.has(key))).toEqual([1, 3, 4]);
  cache.set(1, 'one');
  cache.delete(3);
  cache.set(5, 'sixsix');
  expect(dropped).toEqual(['four']);
  cache.set(6, 'longer than all');
  expect([1, 4, 5, 6].filter((key) => cache.has(key))).toEqual([6]);
  cache.set(7, '');
  expect([cache.has(6), cache.has(7)]).toEqual([false, true]);
  cache.clear();
  cache.set(8, 'ten chars.');
  expect(cache.has(8)).toBe(true);
});
