import { expect, test } from 'vitest';
import { newPositions, SortValues } from './new-order.js';

test('infinite values are sorted first and last, and missing values come after them', () => {
  const values = new SortValues('score');
  values.add([null, Number.POSITIVE_INFINITY, 3, Number.NEGATIVE_INFINITY, Number.MAX_VALUE, null, Number.NaN]);
  values.add([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1]);
  const positions = newPositions(10, { seed: undefined, sortBy: 'score' }, values);
  const order = [...positions.keys()].sort((a, b) => positions[a]! - positions[b]!);
  expect(order).toEqual([3, 8, 9, 2, 4, 1, 7, 0, 5, 6]);
});
