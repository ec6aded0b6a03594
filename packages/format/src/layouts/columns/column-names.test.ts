import { expect, test } from 'vitest';
import { labelValue } from './column-names.js';

test('NaN becomes a missing value, infinite numbers are kept, and large integers become text', () => {
  expect([Number.NaN, Number.NEGATIVE_INFINITY, 0.5, 7n, 2n ** 60n, 'nan'].map(labelValue)).toEqual([
    null,
    Number.NEGATIVE_INFINITY,
    0.5,
    7,
    '1152921504606846976',
    'nan',
  ]);
});
