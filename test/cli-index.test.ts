import { copyFileSync, existsSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { filesIn } from './pack-workbench.js';

function foreignTars(): string {
  const folder = emptyFolder();
  for (const name of ['gnu-posix.tar', 'webdataset-0.tar'])
    copyFileSync(`test/fixtures/tar/${name}`, path.join(folder, name));
  return folder;
}

test('index creates the index of each tar, reports skipped files, and keeps existing indexes', async () => {
  const folder = foreignTars();
  const tars = ['gnu-posix.tar', 'webdataset-0.tar'].map((name) => path.join(folder, name));
  const expected = JSON.parse(readFileSync('test/fixtures/tar/expected.json', 'utf8'));
  const samples = expected['gnu-posix.tar'].samples.length + expected['webdataset-0.tar'].samples.length;
  const skipped = expected['gnu-posix.tar'].skipped.length;
  expect((await shardtool('index', ...tars)).stdout).toBe(
    `Indexed ${samples} samples in 2 shards.\n  ${skipped} files in them belong to no sample\n`,
  );
  expect(filesIn(folder)).toEqual(['gnu-posix.parquet', 'gnu-posix.tar', 'webdataset-0.parquet', 'webdataset-0.tar']);

  expect((await shardtool('index', folder)).stdout).toBe(
    'Indexed 0 samples in 0 shards.\n  2 indexes are up to date\n',
  );
  const all = await shardtool('index', folder, '--overwrite', '--json');
  expect(JSON.parse(all.stdout)).toEqual({
    shards: 2,
    kept: 0,
    samples,
    skippedEntries: skipped,
    skippedLinks: 0,
    crops: null,
    columns: null,
  });

  const tar = statSync(tars[1]!);
  utimesSync(tars[1]!, tar.atime, new Date(Date.now() + 5000));
  expect(JSON.parse((await shardtool('index', folder, '--json')).stdout)).toMatchObject({ shards: 1, kept: 1 });
  expect((await shardtool('index', tars[0]!)).stdout).toBe('Indexed 0 samples in 0 shards.\n  1 index is up to date\n');
  expect((await shardtool('index', folder, '--overwrite', '--quiet')).stdout).toBe('');
});

test('a lost index is rebuilt from its packed shard, and the dataset is complete again', async () => {
  for (const format of ['tar', 'msgpack'] as const) {
    const shards = await packedPhotos({ format });
    rmSync(path.join(shards, '000003.parquet'));
    expect((await shardtool('verify', shards)).code).toBe(1);
    const { stdout } = await shardtool('index', shards);
    expect(stdout).toBe('Indexed 10 samples in 1 shard.\n  5 indexes are up to date\n');
    expect(await shardtool('verify', shards)).toMatchObject({ code: 0 });
  }
});

test('the index of an LMDB shard cannot be rebuilt, because the order of its samples is lost', async () => {
  const shards = await packedPhotos({ format: 'lmdb' });
  rmSync(path.join(shards, '000003.parquet'));
  const { code, stderr } = await shardtool('index', shards);
  expect(code).toBe(1);
  expect(stderr).toContain('does not record the order in which its samples were packed');
});

test('a file that is not a tar is not indexed', async () => {
  const folder = emptyFolder();
  writeFileSync(path.join(folder, 'a.rar'), 'Rar!');
  const { code, stderr } = await shardtool('index', path.join(folder, 'a.rar'));
  expect([code, stderr]).toEqual([1, expect.stringContaining('a.rar does not have the name of a shard')]);
  expect(existsSync(path.join(folder, 'a.rar.parquet'))).toBe(false);
});
