import { expect, test } from 'vitest';
import { coresOf, shareOfOthers, timesOf } from './other-programs.js';

const STAT = `cpu  700 0 200 900 100 0 0 100 0 0
cpu0 200 0 100 600 50 10 10 30 0 0
cpu1 500 0 100 300 50 0 0 50 77 0
intr 12345
`;

test('only the cores that the process may use count, and time that the host took away is busy', () => {
  expect(timesOf(STAT, coresOf('0'))).toEqual({ all: 10, busy: 3.5 });
  expect(timesOf(STAT, coresOf('0-1'))).toEqual({ all: 20, busy: 10 });
  expect([...coresOf('0-2,5,7-8')]).toEqual([0, 1, 2, 5, 7, 8]);
});

test('the share of other programs is the busy time without that of this process', () => {
  const before = { all: 10, busy: 4, own: 3 };
  expect(shareOfOthers(before, { all: 20, busy: 11, own: 8 })).toBe(0.2);
  // Clocks have different steps.
  expect(shareOfOthers(before, { all: 20, busy: 8.9, own: 8 })).toBe(0);
  expect(shareOfOthers(before, null)).toBeNull();
});
