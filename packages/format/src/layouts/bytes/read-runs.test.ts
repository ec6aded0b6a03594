import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planRuns } from './read-runs.js';

const MIB = 1 << 20;
const span = fc.record({
  offset: fc.nat({ max: 64 * MIB }),
  bytes: fc.oneof(fc.nat({ max: 100_000 }), fc.nat({ max: 8 * MIB })),
});

test('every span is in one run, runs are in ascending order, and only a single long span makes a long run', () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 60 }), (spans) => {
      const runs = planRuns(spans);
      expect(runs.flatMap((run) => run.spans)).toEqual(spans.toSorted((a, b) => a.offset - b.offset));
      for (const [i, run] of runs.entries()) {
        for (const { offset, bytes } of run.spans) {
          expect(offset >= run.offset && offset + bytes <= run.offset + run.bytes).toBe(true);
        }
        expect(run.bytes <= 4 * MIB || run.spans.length === 1).toBe(true);
        expect(i === 0 || runs[i - 1]!.offset <= run.offset).toBe(true);
      }
    }),
  );
});

test('neighbours are read together, and a wide gap is skipped', () => {
  const spans = [
    { offset: 1024, bytes: 50_000 },
    { offset: 60_000, bytes: 50_000 },
    { offset: 1_000_000, bytes: 10 },
  ];
  expect(planRuns(spans)).toEqual([
    { offset: 1024, bytes: 108_976, spans: spans.slice(0, 2) },
    { offset: 1_000_000, bytes: 10, spans: spans.slice(2) },
  ]);
});
