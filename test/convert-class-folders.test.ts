/** Converting a tar of class folders gives the same as packing the unpacked folder. */
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

const source = tree({
  'dog/1.JPG': jpeg('dog 1'),
  'dog/2.jpg': jpeg('dog 2'),
  'cat/1.jpg': jpeg('cat 1'),
  'cat/1.txt': 'a caption',
  'cat/deep/2.jpg': jpeg('cat 2'),
});
const folder = emptyFolder();
const [tar, gzip] = [path.join(folder, 'photos.tar'), path.join(folder, 'photos.tar.gz')];
const inOrder = ['--sort=name', '-C', source];
execFileSync('tar', ['-cf', tar, ...inOrder, './cat', './dog']);
// The class that is second by name is first.
execFileSync('tar', ['-czf', gzip, ...inOrder, 'dog', 'cat']);
const labels = path.join(folder, 'labels.csv');
writeFileSync(labels, 'path,class,score\ncat/1.jpg,pet,1\ndog/1.JPG,wolf,2\ncat/deep/2.jpg,pet,\n');

/** Samples by their key, without data that a tar does not contain. */
async function contentsOf(output: string) {
  const samples = (await samplesOf(output)).sort((a, b) => (a.key < b.key ? -1 : 1));
  await using dataset = await openDataset(output);
  return {
    classes: dataset.classes,
    samples: samples.map(({ key, cls, fields, columns }) => ({ key, cls, fields, columns })),
  };
}

async function packed(options: Parameters<typeof pack>[2] = {}) {
  const output = newFolder();
  await pack(source, output, options);
  return contentsOf(output);
}

test.each([
  ['a tar', () => tar],
  ['a .tar.gz', () => gzip],
  ['a stream', () => createReadStream(tar)],
])('the classes, keys and fields of %s equal those of the unpacked folder', async (_, input) => {
  const output = newFolder();
  expect(await convert(input(), output, { workers: 1 })).toMatchObject({ samples: 4, leftOut: 0 });
  expect(await contentsOf(output)).toEqual(await packed());
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
});

test.each(['lmdb', 'msgpack'] as const)(
  'a stream to %s, split into several shards, gives the same classes, keys and fields',
  async (format) => {
    const output = newFolder();
    await convert(createReadStream(gzip), output, { workers: 1, format, maxShardSamples: 2 });
    expect(await contentsOf(output)).toEqual(await packed());
    expect((await verify(output, { workers: 1 })).faults).toBe(0);
  },
);

test.each([
  ['a tar', () => tar],
  ['a .tar.gz', () => gzip],
])('labels, a list of classes and a selection work for %s as for a folder', async (_, input) => {
  const labelled = newFolder();
  expect(await convert(input(), labelled, { workers: 1, labels })).toMatchObject({ samples: 3, leftOut: 1 });
  expect(await contentsOf(labelled)).toEqual(await packed({ labels }));
  const ordered = newFolder();
  await convert(input(), ordered, { workers: 1, classes: ['dog', 'cat'] });
  expect(await contentsOf(ordered)).toEqual(await packed({ classes: ['dog', 'cat'] }));
  const dogs = newFolder();
  expect(await convert(input(), dogs, { workers: 1, where: 'class == "dog"' })).toMatchObject({
    samples: 2,
    leftOut: 2,
  });
  expect((await contentsOf(dogs)).samples.map(({ key }) => key)).toEqual(['dog/1', 'dog/2']);
  await expect(convert(input(), newFolder(), { workers: 1, classes: ['cat'] })).rejects.toThrow(
    'has the class "dog", which is not in the list',
  );
  await expect(convert(input(), newFolder(), { workers: 1, where: 'width > 9000' })).rejects.toThrow(
    'No sample is left to convert',
  );
});

test('with the option fields, the files of one tar are named as by pack', async () => {
  const photos = tree({ 'cat/IMG.1.jpg': jpeg(1), 'cat/IMG.2.jpg': jpeg(2), 'cat/IMG.2_mask.png': jpeg(3) });
  const archive = path.join(emptyFolder(), 'photos.tar');
  execFileSync('tar', ['-cf', archive, '--sort=name', '-C', photos, './cat']);
  const output = newFolder();
  await convert(archive, output, { workers: 1, fields: ['_mask.png'] });
  const { samples } = await contentsOf(output);
  expect(samples.map(({ key, fields }) => [key, Object.keys(fields)])).toEqual([
    ['cat/IMG_1', ['cls', 'jpg']],
    ['cat/IMG_2', ['cls', 'jpg', 'mask.png']],
  ]);
  await expect(convert(photos, newFolder(), { workers: 1, fields: ['_mask.png'] })).rejects.toThrow(
    'is not a tar; remove it',
  );
  await expect(convert(archive, newFolder(), { workers: 1, fields: ['_msk.png'] })).rejects.toThrow(
    /"fields" is _msk\.png, but no file of .* has this extension \(its samples have jpg, png\)/,
  );
});

test('the command line accepts labels, and does not relabel a dataset that already has classes', async () => {
  const output = newFolder();
  const { stdout, stderr } = await shardtool('convert', tar, output, '--labels', labels, '--where', 'score > 1');
  expect(stderr).toBe('');
  expect(stdout).toMatch(
    /^Converted 1 sample into 1 shard in .*\n {2}3 samples were skipped, because the labels have no row for them or --where excludes them\nTook [\d.]+ s \([\d,]+ samples\/s, [\d.]+ [kMG]?B\/s\)\. Next: shardtool bench \S+\n$/,
  );
  const again = newFolder();
  expect((await shardtool('convert', output, again, '--labels', labels)).stderr).toContain('shardtool relabel');
  expect(existsSync(again)).toBe(false);
});

test.each(['plain.tar', 'plain.tar.gz'])('files that belong to no image are skipped in %s as by pack', async (name) => {
  const files = tree({
    'README.md': 'about all',
    'cat/1.jpg': jpeg('cat 1'),
    'cat/1.txt': 'a caption',
    'cat/notes.txt': 'about cats',
    'dog/1.jpg': jpeg('dog 1'),
    'papers/a.md': 'no class',
  });
  const archive = path.join(emptyFolder(), name);
  execFileSync('tar', ['-caf', archive, '--sort=name', '-C', files, '.']);
  const [output, fromFolder] = [newFolder(), newFolder()];
  const report = await convert(archive, output, { workers: 1 });
  expect(report).toMatchObject({ samples: 2, skippedEntries: 3, leftOut: 0 });
  await pack(files, fromFolder, { workers: 1 });
  const { classes, samples } = await contentsOf(output);
  expect({ classes, samples }).toEqual(await contentsOf(fromFolder));
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
});
