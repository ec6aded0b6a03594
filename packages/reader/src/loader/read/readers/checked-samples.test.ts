import { expect, test } from 'vitest';
import { CheckedSamples } from './checked-samples.js';

test('a sample is marked as checked after it was added, and counts once', () => {
  const samples = [3, 0, 17];
  const checked = new CheckedSamples(samples);
  const added = new Set<string>();
  for (const [shard, row] of [
    [2, 16],
    [0, 0],
    [2, 8],
    [0, 2],
    [2, 16],
    [0, 1],
    [0, 1],
  ] as const) {
    checked.add(shard, row);
    added.add(`${shard}/${row}`);
    expect(checked.count).toBe(added.size);
    for (const [k, count] of samples.entries())
      for (let i = 0; i < count; i++) expect(checked.has(k, i), `${k}/${i}`).toBe(added.has(`${k}/${i}`));
  }
});
