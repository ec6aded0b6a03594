import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sortByBytes } from './byte-sort.js';
import { ShardKeys } from './shard-keys.js';

/** Few letters, so that keys share prefixes, contain each other and repeat. */
const key = fc.oneof(
  fc.array(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), { minLength: 1, maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ minLength: 1, maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);

function tableOf(keys: readonly Buffer[]): { table: ShardKeys; distinct: Buffer[] } {
  const table = new ShardKeys();
  const distinct: Buffer[] = [];
  for (const one of keys) {
    if (table.has(one)) continue;
    table.add(one);
    distinct.push(one);
  }
  return { table, distinct };
}

test('keys are sorted by their bytes, each once', () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 300, size: 'max' }), (keys) => {
      const { table, distinct } = tableOf(keys);
      const hex = [...table.sorted()].map((i) => table.bytes.toString('hex', table.start(i), table.end(i)));
      expect(hex).toEqual(distinct.sort(Buffer.compare).map((bytes) => bytes.toString('hex')));
      expect(hex.length).toBe(new Set(keys.map((bytes) => bytes.toString('hex'))).size);
    }),
    { numRuns: 60 },
  );
});

test('a table that has grown finds every key in it, and no other key', () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => Buffer.from(`key-${(i * 7919) % 20_000}`));
  const { table } = tableOf(keys);
  expect(table.count).toBe(20_000);
  expect(keys.every((one) => table.has(one))).toBe(true);
  expect(table.has(Buffer.from('key-20000'))).toBe(false);
  expect(table.has(Buffer.from('key-1999 '))).toBe(false);
});

test('the common prefix of two keys is counted in bytes', () => {
  const { table } = tableOf(['abc', 'abd', 'ab', 'x'].map((text) => Buffer.from(text)));
  expect([table.commonBytes(0, 1), table.commonBytes(0, 2), table.commonBytes(0, 3)]).toEqual([2, 2, 0]);
});

test('many strings with a long common prefix are sorted without recursion', () => {
  const strings = Array.from({ length: 3000 }, (_, i) => 'x'.repeat(500) + String((i * 1237) % 3000).padStart(4, '0'));
  const bytes = Buffer.from(strings.join(''));
  const starts = Float64Array.from({ length: strings.length + 1 }, (_, i) => i * 504);
  const order = sortByBytes(Uint32Array.from(strings.keys()), bytes, starts);
  expect([...order].map((i) => strings[i])).toEqual([...strings].sort());
});
