import { expect, test } from 'vitest';
import { asDiskFull } from './disk-full.js';
import { DiskFullError } from './errors.js';

test('an exhausted disk quota is reported like a full disk', () => {
  // Node on Linux has no name for EDQUOT.
  const code = 'Unknown system error -122';
  const error = Object.assign(new Error(code), { errno: -122, code, syscall: 'write' });
  const full = asDiskFull(new Error('A shard cannot be written.', { cause: error }), 'out');
  expect(full).toBeInstanceOf(DiskFullError);
  expect((full as Error).message).toMatch(/^The disk of out is full: the disk quota is used up; free some space/);
});
