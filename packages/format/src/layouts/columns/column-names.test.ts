import { expect, test } from 'vitest';
import { labelValue } from './column-names.js';

test('values of other software keep what they are: NaN is missing, infinite numbers stay, large integers are text', () => {
  expect([Number.NaN, Number.NEGATIVE_INFINITY, 0.5, 7n, 2n ** 60n, 'nan'].map(labelValue)).toEqual([
    null,
    Number.NEGATIVE_INFINITY,
    0.5,
    7,
    '1152921504606846976',
    'nan',
  ]);
});
