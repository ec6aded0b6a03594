import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Arena } from './arena.js';

test('allocations never overlap, and all freed memory can be allocated again as one piece', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ bytes: fc.integer({ min: 0, max: 5000 }), free: fc.nat() }), { maxLength: 200 }),
      (steps) => {
        const arena = new Arena(64 * 1024);
        const live: { offset: number; bytes: number }[] = [];
        for (const step of steps) {
          const offset = arena.allocate(step.bytes);
          if (offset >= 0) {
            for (const other of live) {
              expect(offset + step.bytes <= other.offset || other.offset + other.bytes <= offset).toBe(true);
            }
            expect(offset + step.bytes).toBeLessThanOrEqual(arena.capacity);
            live.push({ offset, bytes: step.bytes });
          }
          if (step.free % 3 === 0 && live.length > 0) {
            const [gone] = live.splice(step.free % live.length, 1);
            arena.free(gone!.offset, gone!.bytes);
          }
        }
        for (const piece of live) arena.free(piece.offset, piece.bytes);
        expect(arena.used).toBe(0);
        expect(arena.allocate(arena.capacity)).toBe(0);
      },
    ),
  );
});

test('the lowest gap is used first, so that unused memory stays untouched', () => {
  const arena = new Arena(1024);
  const first = arena.allocate(100);
  arena.allocate(100);
  arena.free(first, 100);
  expect(arena.allocate(128)).toBe(first);
});

test('a full arena returns -1, and can allocate again after something was freed', () => {
  const arena = new Arena(256);
  const place = arena.allocate(256);
  expect(arena.allocate(1)).toBe(-1);
  arena.free(place, 256);
  expect(arena.allocate(1)).toBe(0);
});
