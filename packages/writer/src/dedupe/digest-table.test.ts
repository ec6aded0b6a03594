import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { DigestTable, type Duplicate } from './digest-table.js';

const folder = mkdtempSync(path.join(tmpdir(), 'digests-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the digests of some contents; null is a file that cannot be read. */
function digestsOf(contents: readonly (number | null)[]): Uint8Array {
  return Buffer.concat(
    contents.map((content) =>
      content === null ? Buffer.alloc(32) : createHash('sha256').update(`${content}`).digest(),
    ),
  );
}

const image = (number: number) => ({ source: `${number}/ä.jpg`, cls: number, shard: '000000.tar' });

test('equal files refer to the first of them, or to an image of the dataset, in any order of arrival', async () => {
  const contents = fc.array(fc.option(fc.nat(30)), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(contents, contents, fc.integer(), async (files, packed, seed) => {
      const table = await DigestTable.create(path.join(folder, 'table'));
      const numbers = Uint32Array.from(files.keys()).sort((a, b) => ((a ^ seed) % 7) - ((b ^ seed) % 7) || b - a);
      const digests = digestsOf(Array.from(numbers, (number) => files[number]!));
      table.add({ numbers, digests, crc32: numbers });
      table.addPacked(
        digestsOf(packed),
        packed.map((_, number) => image(number)),
      );
      const expected: Duplicate[] = files.flatMap((content, file): Duplicate[] => {
        if (content === null) return [];
        const inDataset = packed.indexOf(content);
        if (inDataset >= 0) return [{ file, standsFor: image(inDataset) }];
        const first = files.indexOf(content);
        return first < file ? [{ file, standsFor: first }] : [];
      });
      expect([...table.duplicates()]).toEqual(expected);
      await table.close();
    }),
  );
  expect(existsSync(path.join(folder, 'table'))).toBe(false);
});

test('many more files than fit in the memory buffer are returned, too', async () => {
  const count = 100_000;
  const table = await DigestTable.create(path.join(folder, 'large'));
  // Files i and i + 50,000 are equal.
  for (let from = 0; from < count; from += 10_000) {
    const numbers = Uint32Array.from({ length: 10_000 }, (_, i) => from + i);
    table.add({ numbers, digests: digestsOf(Array.from(numbers, (number) => number % 50_000)), crc32: numbers });
  }
  let next = 50_000;
  for (const { file, standsFor } of table.duplicates()) {
    if (file !== next || standsFor !== next - 50_000) expect({ file, standsFor }).toEqual({ file: next });
    next++;
  }
  expect(next).toBe(count);
  await table.close();
});

test('a length and a crc32 match only together', async () => {
  const table = await DigestTable.create(path.join(folder, 'sums'));
  const numbers = Uint32Array.of(4, 7);
  table.addSums({ numbers, digests: new Uint8Array(64), crc32: Uint32Array.of(1, 2) }, (number) => number * 10);
  expect([table.hasSum(40, 1), table.hasSum(70, 2), table.hasSum(40, 2), table.hasSum(41, 1)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  await table.close();
});
