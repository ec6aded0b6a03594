import { expect, test } from 'vitest';
import { hasUnlabelled } from './unlabelled.js';

test.each([
  [[0, 1], [1, 1], false],
  [[0, -1], [1, 1], true],
  [[-1, 1], [0, 1], false],
  [[-1, -1], [0, 1], true],
])('for labels %j with valid rows %j, the result for a label of -1 is %s', (labels, valid, expected) => {
  const batch = { labels: Int32Array.from(labels), valid: Uint8Array.from(valid) };
  expect(hasUnlabelled({ ...batch, boxLabels: null })).toBe(expected);
  expect(hasUnlabelled({ ...batch, boxLabels: new Int32Array(0) })).toBe(false);
});
