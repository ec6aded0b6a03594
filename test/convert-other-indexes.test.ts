import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { daliIndex, readManifest, readShardIndex } from '@shardtool/format';
import { convert, indexShards, pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { filesIn, JPEG, newFolder, tree } from './pack-workbench.js';

/** Checks the indexes for other loaders against the shards next to them. */
async function expectIndexes(folder: string, tars: readonly string[]): Promise<void> {
  const { shardlist } = JSON.parse(readFileSync(path.join(folder, 'shardindex.json'), 'utf8'));
  expect(shardlist.map(({ url }: { url: string }) => url)).toEqual(tars);
  for (const [i, tar] of tars.entries()) {
    const bytes = readFileSync(path.join(folder, tar));
    const index = await readShardIndex(path.join(folder, tar.replace('.tar', '.parquet')));
    const md5sum = createHash('md5').update(bytes).digest('hex');
    expect(shardlist[i]).toEqual({ url: tar, md5sum, nsamples: index.samples, filesize: bytes.length });
    expect(readFileSync(path.join(folder, tar.replace('.tar', '.idx')), 'utf8')).toBe(daliIndex(index, tar));
  }
}

test('pack, convert and index write the same indexes for wids and DALI', async () => {
  const [packed, msgpack, converted] = [newFolder(), newFolder(), newFolder()];
  await pack('examples/photos', packed, { workers: 1, maxShardSamples: 20, index: ['wids', 'dali'] });
  const tars = ['000000.tar', '000001.tar', '000002.tar'];
  await expectIndexes(packed, tars);
  await convert(packed, msgpack, { workers: 1, format: 'msgpack' });
  await convert(msgpack, converted, { workers: 1, index: ['wids', 'dali'] });
  await expectIndexes(converted, tars);
  const foreign = emptyFolder();
  for (const tar of tars) copyFileSync(path.join(packed, tar), path.join(foreign, tar));
  await indexShards([foreign], { index: ['wids', 'dali'] });
  await expectIndexes(foreign, tars);
  for (const file of [...tars.map((tar) => tar.replace('.tar', '.idx')), 'shardindex.json']) {
    const wanted = readFileSync(path.join(packed, file), 'utf8');
    expect(readFileSync(path.join(converted, file), 'utf8')).toBe(wanted);
    expect(readFileSync(path.join(foreign, file), 'utf8')).toBe(wanted);
  }
});

test('indexes for other loaders are replaced together with shards, and updated by an append', async () => {
  const folder = newFolder();
  await pack(tree({ 'a/1.jpg': JPEG, 'b/1.jpg': JPEG }), folder, { workers: 1, maxShardSamples: 1 });
  await indexShards([folder], { index: ['wids', 'dali'] });
  await pack(tree({ 'c/1.jpg': JPEG }), folder, { workers: 1, append: true });
  await expectIndexes(folder, ['000000.tar', '000001.tar', '000002.tar']);
  await pack(tree({ 'a/1.jpg': JPEG }), folder, { workers: 1, format: 'msgpack', overwrite: true });
  expect(filesIn(folder)).toEqual(['000000.msgpack', '000000.parquet', 'dataset.json', 'pack.json']);
});

test('a name with white space cannot be in an index for DALI, so nothing is committed', async () => {
  const [spaced, output] = [newFolder(), newFolder()];
  const source = tree({ 'a cat/1.jpg': JPEG });
  await expect(pack(source, output, { workers: 1, index: ['dali'] })).rejects.toThrow(
    '000000.tar: the name "a cat/1.cls" contains white space',
  );
  expect(filesIn(output)).toEqual(['pack.json', 'pack.state/plan']);
  await pack(source, spaced, { workers: 1, index: ['wids'] });
  await expect(convert(spaced, newFolder(), { workers: 1, index: ['dali'] })).rejects.toMatchObject({
    shard: '000000.tar',
    key: 'a cat/1',
  });
  expect((await readManifest(spaced)).samples).toBe(1);
});

test.each(['lmdb', 'msgpack'] as const)('%s gets no indexes for other loaders', async (format) => {
  const shards = newFolder();
  const message = `requires tars, but the shards are ${format}`;
  await expect(pack('examples/photos', shards, { workers: 1, format, index: ['wids'] })).rejects.toThrow(message);
  await pack(tree({ 'a/1.jpg': JPEG }), shards, { workers: 1, format });
  await expect(convert(shards, newFolder(), { workers: 1, format, index: ['dali'] })).rejects.toThrow(message);
  await expect(indexShards([shards], { index: ['dali'] })).rejects.toThrow(message);
});
