import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Dataset, openDataset } from '@shardtool/reader';
import { pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';

/** Pixels and label by key. */
async function pixelsOf(dataset: Dataset, options: object = {}): Promise<Map<string, [number, number]>> {
  const loader = dataset.loader({ batchSize: 8, transform: 'eval224', workers: 1, lastBatch: 'partial', ...options });
  const found = new Map<string, [number, number]>();
  for await (const batch of loader) {
    const row = batch.images!.length / batch.size;
    for (let i = 0; i < batch.size; i++) {
      const pixels = batch.images!.subarray(i * row, (i + 1) * row);
      let sum = 0;
      for (let at = 0; at < row; at++) sum = (sum * 31 + pixels[at]!) % 1_000_000_007;
      found.set(batch.keys[i]!, [sum, batch.labels[i]!]);
    }
  }
  await loader.close();
  return found;
}

test('a folder of class folders gives the same batches as when it is packed', async () => {
  await using folder = await openDataset('examples/photos');
  await using packed = await openDataset(await packedPhotos());
  expect([folder.format, folder.size]).toEqual(['folder', packed.size]);
  expect(folder.classes).toEqual(packed.classes);
  expect(folder.classSamples).toEqual(packed.classSamples);
  expect(folder.fields).toEqual(['jpg']);
  expect(await pixelsOf(folder)).toEqual(await pixelsOf(packed));
});

test('samples and look-ups give the bytes of the files', async () => {
  await using dataset = await openDataset('examples/photos');
  let count = 0;
  for await (const { key, fields } of dataset.samples({ checksum: true })) {
    expect(readFileSync(`examples/photos/${key}.jpg`).equals(fields.jpg!), key).toBe(true);
    count++;
  }
  expect(count).toBe(dataset.size);
  const { fields } = await dataset.get('moon/moon_003');
  expect(readFileSync('examples/photos/moon/moon_003.jpg').equals(fields.jpg!)).toBe(true);
});

test('an epoch that was left resumes at the next sample', async () => {
  await using dataset = await openDataset('examples/photos');
  const options = { batchSize: 8, transform: 'raw', workers: 1, seed: 3 } as const;
  const whole: string[] = [];
  const first = dataset.loader(options);
  let state: unknown;
  for await (const batch of first) {
    whole.push(...batch.keys);
    if (batch.index === 2) state = first.state();
  }
  await first.close();
  await using again = await openDataset('examples/photos');
  const second = again.loader({ ...options, state: state as never });
  const rest: string[] = [];
  for await (const batch of second) rest.push(...batch.keys);
  await second.close();
  expect(rest).toEqual(whole.slice(24));
});

test('files next to an image belong to it, and files that belong to none are skipped', async () => {
  const folder = emptyFolder();
  mkdirSync(path.join(folder, 'cat/.hidden'), { recursive: true });
  const photo = readFileSync('examples/photos/cat/cat_000.jpg');
  for (const name of ['cat/1.jpg', 'cat/1-b.JPG', 'cat/.2.jpg', 'cat/.hidden/3.jpg']) {
    writeFileSync(path.join(folder, name), photo);
  }
  writeFileSync(path.join(folder, 'cat/1.json'), '{"a":1}');
  writeFileSync(path.join(folder, 'readme.txt'), 'hello');
  symlinkSync(path.join(folder, 'cat'), path.join(folder, 'cat/again'));
  await using dataset = await openDataset(folder);
  const found: [string, string[]][] = [];
  for await (const { key, fields } of dataset.samples()) found.push([key, Object.keys(fields).sort()]);
  expect(found).toEqual([
    ['cat/1-b', ['jpg']],
    ['cat/1', ['jpg', 'json']],
  ]);
  const { source } = await dataset.files.index(0);
  expect(source).toEqual(['cat/1-b.JPG', 'cat/1.jpg']);
  writeFileSync(path.join(folder, 'cat/1.png'), photo);
  await expect(openDataset(folder)).rejects.toThrow('would both be the sample "cat/1": rename one of them');
});

test('an image that is a dangling link is a bad sample, and a class that is a dangling link is an error', async () => {
  const folder = emptyFolder();
  cpSync('examples/photos/cat/cat_000.jpg', path.join(folder, 'cat/1.jpg'));
  symlinkSync('gone.jpg', path.join(folder, 'cat/2.jpg'));
  await using dataset = await openDataset(folder);
  expect(dataset.size).toBe(2);
  expect((await dataset.get(1)).fields.jpg).toHaveLength(0);
  symlinkSync('/nowhere/dog', path.join(folder, 'dog'));
  await expect(openDataset(folder)).rejects.toThrow(
    'dog leads to /nowhere/dog, which does not exist; mount its target',
  );
});

test('folders called train and val are splits: the class is the folder below, and where selects by split', async () => {
  const folder = emptyFolder();
  cpSync('examples/photos/cat', path.join(folder, 'train/cat'), { recursive: true });
  cpSync('examples/photos/moon', path.join(folder, 'val/moon'), { recursive: true });
  await using dataset = await openDataset(folder);
  expect(dataset.classes).toEqual(['cat', 'moon']);
  const found = await pixelsOf(dataset, { where: "split == 'val'" });
  expect([...found.keys()].every((key) => key.startsWith('val/moon/'))).toBe(true);
  expect(found.size).toBe(readdirSync('examples/photos/moon').length);
});

test('images are rotated by their headers, because no index has their orientation', async () => {
  const folder = emptyFolder();
  cpSync('test/fixtures/odd-images/exif-rotated-6.jpg', path.join(folder, 'a/1.jpg'), { recursive: true });
  const shards = path.join(emptyFolder(), 'shards');
  await pack(folder, shards, { workers: 1 });
  await using plain = await openDataset(folder);
  await using packed = await openDataset(shards);
  const turned = await pixelsOf(plain, { applyExifOrientation: true });
  expect(turned).toEqual(await pixelsOf(packed, { applyExifOrientation: true }));
  expect(turned).not.toEqual(await pixelsOf(plain));
});

test('a file that was removed or truncated since the folder was opened is an error that names it', async () => {
  const folder = emptyFolder();
  cpSync('examples/photos/cat', path.join(folder, 'cat'), { recursive: true });
  await using dataset = await openDataset(folder);
  await dataset.files.index(0);
  const [first, second] = readdirSync(path.join(folder, 'cat')).sort();
  rmSync(path.join(folder, 'cat', first!));
  await expect(dataset.get(0)).rejects.toThrow(`${first} cannot be read`);
  writeFileSync(path.join(folder, 'cat', second!), 'short');
  await expect(dataset.get(1)).rejects.toThrow(`${second} has become shorter since the dataset was opened`);
});

test('commands for shards report that a plain folder has none', async () => {
  await expect(verify('examples/photos', { workers: 1 })).rejects.toThrow('Pack it first, with "shardtool pack"');
  const { stdout } = await shardtool('ls', 'examples/photos');
  expect(stdout).toContain('60 images as single files');
  expect(stdout).toContain('6 classes, fields jpg');
});

test('classes and columns are read from metadata.jsonl and metadata.csv, in the folder or in each split', async () => {
  const folder = emptyFolder();
  const [first, second, third] = ['cat_000', 'cat_001', 'cat_002'].map((name) =>
    readFileSync(`examples/photos/cat/${name}.jpg`),
  );
  mkdirSync(path.join(folder, 'train/deep'), { recursive: true });
  mkdirSync(path.join(folder, 'val'));
  writeFileSync(path.join(folder, 'train/a.jpg'), first!);
  writeFileSync(path.join(folder, 'train/deep/b.jpg'), second!);
  writeFileSync(path.join(folder, 'val/c.jpg'), third!);
  writeFileSync(
    path.join(folder, 'train/metadata.csv'),
    'file_name,label,text,width\na.jpg,newt,"one, two",7\ndeep/b.jpg,cat,,8\n',
  );
  writeFileSync(path.join(folder, 'val/metadata.jsonl'), '{"file_name":"c.jpg","label":"newt","boxes":[1,2]}\n');
  await using dataset = await openDataset(folder);
  expect(dataset.classes).toEqual(['cat', 'newt']);
  const { cls, columns } = await dataset.files.index(0);
  expect([...cls]).toEqual([1, 0, 1]);
  expect(Object.fromEntries(columns)).toEqual({
    split: ['train', 'train', 'val'],
    text: ['one, two', null, null],
    width_: [7, 8, null],
    boxes: [null, null, '[1,2]'],
  });
  await using val = await openDataset(folder, { split: 'validation' });
  expect([val.size, val.splits, [...(await val.files.index(0)).cls]]).toEqual([1, ['train', 'val'], [1]]);
  writeFileSync(path.join(folder, 'val/metadata.jsonl'), '{"file_name":"d.jpg"}\n');
  await expect(openDataset(folder)).rejects.toThrow('metadata.jsonl:1 names d.jpg, which does not exist');
});
