import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const child = fileURLToPath(new URL('./pack-memory-child.mjs', import.meta.url));

/** The largest size in bytes of a process that plans a pack of so many files. */
function peakOf(files: number): number {
  return Number(execFileSync(process.execPath, [child, String(files)], { encoding: 'utf8', timeout: 120_000 }));
}

test('planning takes at most 250 bytes for each further file', () => {
  const [few, many] = [300_000, 1_200_000];
  expect((peakOf(many) - peakOf(few)) / (many - few)).toBeLessThan(250);
});
