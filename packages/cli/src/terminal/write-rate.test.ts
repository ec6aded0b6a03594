import { expect, test, vi } from 'vitest';
import { WriteRate } from './write-rate.js';

test('in the first second there is no rate and no time left', () => {
  const clock = vi.spyOn(performance, 'now');
  const rate = new WriteRate();
  const at = (milliseconds: number, bytes: number) => {
    clock.mockReturnValue(1000 + milliseconds);
    return rate.describe({ stage: 'pack', files: 1, totalFiles: 10, bytes, totalBytes: 10e6 }).parts;
  };
  expect(at(0, 1e6)).toEqual(['1 of 10 files']);
  expect(at(999, 5e6)).toEqual(['1 of 10 files']);
  expect(at(2000, 5e6)).toEqual(['1 of 10 files', '2.5 MB/s', '0:02 left']);
  clock.mockRestore();
});
