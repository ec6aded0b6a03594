import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder, smallImages } from './datasets.js';

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
  'columns of labels come with batches, samples() and get() (%s)',
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

test('a field or column that no sample has is an error with the nearest name', async () => {
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
  await expect(first({ image: 'jpeg' })).rejects.toThrow('image: no sample has "jpeg"; did you mean "jpg"?');
  await expect(first({ extraImages: ['caption'] })).rejects.toThrow('extraImages: no sample has "caption"');
});

test('options are looked at when the loader is made: names, values, and the steps of the transform', async () => {
  await using dataset = await openDataset(await packedWithColumns('tar'));
  const make = (options: object) => () => dataset.loader(options);
  expect(make({ batchsize: 3 })).toThrow('A loader has no option "batchsize"; did you mean "batchSize"?');
  expect(make({ batchSize: 0 })).toThrow('option batchSize is not right');
  expect(make({ transform: 'train225' })).toThrow('There is no transform "train225"');
  expect(make({ transform: [{ name: 'resize' }] })).toThrow('Step 1 of the transform, resize');
  expect(make({ mix: { name: 'mixup', alpha: -1 } })).toThrow('mix');
});
