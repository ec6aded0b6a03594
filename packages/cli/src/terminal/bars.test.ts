import { expect, test } from 'vitest';
import { barLines } from './bars.js';

test('labels, texts and bars are aligned in columns, and the smallest value still has a bar', () => {
  expect(
    barLines([
      { label: 'cat', value: 1000, text: '1,000' },
      { label: 'dog', value: 500, text: '500' },
      { label: 'axolotl', value: 1, text: '1' },
      { label: 'none', value: 0, text: '0' },
    ]),
  ).toEqual([
    `  cat      1,000  ${'#'.repeat(40)}`,
    `  dog        500  ${'#'.repeat(20)}`,
    '  axolotl      1  #',
    '  none         0',
  ]);
});
