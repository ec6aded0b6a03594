import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortedFiles } from './sorted-files.js';

async function* inTurn<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

test('files in any order are sorted by code point, and the newest of equal names is kept', async () => {
  const file = fc.record({
    name: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', '/', 'ä', '\u{1F600}', '\uFFEE') }),
    size: fc.nat(),
    modifiedMs: fc.nat({ max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(file, { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), async (files, atOnce) => {
      const newest = new Map<string, { size: number; modifiedMs: number }>();
      for (const { name, size, modifiedMs } of files) {
        const before = newest.get(name);
        if (before === undefined || modifiedMs > before.modifiedMs) newest.set(name, { size, modifiedMs });
      }
      const names = [...newest.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const sorted = await sortedFiles(inTurn(files), { memoryBytes: 64, folder: tmpdir() }, atOnce);
      try {
        const reader = sorted.reader();
        const found = Array.from({ length: sorted.count }, (_, at) => ({
          name: reader.path(at),
          ...{ size: reader.bytes(at), modifiedMs: reader.mtimeMs(at) },
        }));
        expect(found).toEqual(names.map((name) => ({ name, ...newest.get(name) })));
      } finally {
        sorted.close();
      }
    }),
  );
});
