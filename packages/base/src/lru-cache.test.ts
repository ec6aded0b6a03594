import { expect, test } from 'vitest';
import { LruCache } from './lru-cache.js';

test('the value that was not used for longest makes room, and is dropped', () => {
  const dropped: string[] = [];
  const cache = new LruCache<number, string>(2, (value) => dropped.push(value));
  cache.set(1, 'one');
  cache.set(2, 'two');
  expect(cache.get(1)).toBe('one');
  cache.set(3, 'three');
  expect(dropped).toEqual(['two']);
  expect([1, 2, 3].map((key) => cache.get(key))).toEqual(['one', undefined, 'three']);
});

test('a value that is set again under its key takes no second place', () => {
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
