import fc from 'fast-check';
import { expect, test } from 'vitest';
import { archive, entry, gnuLong } from '../../../../../test/tar-craft.js';
import type { Source } from '../../source.js';
import { scanEntries } from './scan.js';
import { streamFiles } from './stream.js';
import type { TarEntry } from './walk.js';

const bytes = archive(
  entry({ name: 'a.jpg' }, 'some bytes'),
  gnuLong(`${'n'.repeat(900)}.jpg`),
  entry({ magic: 'gnu' }, Buffer.alloc(1500, 7)),
  entry({ name: 'empty.txt' }, ''),
);

const source: Source = {
  location: 'a.tar',
  size: bytes.length,
  readAt: async (offset, target) => bytes.copy(target, 0, offset),
  close: async () => undefined,
};

test('a stream gives the same files as the same archive on disk, in pieces of any size', async () => {
  const found: TarEntry[] = [];
  for await (const entries of scanEntries(source)) found.push(...entries);
  expect(found).toHaveLength(3);
  const sizes = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(sizes, async (pieces) => {
      const streamed = [];
      for await (const { pieces: taken, ...file } of streamFiles(inPieces(pieces), 'a.tar')) {
        const payload: Uint8Array[] = [];
        for await (const piece of taken) payload.push(piece);
        expect(Buffer.concat(payload).equals(bytes.subarray(file.offset, file.offset + file.bytes))).toBe(true);
        streamed.push(file);
      }
      expect(streamed).toEqual(found);
    }),
    { numRuns: 30 },
  );
});

async function* inPieces(sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const end = at + sizes[i % sizes.length]!;
    yield bytes.subarray(at, end);
    at = end;
  }
}
