import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { FileChangedError } from '@shardtool/base';
import { readManifest, readNpyImage } from '@shardtool/format';
import { type Dataset, openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';

/** Written by h5py: see make.py there. */
const fixtures = path.resolve('test/fixtures/hdf5');
interface Written {
  readonly keys: readonly string[] | null;
  readonly labels: readonly number[];
  /** sha256 of the pixels, or of the file. */
  readonly images: readonly string[];
  readonly columns: Readonly<Record<string, readonly (number | string)[]>>;
}
const expected: Record<string, Written> = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));

const CASES = [
  ['arrays', 'arrays.h5', {}],
  ['old', 'old.h5', {}],
  ['train', 'splits.hdf5', { image: 'train/x' }],
  ['test', 'splits.hdf5', { image: '/test/x', label: 'test/y' }],
  ['bytes', 'bytes.h5', { key: 'photos/name' }],
] as const;

test.each(CASES)('images, classes and labels of %s are read in place and converted', async (name, file, features) => {
  const place = path.join(fixtures, file);
  const output = path.join(emptyFolder(), 'tars');
  await convert(place, output, { workers: 1, features });
  const { keys, labels, images, columns } = expected[name]!;
  expect((await readManifest(output)).samples).toBe(images.length);
  const stem = path.parse(file).name;
  for (const [location, seen] of [
    [place, { features }],
    [output, {}],
  ] as const) {
    await using dataset = await openDataset(location, seen);
    const found: Omit<Written, 'columns'> & { columns: Record<string, unknown>[] } = {
      ...{ keys: [] as string[], labels: [] as number[], images: [] as string[], columns: [] },
    };
    for await (const { key, label: cls, fields, columns: values } of dataset.samples()) {
      (found.keys as string[]).push(key);
      (found.labels as number[]).push(cls);
      const array = fields.npy;
      const bytes = array === undefined ? (fields.jpg ?? fields.png)! : array.subarray(readNpyImage(array).offset);
      (found.images as string[]).push(createHash('sha256').update(bytes).digest('hex'));
      found.columns.push({ ...values });
    }
    expect({ labels: found.labels, images: found.images }).toEqual({ labels, images });
    expect(found.keys).toEqual(keys ?? images.map((_, i) => `${stem}/${String(i).padStart(6, '0')}`));
    expect(found.columns).toEqual(
      images.map((_, i) => Object.fromEntries(Object.entries(columns).map(([column, values]) => [column, values[i]]))),
    );
  }
});

test('a loader can train on an HDF5 file of photos in place', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'bytes.h5'));
  const loader = dataset.loader({ batchSize: 2, transform: 'train224', workers: 1, lastBatch: 'partial' });
  const labels: number[] = [];
  for await (const batch of loader) labels.push(...batch.labels);
  await loader.close();
  expect(labels.sort()).toEqual([-1, 0, 0, 1, 1]);
});

test.each([
  ['splits.hdf5', 'several of its datasets hold images ("test/x" [2, 6, 8], "train/x" [4, 6, 8])'],
  ['links.h5', 'none of its datasets holds images'],
  ['outside.h5', 'its dataset "images" cannot be read'],
])('%s is rejected with a clear message', async (file, sentence) => {
  const place = path.join(fixtures, file);
  await expect(openDataset(place).then((dataset) => dataset.samples().next())).rejects.toThrow(sentence);
  await expect(convert(place, path.join(emptyFolder(), 'out'), { workers: 1 })).rejects.toThrow(sentence);
});

test('the error for a missing HDF5 dataset lists the existing ones', async () => {
  const place = path.join(fixtures, 'arrays.h5');
  await expect(openDataset(place, { features: { image: 'photos' } })).rejects.toThrow(
    'it has no dataset "photos" for the image; it has "about" [], "box" [7, 4]',
  );
  await expect(openDataset(place, { features: { label: 'score' } })).rejects.toThrow(
    'does not hold one integer for each',
  );
});

test('a file without images does not prevent reading the other files of the dataset', async () => {
  const folder = emptyFolder();
  for (const name of ['empty.h5', 'arrays.h5']) {
    mkdirSync(folder, { recursive: true });
    cpSync(path.join(fixtures, name), path.join(folder, name));
  }
  await using dataset = await openDataset(folder);
  expect(await digestsOf(dataset)).toEqual(expected.arrays!.images);
});

/** sha256 of all images. */
async function digestsOf(dataset: Dataset): Promise<string[]> {
  const digests: string[] = [];
  for await (const { fields } of dataset.samples()) {
    const bytes =
      fields.npy === undefined ? (fields.jpg ?? fields.png)! : fields.npy.subarray(readNpyImage(fields.npy).offset);
    digests.push(createHash('sha256').update(bytes).digest('hex'));
  }
  return digests;
}

test('a replaced file is read again, and a dataset that was opened before reports the change', async () => {
  const folder = emptyFolder();
  mkdirSync(folder, { recursive: true });
  const place = path.join(folder, 'a.h5');
  const put = (name: string) => {
    cpSync(path.join(fixtures, name), `${place}.new`);
    renameSync(`${place}.new`, place);
  };
  put('arrays.h5');
  const before = await openDataset(place);
  expect(await digestsOf(before)).toEqual(expected.arrays!.images);
  put('bytes.h5');
  await using after = await openDataset(place);
  expect(await digestsOf(after)).toEqual(expected.bytes!.images);
  // The tables of the open file apply only to the original file.
  await expect(before.get(2)).rejects.toThrow(FileChangedError);
  await before.close();
});

test('a truncated file throws an error that says so', async () => {
  const whole = readFileSync(path.join(fixtures, 'arrays.h5'));
  const file = path.join(emptyFolder(), 'cut.h5');
  writeFileSync(file, whole.subarray(0, whole.length - 100));
  await expect(openDataset(file)).rejects.toThrow(/cut\.h5: .* \(truncated file: .*\); it is damaged/);
});

test('a process that reads images in place and closes nothing exits normally', () => {
  const program = `
    import { openDataset } from '@shardtool/reader';
    const dataset = await openDataset(${JSON.stringify(path.join(fixtures, 'arrays.h5'))});
    let images = 0;
    for await (const batch of dataset.loader({ transform: 'eval224', workers: 1 })) images += batch.size;
    console.log(images);
  `;
  const asked = ['--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, asked, { encoding: 'utf8', timeout: 150_000 });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${expected.arrays!.images.length}\n`, stderr: '' });
});
