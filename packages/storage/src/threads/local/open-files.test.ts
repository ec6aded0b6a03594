import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenFiles } from './open-files.js';

/** Opens files like a system: each gets the lowest free number. */
function files(most: () => number) {
  const open: (string | null)[] = [];
  const opens: string[] = [];
  const table = new OpenFiles({
    most,
    async open(path) {
      await turn();
      opens.push(path);
      if (path === 'missing') throw new Error('no');
      const free = open.indexOf(null);
      const number = free < 0 ? open.length : free;
      open[number] = path;
      return number;
    },
    async close(number) {
      await turn();
      open[number] = null;
    },
  });
  return { table, open, opens };
}

test('a file is opened once for concurrent readers, and stays open while it is among the most recently used', async () => {
  const { table, open, opens } = files(() => 2);
  const none = async (): Promise<void> => {};
  await Promise.all([table.use('a', none), table.use('a', none), table.use('b', none)]);
  await table.use('a', none);
  await table.use('c', none);
  await table.use('a', none);
  expect(opens).toEqual(['a', 'b', 'c']);
  await table.use('b', none);
  expect(opens).toEqual(['a', 'b', 'c', 'b']);
  await table.close();
  expect(open.filter((path) => path !== null)).toEqual([]);
});

test('lowering the limit closes the files that were unused for longest', async () => {
  let most = 3;
  const { table, open } = files(() => most);
  for (const path of ['a', 'b', 'c']) await table.use(path, async () => {});
  most = 1;
  table.closeOldest();
  await turn();
  await turn();
  expect(open).toEqual([null, null, 'c']);
});

test('a file that could not be opened is tried again', async () => {
  const { table, opens } = files(() => 2);
  await expect(table.use('missing', async () => {})).rejects.toThrow('no');
  await expect(table.use('missing', async () => {})).rejects.toThrow('no');
  expect(opens).toHaveLength(2);
});

test('a number refers to the same file throughout its use, however few files may stay open', async () => {
  const uses = fc.array(fc.record({ path: fc.constantFrom(...'abcdef'), begin: fc.nat(6), turns: fc.nat(4) }));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), uses, async (most, wanted) => {
      const { table, open } = files(() => most);
      const seen = await Promise.all(
        wanted.map(async ({ path, begin, turns }) => {
          for (let k = 0; k < begin; k++) await turn();
          return table.use(path, async (number) => {
            const first = open[number];
            for (let k = 0; k < turns; k++) await turn();
            return [first, open[number]];
          });
        }),
      );
      expect(seen).toEqual(wanted.map(({ path }) => [path, path]));
      await table.close();
      expect(open.every((path) => path === null)).toBe(true);
    }),
  );
});
