import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, smallImages } from './datasets.js';
import { archive, entry } from './tar-craft.js';

const KEYS = Array.from({ length: 12 }, (_, i) => `a/${String(i).padStart(4, '0')}`);
const expected = {
  caption: KEYS.map((_, i) => (i % 5 === 4 ? null : `photo, "${i}"`)),
  score: KEYS.map((_, i) => i + 0.5),
  count: KEYS.map((_, i) => i),
};

async function packedWithColumns(format: 'tar' | 'lmdb' | 'msgpack'): Promise<string> {
  const folder = await smallImages({ samples: KEYS.length });
  const rows = KEYS.map((key, i) => {
    const caption = expected.caption[i]?.replaceAll('"', '""');
    return `${key}.jpg,${caption === undefined ? '' : `"${caption}"`},${i + 0.5},${i}`;
  });
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, ['path,caption,score,count', ...rows].join('\n'));
  const output = path.join(emptyFolder(), 'shards');
  await pack(folder, output, { labels, format, maxShardSamples: 5, workers: 1, shuffle: false });
  return output;
}

const base = { transform: [{ name: 'resize', size: [24, 24] }], shuffle: false, batchSize: 12, workers: 1 } as const;

test.each(['tar', 'lmdb', 'msgpack'] as const)(
  'label columns are delivered by batches, samples() and get() (%s)',
  async (format) => {
    await using dataset = await openDataset(await packedWithColumns(format));
    const fields = ['caption', 'score', 'count', 'cls'];
    for (const options of [base, { ...base, transform: 'raw' as const }, { ...base, collate: 'list' as const }]) {
      for await (const batch of dataset.loader({ ...options, fields })) {
        expect(batch.keys).toEqual(KEYS);
        expect(batch.fields).toEqual({ ...expected, cls: KEYS.map(() => 0) });
      }
    }
    const columnsAt = (i: number) => ({
      caption: expected.caption[i],
      score: expected.score[i],
      count: expected.count[i],
    });
    let at = 0;
    for await (const { columns } of dataset.samples()) expect(columns).toEqual(columnsAt(at++));
    expect((await dataset.get(KEYS[7]!)).columns).toEqual(columnsAt(7));
    expect((await dataset.get(4)).columns).toEqual(columnsAt(4));
  },
);

test('the error for a field or column that no sample has suggests the nearest name', async () => {
  await using dataset = await openDataset(await packedWithColumns('tar'));
  const first = (options: object) =>
    dataset
      .loader({ ...base, ...options })
      [Symbol.asyncIterator]()
      .next();
  await expect(first({ fields: ['score', 'captoin'] })).rejects.toThrow(
    'fields: no sample has "captoin"; did you mean "caption"? the fields are cls, jpg, the columns are caption, score, count.',
  );
  await expect(first({ masks: ['seg.png'] })).rejects.toThrow(
    'masks: no sample has "seg.png": the fields are cls, jpg.',
  );
  await expect(first({ labels: 'jpg.age' })).rejects.toThrow(
    'labels: "jpg.age" is a part of the field jpg, but labels must be a whole field or a column. Write "age" and the keys into',
  );
  await expect(first({ image: 'jpeg' })).rejects.toThrow('image: no sample has "jpeg"; did you mean "jpg"?');
  await expect(first({ extraImages: ['caption'] })).rejects.toThrow('extraImages: no sample has "caption"');
});

test('options are checked when the loader is created: names, values, and the steps of the transform', async () => {
  await using dataset = await openDataset(await packedWithColumns('tar'));
  const make = (options: object) => () => dataset.loader(options);
  expect(make({ batchsize: 3 })).toThrow('A loader has no option "batchsize"; did you mean "batchSize"?');
  expect(make({ batchSize: 0 })).toThrow('option batchSize is invalid');
  expect(make({ transform: 'train225' })).toThrow('There is no transform "train225"');
  expect(make({ transform: [{ name: 'resize' }] })).toThrow('Step 1 of the transform, resize');
  expect(make({ mix: { name: 'mixup', alpha: -1 } })).toThrow('mix');
});

test('labels from a column are numbers, and a sample without a value is a bad sample', async () => {
  await using dataset = await openDataset(await packedWithColumns('tar'));
  const labelled = async (options: LoaderOptions) => {
    const batches = [];
    for await (const batch of dataset.loader({ ...base, ...options })) batches.push(batch);
    return batches;
  };
  const [batch] = await labelled({ labels: 'score' });
  expect(batch!.labelValues).toEqual({ values: Float32Array.from(expected.score), shape: [12] });
  expect(batch!.fields.score).toEqual(expected.score);
  await expect(labelled({ labels: 'caption' })).rejects.toThrow(
    /its field "caption" has no number and no list of numbers/,
  );
  await expect(labelled({ labels: { field: 'count', classes: 11 } })).rejects.toThrow(
    /its field "count" has the class number 11, and there are 11 classes/,
  );
  const skipped = await labelled({ labels: { field: 'count', classes: 11 }, onBad: 'skip' });
  expect(skipped.flatMap(({ valid }) => [...valid]).filter((row) => row === 0)).toHaveLength(1);
  const [one] = await labelled({ labels: { field: 'count', classes: 12 } });
  expect(one!.labelValues!.shape).toEqual([12, 12]);
  expect([...one!.labelValues!.values]).toEqual(KEYS.flatMap((_, i) => KEYS.map((_, c) => Number(c === i))));
  await expect(labelled({ labels: 'skore' })).rejects.toThrow(/labels.*"skore"/);
  await expect(labelled({ labels: 'score', mix: { name: 'mixup' } })).rejects.toThrow(/mix mixes class numbers/);
  await expect(labelled({ labels: { field: 'count', classes: 0 } })).rejects.toThrow(/Expected the name of a field/);
});

test('lists of class numbers become a 0 or 1 per class, and lists of numbers one row each', async () => {
  const tags = [[0, 2], [], [1]];
  const tar = path.join(emptyFolder(), 'tags.tar');
  const files = tags.flatMap((list, i) => [
    entry({ name: `${i}.jpg` }, readFileSync(new URL('../examples/photos/cat/cat_000.jpg', import.meta.url))),
    entry({ name: `${i}.json` }, JSON.stringify(list)),
  ]);
  writeFileSync(tar, archive(...files));
  await using dataset = await openDataset(tar);
  for await (const batch of dataset.loader({ ...base, batchSize: 3, labels: { field: 'json', classes: 3 } })) {
    expect(batch.labelValues).toEqual({ values: Float32Array.of(1, 0, 1, 0, 0, 0, 0, 1, 0), shape: [3, 3] });
  }
  const taken = async () => {
    for await (const batch of dataset.loader({ ...base, batchSize: 3, labels: 'json' })) batch.labelValues;
  };
  await expect(taken()).rejects.toThrow(
    /has 2 numbers in one sample and 0 in another: if they are class numbers, set classes/,
  );
});
