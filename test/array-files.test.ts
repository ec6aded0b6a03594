import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest, readNpyImage } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';

/** Written as the pages of CIFAR and MNIST describe: see make.py there. */
const fixtures = 'test/fixtures/arrays';
interface Image {
  readonly file: string;
  readonly label: number;
  readonly coarse?: number;
  readonly pixel: readonly number[];
}
const expected: Record<string, Image[]> = JSON.parse(readFileSync(path.join(fixtures, 'expected.json'), 'utf8'));
/** The pixel that is compared: x, y. */
const PLACES = { cifar10: [5, 9], cifar100: [31, 2], mnist: [20, 3] } as const;

for (const [name, [x, y]] of Object.entries(PLACES)) {
  test(`${name} opens in place, split by split, and convert stores its images as arrays`, async () => {
    const place = path.join(fixtures, name);
    const output = path.join(emptyFolder(), 'tars');
    await convert(place, output, { workers: 1 });
    expect((await readManifest(output)).columns.map((column) => column.name)).toContain('split');
    for (const location of [place, output]) {
      await using dataset = await openDataset(location);
      const found: Image[] = [];
      for await (const { key, label: cls, fields, columns } of dataset.samples()) {
        const { width, offset } = readNpyImage(fields.npy!);
        const at = offset + 3 * (y * width + x);
        const file = key.slice(0, key.indexOf('/')).replace('-images-idx3-ubyte', '');
        const coarse = columns.coarse_label as number | undefined;
        found.push({
          file,
          label: cls,
          ...(coarse !== undefined && { coarse }),
          pixel: [...fields.npy!.subarray(at, at + 3)],
        });
        expect(columns.split).toBe(/^t(est|10k)/.test(file) ? 'test' : 'train');
      }
      const byFile = (a: Image, b: Image) => (a.file < b.file ? -1 : a.file > b.file ? 1 : 0);
      expect(found.sort(byFile)).toEqual([...expected[name]!].sort(byFile));
    }
    await using train = await openDataset(place, { split: 'train' });
    expect(train.size).toBe(expected[name]!.filter(({ file }) => !/^t(est|10k)/.test(file)).length);
    const loader = train.loader({
      batchSize: 2,
      transform: 'train224',
      workers: 1,
      lastBatch: 'partial',
    });
    let rows = 0;
    for await (const batch of loader) rows += batch.size;
    await loader.close();
    expect(rows).toBe(train.size);
  });
}

test('class names are read from the file next to the data', async () => {
  await using dataset = await openDataset(path.join(fixtures, 'cifar10'));
  expect(dataset.classes.slice(0, 3)).toEqual(['airplane', 'automobile', 'bird']);
});

test.each([
  ['cifar10', 'data_batch_1.bin', 3073, 0, 70, 'record 1 (at byte 3073) has the label 70, but the classes are 0 to 9'],
  ['cifar100', 'train.bin', 3074, 1, 100, 'record 1 (at byte 3074) has the label 100, but the classes are 0 to 99'],
  [
    'cifar100',
    'train.bin',
    3074,
    0,
    20,
    'record 1 (at byte 3074) has the coarse label 20, but the classes are 0 to 19',
  ],
] as const)(
  'a label of %s outside the classes throws an error, with and without class names',
  async (set, file, record, at, label, sentence) => {
    const place = path.join(emptyFolder(), set);
    cpSync(path.join(fixtures, set), place, { recursive: true });
    const bytes = readFileSync(path.join(place, file));
    bytes[record + at] = label;
    writeFileSync(path.join(place, file), bytes);
    await expect(openDataset(place)).rejects.toThrow(sentence);
    for (const names of ['batches.meta.txt', 'fine_label_names.txt']) rmSync(path.join(place, names), { force: true });
    await expect(openDataset(place)).rejects.toThrow(sentence);
  },
);
