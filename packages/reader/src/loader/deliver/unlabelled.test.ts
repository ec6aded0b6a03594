import { expect, test } from 'vitest';
import { hasUnlabelled } from './unlabelled.js';

test.each([
  [[0, 1], [1, 1], false],
  [[0, -1], [1, 1], true],
  [[-1, 1], [0, 1], false],
  [[-1, -1], [0, 1], true],
])('of labels %j, of which %j count, one is -1: %s', (labels, valid, expected) => {
  expect(hasUnlabelled({ labels: Int32Array.from(labels), valid: Uint8Array.from(valid) })).toBe(expected);
});
