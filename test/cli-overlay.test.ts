/** `overlay`, `split` and their flags on the command line, as a person types them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';

test('an overlay is created, listed, used, verified and removed', async () => {
  const shards = await packedPhotos();
  const notes = emptyFolder();
  const [bad, labels] = [path.join(notes, 'bad.txt'), path.join(notes, 'fixed.csv')];
  writeFileSync(bad, 'cat/cat_001\nmoon/moon_002\n');
  writeFileSync(labels, 'key,class,note\ncat/cat_002,ghost,"really, a ghost"\n');

  const made = await shardtool(
    'overlay',
    'add',
    shards,
    'clean',
    '--exclude-keys',
    bad,
    '--labels',
    labels,
    '--rename',
    'moon=sky',
  );
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(made.stdout).toBe(
    `Wrote ${shards}/overlays/clean.jsonl: 2 samples excluded, 1 sample with another class, 1 sample with other columns; 7 classes.\n1 new class:\n  "ghost"\n`,
  );
  const split = await shardtool('split', shards, '--val', '20%', '--by', 'class', '--parent', 'clean');
  expect(split.stdout).toBe(`Made ${shards}/overlays/split.jsonl: val 12 samples, train 46 samples.\n`);

  const listed = await shardtool('overlay', 'ls', shards);
  expect(listed.stdout).toMatch(
    /^clean\t[0-9a-f]{16}\t2 samples excluded, 1 sample of another class, columns set for 1 sample\t--exclude-keys .*\nsplit on clean\t[0-9a-f]{16}\tval 12 samples, train 46 samples\tsplit: val 0\.2, rest train, by class\n$/,
  );
  expect((await shardtool('overlay', 'show', shards, 'clean')).stdout).toContain(
    '{"set":[["note","really, a ghost"]],"at":[',
  );

  const ghost = await shardtool('ls', shards, '--overlay', 'clean', '--samples');
  expect(ghost.stdout.split('\n').filter((line) => line.startsWith('cat/cat_00'))).toContainEqual(
    expect.stringMatching(/^cat\/cat_002\tghost\t/),
  );
  expect((await shardtool('stats', shards, '--split', 'val', '--json')).stdout).toContain('"samples":12,');
  expect((await shardtool('ls', shards, '--exclude-keys', bad)).stdout).toContain('58 samples');
  expect((await shardtool('ls', shards, '--overlay', 'claen')).stderr).toContain('; did you mean "clean"? ');

  expect(await shardtool('verify', shards)).toMatchObject({ code: 0 });
  expect(await shardtool('overlay', 'rm', shards, 'clean')).toMatchObject({
    code: 1,
    stderr: 'shardtool: The overlay "split" is based on "clean": drop "split" first.\n',
  });
  const file = path.join(shards, 'overlays/split.jsonl');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"val"', '"vax"'));
  const verified = await shardtool('verify', shards);
  expect(verified.code).toBe(1);
  expect(verified.stdout).toMatch(/^overlays\/split\.jsonl\t.* has changed since it was written; restore it/);
});

/** One dataset for all commands that only fail. */
const untouched = once(() => packedPhotos());

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

test('subset, relabel and merge print what they wrote, and merge does not replace a file', async () => {
  const folder = emptyFolder();
  const shards = path.join(folder, 'shards');
  const packed = await shardtool(
    'pack',
    'examples/photos',
    shards,
    '--format',
    'msgpack',
    '--split',
    'val=20%',
    '--max-shard-samples',
    '10',
  );
  expect(packed.stdout).toMatch(/\nSplit by key: val \d+ samples, train \d+ samples\.\n$/);
  const labels = path.join(folder, 'new.csv');
  writeFileSync(labels, 'path,class\ncat/cat_001.jpg,moon\n');
  const cats = path.join(folder, 'cats');
  const { stdout } = await shardtool('subset', shards, 'cats', '--classes', 'cat', '--copy', cats);
  expect(stdout).toBe(
    `Made ${shards}/overlays/cats.jsonl: 10 samples.\nCopied 10 samples in ${shardsIn(cats)} to ${cats}.\n`,
  );
  expect((await shardtool('relabel', shards, '--labels', labels)).stdout).toBe(
    `Made ${shards}/overlays/relabel.jsonl: 1 sample with another class, columns set for 0 samples.\n`,
  );
  const both = path.join(folder, 'both.json');
  expect((await shardtool('merge', shards, cats, '--output', both)).stdout).toEqual(
    expect.stringMatching(
      /^Wrote .*both\.json: 70 samples of 2 datasets, 6 classes\.\n {2}10 duplicate keys, such as cat\/cat_\d+: /,
    ),
  );
  expect((await shardtool('merge', shards, cats, '--output', both)).stderr).toContain(
    'already exists and is not replaced',
  );
  expect((await shardtool('ls', both)).stdout).toContain('70 samples');
  const apart = path.join(folder, 'apart.json');
  const nameless = ['merge', shards, 'test/fixtures/hdf5/arrays.h5', '--output', apart];
  expect((await shardtool(...nameless)).stderr).toMatch(/cannot be joined by name: set --class-lists to 'apart'/);
  await shardtool(...nameless, '--class-lists', 'apart');
  expect(JSON.parse(readFileSync(apart, 'utf8'))).toMatchObject({ classLists: 'apart' });
  const none = path.join(folder, 'none.json');
  expect((await shardtool('merge', shards, path.join(folder, 'nothing'), '--output', none)).code).toBe(2);
  expect(existsSync(none)).toBe(false);
});

test('a class that only the labels contain is reported, with a suggestion if it looks mistyped', async () => {
  const shards = await packedPhotos();
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, 'key,class\ncat/cat_001,mooon\ncat/cat_002,moon\ncat/cat_003,zeppelin\n');
  const newClasses = '2 new classes:\n  "mooon"; did you mean "moon"?\n  "zeppelin"\n';
  const added = await shardtool('overlay', 'add', shards, 'typed', '--labels', labels);
  expect(added.stdout).toMatch(/: 0 samples excluded, 3 samples with another class, .*; 8 classes\.\n/);
  expect(added.stdout.slice(added.stdout.indexOf('\n') + 1)).toBe(newClasses);
  const { stdout } = await shardtool('relabel', shards, '--labels', labels);
  expect(stdout.slice(stdout.indexOf('\n') + 1)).toBe(newClasses);

  const classes = path.join(emptyFolder(), 'classes.txt');
  const known = ['astronaut', 'cat', 'coffee', 'galaxies', 'moon', 'rocket'];
  writeFileSync(classes, [...known, 'mooon', 'zeppelin'].join('\n'));
  const listed = await shardtool('overlay', 'add', shards, 'listed', '--labels', labels, '--classes', classes);
  expect(listed.stdout).toMatch(/; 8 classes\.\n$/);
});

function shardsIn(folder: string): string {
  const { shards } = JSON.parse(readFileSync(path.join(folder, 'dataset.json'), 'utf8'));
  return `${shards.length} ${shards.length === 1 ? 'shard' : 'shards'}`;
}

test.each([
  [['overlay', 'add', 'SHARDS'], 'Missing argument: <name>. Usage: shardtool overlay add <dataset> <name> [options].'],
  [['overlay', 'add', 'SHARDS', 'x', '--rename', 'cat'], '--rename takes OLD=NEW, not "cat".'],
  [['overlay', 'add', 'SHARDS', 'x', '--exclude-keys', 'none.txt'], '--exclude-keys: none.txt cannot be read'],
  [['split', 'SHARDS'], 'Missing option: --val or --test. Give the share of a split, such as --val 0.1.'],
  [['split', 'SHARDS', '--val', '0.6', '--test', '0.4'], 'The shares leave nothing for the split "train"'],
  [
    ['ls', 'SHARDS', '--overlay', 'none'],
    'There is no overlay SHARDS/overlays/none.jsonl. "shardtool overlay ls" lists',
  ],
])('the error for %j is a clear message', async (words, sentence) => {
  const shards = await untouched();
  const { code, stdout, stderr } = await shardtool(...words.map((word) => word.replace('SHARDS', shards)));
  expect({ code: code !== 0, stdout }).toEqual({ code: true, stdout: '' });
  expect(stderr).toContain(sentence.replace('SHARDS', shards));
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
});
