/** A pattern with braces expands to shards in one or several folders, for every command that takes a dataset. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { beforeAll, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

const folder = emptyFolder();
const at = (...names: readonly string[]) => path.join(folder, ...names);

beforeAll(async () => {
  for (const [name, first] of [
    ['train', 1],
    ['val', 5],
  ] as const) {
    const files = [0, 1, 2, 3].map((i) => [`cat/${first + i}.jpg`, jpeg(`${first + i}`)]);
    await pack(tree(Object.fromEntries(files)), at(name), { workers: 1, maxShardSamples: 2, name });
  }
});

test('convert reads the shards that a pattern matches, in its order, from several folders', async () => {
  const output = newFolder();
  const pattern = at('{val/val,train/train}-00000{0..1}.tar');
  expect(await convert(pattern, output, { workers: 1 })).toMatchObject({ samples: 8, shards: 4 });
  const keys = (await samplesOf(output)).map(({ key }) => key);
  expect(keys.slice(0, 4).sort()).toEqual([5, 6, 7, 8].map((i) => `cat/${i}`));
  expect(keys.slice(4).sort()).toEqual([1, 2, 3, 4].map((i) => `cat/${i}`));
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
  expect((await verify(pattern, { workers: 1 })).samples).toBe(8);
  await using dataset = await openDataset(pattern);
  expect((await dataset.stats()).samples).toBe(8);
});

test('convert rejects shards with the same name, which would become one file', async () => {
  for (const name of ['a', 'b']) await pack(tree({ 'cat/1.jpg': jpeg(name) }), at(name), { workers: 1 });
  const output = newFolder();
  await expect(convert(at('{a,b}/000000.tar'), output, { workers: 1 })).rejects.toThrow(
    /a.000000\.tar and .*b.000000\.tar have the same name/,
  );
  expect(existsSync(output)).toBe(false);
});

test('a folder of the pattern cannot be the output', async () => {
  const before = readdirSync(at('train'));
  const pattern = at('{val/val,train/train}-000000.tar');
  await expect(convert(pattern, at('train'), { workers: 1, overwrite: true })).rejects.toThrow('folder of the input');
  expect(readdirSync(at('train'))).toEqual(before);
});

test('the error for a missing shard of a pattern names it', async () => {
  await expect(convert(at('train/train-00000{0..2}.tar'), newFolder(), { workers: 1 })).rejects.toThrow(
    'train-000002.tar cannot be opened: no such file or folder',
  );
});

test('shards of two formats in one pattern are rejected', async () => {
  await pack(tree({ 'cat/9.jpg': jpeg('9') }), at('m'), { workers: 1, format: 'msgpack', name: 'm' });
  const [name] = readdirSync(at('m')).filter((file) => file.endsWith('.msgpack'));
  await expect(convert(at(`{train/train-000000.tar,m/${name}}`), newFolder(), { workers: 1 })).rejects.toThrow(
    'stands for shards of two formats, tar and msgpack',
  );
});
