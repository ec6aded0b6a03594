import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inLanes } from './in-lanes.js';

test('items start in order, at most as many at a time as there are lanes, and results keep the order of the items', async () => {
  const begun: string[] = [];
  let underWay = 0;
  let most = 0;
  const results = await inLanes(['a', 'b', 'c', 'd', 'e'], 2, async (item, index) => {
    begun.push(`${index}${item}`);
    most = Math.max(most, ++underWay);
    await setImmediate();
    underWay--;
    return item.toUpperCase();
  });
  expect(results).toEqual(['A', 'B', 'C', 'D', 'E']);
  expect(begun).toEqual(['0a', '1b', '2c', '3d', '4e']);
  expect(most).toBe(2);
});

test('if an item fails, no further item starts, and the running ones end before the error is thrown', async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const all = inLanes([0, 1, 2, 3, 4], 3, async (item) => {
    begun.push(item);
    if (item === 1) throw new Error('one of them');
    await setImmediate();
    ended.push(item);
  });
  await expect(all).rejects.toThrow('one of them');
  expect(begun).toEqual([0, 1, 2]);
  expect(ended).toEqual([0, 2]);
});

test('the error of the first failing item is thrown, even if a later item fails earlier', async () => {
  const all = inLanes([0, 1, 2], 3, async (item) => {
    if (item === 1) await setImmediate();
    if (item > 0) throw new Error(`item ${item}`);
  });
  await expect(all).rejects.toThrow('item 1');
});

test('an empty list returns immediately', async () => {
  expect(await inLanes([], 4, () => Promise.reject(new Error('never')))).toEqual([]);
});
