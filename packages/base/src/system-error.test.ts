import { expect, test } from 'vitest';
import { asFileError, reasonOf, systemCodeOf } from './system-error.js';

/** An error of Node on Linux for a code that has no name. */
function unnamed(errno: number): Error {
  const code = `Unknown system error ${errno}`;
  return Object.assign(new Error(`${code}: ${code}, write`), { errno, code, syscall: 'write', path: '/a' });
}

test.runIf(process.platform === 'linux')('a used-up quota and a stale file handle have a reason and a remedy', () => {
  expect(reasonOf(unnamed(-122))).toBe('the disk quota is used up');
  expect(systemCodeOf(unnamed(-122))).toBe('EDQUOT');
  expect((asFileError(unnamed(-122)) as Error).message).toBe(
    '/a cannot be used: the disk quota is used up; make room.',
  );
  expect((asFileError(unnamed(-116)) as Error).message).toMatch(
    /^\/a cannot be used: the network file system no longer knows it; open it again, /,
  );
});
