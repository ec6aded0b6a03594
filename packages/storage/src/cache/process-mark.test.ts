import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isGone, ownMark } from './process-mark.js';

const [pid, born, place] = ownMark().split('-') as [string, string, string];

test('this process lives, and one with a number that nobody has does not', () => {
  expect(isGone(ownMark(), 0)).toBe(false);
  expect(isGone(`${2 ** 30}-${born}-${place}`, 0)).toBe(true);
});

test.runIf(existsSync('/proc/self/stat'))('a process whose number was given to another one is gone', () => {
  expect(isGone(`${pid}-${Number(born) - 1}-${place}`, 0)).toBe(true);
  // The first process of the machine is somebody else's, and runs.
  expect(isGone(`1-${born}-${place}`, 0)).toBe(true);
});

test('a process of another machine or container counts until its mark is old', () => {
  const elsewhere = `${pid}-${born}-${'0'.repeat(12)}`;
  expect([isGone(elsewhere, 1000), isGone(elsewhere, 11 * 60_000)]).toEqual([false, true]);
});

test("what is no mark is nobody's", () => {
  for (const text of ['', 'x', `${pid}`, `${pid}-${born}`, `${pid}-20000`]) expect(isGone(text, 0)).toBe(true);
});

test('a process that has ended is gone', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const mark = `${child.pid}-${born}-${place}`;
  await ended;
  expect(isGone(mark, 0)).toBe(true);
});
