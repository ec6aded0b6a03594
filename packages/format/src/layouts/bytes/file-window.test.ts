import { TruncatedShardError } from '@shardtool/base';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Source } from '../../source.js';
import { FileWindow } from './file-window.js';

const file = Buffer.from(Uint32Array.from({ length: 1 << 20 }, (_, i) => i).buffer);

// Every read takes no time, so that the choice of reads does not depend on how busy the machine is.
beforeEach(() => {
  vi.spyOn(performance, 'now').mockReturnValue(0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** The file in memory, counting its reads. */
function counted(atOnce: boolean) {
  const reads = { short: 0, large: 0 };
  const read = (offset: number, target: Uint8Array) => {
    if (target.length <= 4096) reads.short++;
    else reads.large++;
    return file.copy(target, 0, offset);
  };
  const readAt = async (offset: number, target: Uint8Array) => read(offset, target);
  const source: Source = { location: 'x', size: file.length, readAt, close: async () => {} };
  return { reads, source: atOnce ? { ...source, readNow: read } : source };
}

test('a window returns the bytes of the file at any offset', async () => {
  const places = fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(9000)), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(places, fc.boolean(), async (looks, atOnce) => {
      const window = new FileWindow(counted(atOnce).source);
      for (const [position, wanted] of looks) {
        const needed = Math.min(wanted, file.length - position);
        const seen = await window.at(position, needed);
        expect(seen.length).toBeGreaterThanOrEqual(needed);
        expect(seen.equals(file.subarray(position, position + seen.length))).toBe(true);
      }
    }),
    { numRuns: 30 },
  );
});

test('nearby accesses are served by large reads, distant ones by short reads', async () => {
  const close = counted(true);
  const near = new FileWindow(close.source);
  for (let position = 0; position < file.length; position += 100) await near.at(position, 10);
  // The last of them is the rest of the file.
  expect(close.reads.short).toBeLessThanOrEqual(1);
  const apart = counted(true);
  const jumping = new FileWindow(apart.source);
  for (let position = 20_000; position < file.length; position += 50_000) await jumping.at(position, 10);
  expect(apart.reads.short).toBeGreaterThan(apart.reads.large);
  const remote = counted(false);
  const window = new FileWindow(remote.source);
  for (let position = 0; position < file.length; position += 50_000) await window.at(position, 10);
  expect(remote.reads).toEqual({ short: 0, large: 2 });
});

test('a file that was truncated in the meantime throws an error', async () => {
  const { source } = counted(true);
  const window = new FileWindow({ ...source, size: file.length + 10_000 });
  await expect(async () => window.at(file.length - 5, 10)).rejects.toThrow(TruncatedShardError);
});
