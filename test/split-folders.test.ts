/** A folder that contains a dataset for each split. */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { bucketServer } from './bucket-server.js';
import { emptyFolder, packedSmall, smallImages } from './datasets.js';

/** `train` and `val`, packed with the same list of classes. */
async function packedSplits(): Promise<string> {
  const source = emptyFolder();
  cpSync(await smallImages({ samples: 30, classes: 2 }), path.join(source, 'train'), { recursive: true });
  cpSync(await smallImages({ samples: 12, classes: 3 }), path.join(source, 'val'), { recursive: true });
  const output = path.join(emptyFolder(), 'shards');
  await pack(source, output, { workers: 1, splits: true });
  return output;
}

const folder = await packedSplits();

test('the option split selects the dataset, also by other usual names of the split', async () => {
  for (const [split, size] of [
    ['train', 30],
    ['val', 12],
    ['validation', 12],
  ] as const) {
    await using dataset = await openDataset(folder, { split });
    expect([dataset.size, dataset.splits, dataset.classes.length]).toEqual([size, ['train', 'val'], 3]);
    await using alone = await openDataset(path.join(folder, split === 'train' ? 'train' : 'val'));
    expect(dataset.identity).toBe(alone.identity);
  }
});

test('without a split, or with an unknown one, the error lists the existing splits', async () => {
  const several = 'contains several datasets (train, val): give the folder of one of them, or its name as the split.';
  await expect(openDataset(folder)).rejects.toThrow(several);
  await expect(verify(folder, { workers: 1 })).rejects.toThrow(several);
  await expect(openDataset(folder, { split: 'test' })).rejects.toThrow('No split "test" in ');
});

test.each([true, false])(
  'an append to several splits replaces and removes samples in each of them, or says what it would do (dry run: %s)',
  async (dryRun) => {
    const source = emptyFolder();
    for (const split of ['train', 'val'])
      cpSync(await smallImages({ samples: 4, classes: 2 }), path.join(source, split), { recursive: true });
    const output = path.join(emptyFolder(), 'shards');
    await pack(source, output, { workers: 1, splits: true });
    const [first] = (await readdir(path.join(source, 'val'), { recursive: true })).filter((file) =>
      file.endsWith('.jpg'),
    );
    rmSync(path.join(source, 'val', first!));
    const report = await pack(source, output, { workers: 1, splits: true, append: true, applyChanges: true, dryRun });
    expect(report.splits!.map(({ report: { changes } }) => changes?.gone)).toEqual([undefined, 1]);
    await using dataset = await openDataset(output, { split: 'val' });
    expect(dataset.size).toBe(dryRun ? 4 : 3);
  },
);

test('a single split is converted, even if other software wrote the folder', async () => {
  const mds = emptyFolder();
  for (const split of ['train', 'val'])
    await convert(folder, path.join(mds, split), { workers: 1, split, format: 'mds' });
  for (const split of ['train', 'val'])
    for (const file of ['dataset.json', 'pack.json']) rmSync(path.join(mds, split, file));
  await using dataset = await openDataset(mds, { split: 'val' });
  expect([dataset.size, dataset.format]).toEqual([12, 'mds']);
});

test('a dataset in a bucket can be opened by its split, too', async () => {
  const server = await bucketServer();
  try {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = path.join(entry.parentPath, entry.name);
      server.put(`data/${path.relative(folder, file)}`, await readFile(file));
    }
    const storage = { endpointUrl: server.endpoint, unsigned: true };
    await using dataset = await openDataset('s3://data', { split: 'train', storage });
    expect(dataset.size).toBe(30);
    await expect(openDataset('s3://data', { storage })).rejects.toThrow('several datasets (train, val)');
  } finally {
    await server.stop();
  }
});

test.each(['tar', 'lmdb', 'msgpack'] as const)(
  'a folder with images next to %s shards is opened as images',
  async (format) => {
    const place = emptyFolder();
    cpSync(await smallImages({ samples: 6 }), path.join(place, 'images'), { recursive: true });
    mkdirSync(path.join(place, 'shards'));
    cpSync(await packedSmall({ samples: 10 }, { format }), path.join(place, 'shards'), { recursive: true });
    await using dataset = await openDataset(place);
    expect([dataset.format, dataset.size]).toEqual(['folder', 6]);
  },
);
