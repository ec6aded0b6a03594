/** Converting a tar of one tar per class, such as ImageNet, gives the same as packing the class folders. */
import { execFileSync } from 'node:child_process';
import { createReadStream, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, samplesOf, tree } from './pack-workbench.js';

const CLASSES = ['n01440764', 'n01443537', 'n01484850'];
const source = tree(
  Object.fromEntries(
    CLASSES.flatMap((name) => [1, 2, 3, 4].map((i) => [`${name}/${name}_${i}.JPEG`, jpeg(`${name} ${i}`)])),
  ),
);
const folder = emptyFolder();
const outer = path.join(folder, 'ILSVRC2012_img_train.tar');
for (const name of CLASSES)
  execFileSync('tar', ['-cf', path.join(folder, `${name}.tar`), '--sort=name', '-C', path.join(source, name), '.']);
const inner = (names: readonly string[]) => names.map((name) => `./${name}.tar`);
// The class that is second by name is last.
execFileSync('tar', ['-cf', outer, '-C', folder, ...inner([CLASSES[0]!, CLASSES[2]!, CLASSES[1]!])]);

async function contentsOf(output: string) {
  const samples = (await samplesOf(output)).sort((a, b) => (a.key < b.key ? -1 : 1));
  await using dataset = await openDataset(output);
  return { classes: dataset.classes, samples: samples.map(({ key, cls, fields }) => ({ key, cls, fields })) };
}

async function packed(options: Parameters<typeof pack>[2] = {}) {
  const output = newFolder();
  await pack(source, output, options);
  return contentsOf(output);
}

test.each([
  ['a file', 'tar', () => outer],
  ['a stream', 'lmdb', () => createReadStream(outer)],
] as const)('classes, keys and images from %s equal those of the unpacked folders', async (_, format, input) => {
  const output = newFolder();
  expect(await convert(input(), output, { workers: 1, format, maxShardSamples: 5 })).toMatchObject({
    samples: 12,
    shards: 3,
  });
  expect(await contentsOf(output)).toEqual(await packed());
  expect((await verify(output, { workers: 1 })).faults).toBe(0);
});

test('a list of classes defines their numbers, and a list without the class of a tar is rejected', async () => {
  const output = newFolder();
  const classes = [...CLASSES].reverse();
  await convert(outer, output, { workers: 1, classes });
  expect(await contentsOf(output)).toEqual(await packed({ classes }));
  await expect(convert(outer, newFolder(), { workers: 1, classes: CLASSES.slice(0, 2) })).rejects.toThrow(
    'has the class "n01484850", which is not in the list',
  );
});

test('where can select classes of nested tars', async () => {
  const output = newFolder();
  const report = await convert(outer, output, { workers: 1, where: 'class == "n01443537"' });
  expect(report).toMatchObject({ samples: 4, leftOut: 8 });
});

test('a truncated inner tar, and other files next to inner tars, are errors that name them', async () => {
  const cut = path.join(emptyFolder(), 'n01.tar');
  writeFileSync(cut, readFileSync(path.join(folder, 'n01440764.tar')).subarray(0, 2000));
  const broken = path.join(emptyFolder(), 'train.tar');
  execFileSync('tar', ['-cf', broken, '-C', path.dirname(cut), 'n01.tar']);
  await expect(convert(broken, newFolder(), { workers: 1 })).rejects.toThrow('train.tar, in it n01.tar');
  writeFileSync(path.join(folder, 'README'), 'x');
  const mixed = path.join(emptyFolder(), 'mixed.tar');
  execFileSync('tar', ['-cf', mixed, '-C', folder, 'n01440764.tar', 'README']);
  await expect(convert(createReadStream(mixed), newFolder(), { workers: 1 })).rejects.toThrow(
    'contains "README", which is not a tar; extract it',
  );
});
