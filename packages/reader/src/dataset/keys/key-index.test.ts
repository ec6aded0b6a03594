import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { IndexedKeys, KeyIndex } from './key-index.js';

const root = mkdtempSync(path.join(tmpdir(), 'key-index-'));
let folders = 0;
const newFolder = () => path.join(root, String(folders++));
afterAll(() => rmSync(root, { recursive: true }));

type Shards = readonly { readonly name: string; readonly keys: readonly string[] }[];
const LIMITS = { unlistedSamples: 5, listSamples: 40, smallLists: 2 };

/** The shards in which a look-up read keys are added to `read`. */
function open(folder: string, shards: Shards, read: string[] = [], limits = LIMITS) {
  const listed = shards.map(({ name, keys }) => ({ name, samples: keys.length, keys: async () => keys }));
  const index = new KeyIndex(folder, listed, limits);
  const firstSample = [0];
  for (const { keys } of shards) firstSample.push(firstSample.at(-1)! + keys.length);
  const keysOf = async (shard: number) => {
    read.push(shards[shard]!.name);
    return shards[shard]!.keys;
  };
  return { keys: new IndexedKeys(index, { firstSample, keysOf }) };
}

/** Shards of `rows` samples each, with the numbers from `first` to `end - 1`. */
function numbered(first: number, end: number, rows = 10): Shards {
  return Array.from({ length: end - first }, (_, i) => ({
    name: `${first + i}.tar 0`,
    keys: Array.from({ length: rows }, (__, row) => `n${first + i}/${row}`),
  }));
}

async function expectFound(keys: IndexedKeys, shards: Shards, others: readonly string[] = ['none', 'n1', '']) {
  const all = shards.flatMap((shard) => shard.keys);
  for (const key of [...others, ...all]) expect([key, await keys.numberOf(key)]).toEqual([key, all.indexOf(key)]);
}

const anyShards = fc.array(
  fc.record({ keys: fc.array(fc.string({ maxLength: 2 }), { maxLength: 20 }), version: fc.nat(2) }),
  { maxLength: 12 },
);
const named = (shards: readonly { keys: readonly string[] }[]): Shards =>
  shards.map(({ keys }, i) => ({ name: `${i}.tar ${JSON.stringify(keys)}`, keys }));

test('the first sample with a key is found, and no other key, while the shards of a dataset change', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyShards, { minLength: 1, maxLength: 6 }), fc.string(), async (versions, other) => {
      const folder = newFolder();
      for (const version of versions) {
        const shards = named(version);
        const { keys } = open(folder, shards);
        await expectFound(keys, shards, [other]);
      }
    }),
  );
});

test('a look-up reads the keys of the shard that has the key, and of no shard for an unknown key', async () => {
  const shards = numbered(0, 50);
  const folder = newFolder();
  await open(folder, shards).keys.numberOf('none');
  const read: string[] = [];
  const { keys } = open(folder, shards, read);
  expect(await keys.numberOf('n31/7')).toBe(317);
  expect(await keys.numberOf('none')).toBe(-1);
  expect(read).toEqual(['31.tar 0']);
});

test('after a change, the lists of the other shards are used; new shards are read, and get a list when they are many', async () => {
  const folder = newFolder();
  const before = numbered(0, 8);
  await open(folder, before).keys.numberOf('none');
  const made = readdirSync(folder).sort();
  const few = [...before.slice(1), { name: 'new.tar 1', keys: ['new/1', 'n3/3'] }];
  const read: string[] = [];
  const grown = open(folder, few, read);
  expect(await grown.keys.numberOf('new/1')).toBe(70);
  expect(await grown.keys.numberOf('n0/3')).toBe(-1);
  expect(await grown.keys.numberOf('n3/3')).toBe(23);
  expect(read.filter((name) => name !== 'new.tar 1')).toEqual(['3.tar 0']);
  expect(readdirSync(folder).sort()).toEqual(made);
  const many = [...few, ...numbered(100, 102)];
  await expectFound(open(folder, many).keys, many);
  expect(readdirSync(folder).length).toBe(made.length + 1);
  // The earlier version still finds its own samples.
  await expectFound(open(folder, before).keys, before);
});

test('small lists of many appends are joined', async () => {
  const folder = newFolder();
  for (let end = 1; end < 30; end++) await open(folder, numbered(0, end)).keys.numberOf('none');
  const shards = numbered(0, 29);
  await expectFound(open(folder, shards).keys, shards);
  // Lists of at least 20 samples, and at most two smaller ones.
  expect(readdirSync(folder).length).toBeLessThan(290 / 20 + 2);
});

test('a list that is damaged anywhere is made again, and no sample is lost', async () => {
  const shards = numbered(0, 3);
  const folder = newFolder();
  await open(folder, shards).keys.numberOf('none');
  const [name] = readdirSync(folder) as [string];
  const file = path.join(folder, name);
  const whole = readFileSync(file);
  for (let at = 0; at < whole.length; at += 3) {
    const bytes = Buffer.from(whole);
    bytes[at]! ^= 1 << (at % 8);
    writeFileSync(file, bytes);
    const { keys } = open(folder, shards);
    await expectFound(keys, shards);
    writeFileSync(file, whole.subarray(0, at));
    const cut = open(folder, shards);
    await expectFound(cut.keys, shards);
  }
});

test('a list that is damaged each time it is written is made only once by one dataset, and no sample is lost', async () => {
  const shards = numbered(0, 3);
  const folder = newFolder();
  const { keys } = open(folder, shards);
  for (let round = 0; round < 3; round++) {
    await expectFound(keys, shards);
    const lists = readdirSync(folder);
    expect(lists.length).toBe(round === 0 ? 1 : 0);
    for (const name of lists) {
      const file = path.join(folder, name);
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.fill(0xff, bytes.length - 4 * 30));
    }
  }
});

test('a list that the disk no longer reads after it was opened does not fail a look-up', async () => {
  const shards = numbered(0, 3);
  const folder = newFolder();
  const { keys } = open(folder, shards);
  await expectFound(keys, shards);
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name);
    rmSync(file);
    // A folder can be opened, but not read.
    mkdirSync(file);
  }
  await expectFound(keys, shards);
});

test('without a folder that can be written, all keys are read', async () => {
  const shards = numbered(0, 5);
  const file = path.join(root, 'file');
  writeFileSync(file, '');
  await expectFound(open(path.join(file, 'below'), shards).keys, shards);
});

test('concurrent look-ups, and several processes in one folder, find the same samples', async () => {
  const shards = numbered(0, 30);
  const folder = newFolder();
  const all = shards.flatMap(({ keys }) => keys);
  const opened = Array.from({ length: 3 }, () => open(folder, shards).keys);
  const found = await Promise.all(all.map((key, i) => opened[i % 3]!.numberOf(key)));
  expect(found).toEqual(all.map((_, i) => i));
});
