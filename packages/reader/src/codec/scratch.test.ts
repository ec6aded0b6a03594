import { expect, test } from 'vitest';
import { Scratch } from './scratch.js';

const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });

test('addresses have the requested alignment, and allocations do not overlap', () => {
  const scratch = new Scratch(memory, { offset: 128, bytes: 1000 });
  const first = scratch.allocate(10, 32, 16);
  const second = scratch.allocate(10, 32, 16);
  expect([first % 32, second % 32]).toEqual([16, 16]);
  expect(first).toBeGreaterThanOrEqual(128);
  expect(second).toBeGreaterThanOrEqual(first + 10);
});

test('running out of memory is an error that names the remedy, and a reset frees all memory', () => {
  const scratch = new Scratch(memory, { offset: 64, bytes: 1000 });
  expect(scratch.allocate(1000)).toBe(64);
  expect(scratch.available).toBe(0);
  expect(() => scratch.allocate(1)).toThrow(/fewer workers/);
  scratch.reset();
  expect(scratch.allocate(1000)).toBe(64);
});
