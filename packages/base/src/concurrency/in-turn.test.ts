import { expect, test } from 'vitest';
import { inTurn } from './in-turn.js';

test('results are returned in the order of the items, and at most the given number of items run ahead', async () => {
  const begun: number[] = [];
  const results = inTurn([0, 1, 2, 3], 2, async (item) => {
    begun.push(item);
    return item * 10;
  });
  expect(await results.next()).toEqual({ value: 0, done: false });
  expect(begun).toEqual([0, 1]);
  expect(await results.next()).toEqual({ value: 10, done: false });
  expect(begun).toEqual([0, 1, 2]);
  const rest: number[] = [];
  for await (const result of results) rest.push(result);
  expect(rest).toEqual([20, 30]);
});

test('an error is thrown when its item is due, and later errors are ignored', async () => {
  const seen: number[] = [];
  const loop = async () => {
    for await (const item of inTurn([0, 1, 2], 3, async (item) =>
      item === 0 ? 0 : Promise.reject(new Error(`no ${item}`)),
    )) {
      seen.push(item);
    }
  };
  await expect(loop()).rejects.toThrow('no 1');
  expect(seen).toEqual([0]);
});
