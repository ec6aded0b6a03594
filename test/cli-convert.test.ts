import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { smallImages } from './datasets.js';
import { jpeg, newFolder } from './pack-workbench.js';
import { archive, END, entry } from './tar-craft.js';

test('convert prints its duration, its rate and the next command at the end', async () => {
  const [source, output] = [newFolder(), newFolder()];
  await pack(await smallImages({ samples: 12 }), source, {});
  const { stdout, stderr } = await shardtool('convert', source, output, '--format', 'mds');
  expect(stderr).toBe('');
  const line = /\nTook [\d.]+ s \([\d,]+ samples\/s, [\d.]+ [kMG]?B\/s\)\. Next: shardtool (bench .*)\n$/.exec(stdout);
  expect(line, stdout).not.toBeNull();
  expect(line![1]).toBe(`bench ${output}`);
});

test('a resumed conversion reports what was finished before, and does not count it in a rate', async () => {
  const [source, output] = [newFolder(), newFolder()];
  await pack(await smallImages({ samples: 12 }), source, { maxShardSamples: 6 });
  const shard = path.join(source, '000001.tar');
  const bytes = readFileSync(shard);
  writeFileSync(shard, Buffer.from(bytes).fill('x', 512, 513));
  utimesSync(shard, 1e9, 1e9);
  const words = ['convert', source, output, '--format', 'lmdb', '--workers', '1'];
  expect((await shardtool(...words)).code).toBe(1);
  writeFileSync(shard, bytes);
  utimesSync(shard, 1e9, 1e9);
  const { code, stdout, stderr } = await shardtool(...words);
  expect([code, stderr, stdout]).toEqual([
    0,
    '',
    expect.stringMatching(/ {2}1 shard was already finished\nTook [\d.]+ s\. Next: shardtool bench \S+\n$/),
  ]);
});

test('converting tars whose class numbers have no names prints a hint, unless --classes gives names', async () => {
  const folder = newFolder();
  mkdirSync(folder);
  const tar = path.join(folder, 'a.tar');
  const entries = [0, 1, 2].flatMap((i) => [entry({ name: `${i}.jpg` }, jpeg(i)), entry({ name: `${i}.cls` }, `${i}`)]);
  writeFileSync(tar, archive(...entries, END));
  const plain = await shardtool('convert', tar, newFolder());
  expect(plain.stdout).toContain(
    '  3 samples have a class number, but classes have no names: --classes FILE gives them names\n',
  );
  const names = path.join(folder, 'names.txt');
  writeFileSync(names, 'cat\ndog\nemu\n');
  const named = await shardtool('convert', tar, newFolder(), '--classes', names);
  expect([named.code, named.stdout]).toEqual([0, expect.not.stringContaining('--classes')]);
});
