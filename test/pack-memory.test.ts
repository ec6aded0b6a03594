import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const child = fileURLToPath(new URL('./pack-memory-child.mjs', import.meta.url));

/** Peak memory in bytes of a process that plans a pack of this many files, with this much memory for their paths. */
function peakOf(files: number, memoryBytes: number): number {
  const given = [child, String(files), String(memoryBytes)];
  return Number(execFileSync(process.execPath, given, { encoding: 'utf8', timeout: 120_000 }));
}

const [FEW, MANY] = [100_000, 400_000];

test('planning uses at most 250 bytes per additional file', () => {
  expect((peakOf(MANY, 2 ** 28) - peakOf(FEW, 2 ** 28)) / (MANY - FEW)).toBeLessThan(250);
});

test('with the plan on disk, an additional file uses at most 120 bytes', () => {
  expect((peakOf(MANY, 2 ** 20) - peakOf(FEW, 2 ** 20)) / (MANY - FEW)).toBeLessThan(120);
});
