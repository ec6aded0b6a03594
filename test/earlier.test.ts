import { appendFileSync, cpSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import path from 'node:path';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { convert, indexShards, type PackOptions, pack, repair, verify } from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { batchesOf } from './loader-look.js';
import { digestsOf, newFolder, samplesOf } from './pack-workbench.js';

/**
 * Datasets, an unfinished pack and states of loaders that an earlier build wrote (see `make.mjs` next to them), as users
 * have them on their disks. They are never generated again when the code changes.
 */
const EARLIER = path.resolve('test/fixtures/earlier');
const at = (name: string) => path.join(EARLIER, name);

/** The options of each pack there. One of the 25 files is not an image. */
const COMMON: PackOptions = {
  labels: at('labels.csv'),
  fields: ['seg.png'],
  maxShardSamples: 7,
  onBad: 'quarantine',
  maxBad: 0.5,
  seed: 3,
  workers: 1,
};
const PACKS: Readonly<Record<string, PackOptions>> = {
  tar: { ...COMMON, index: ['wids', 'dali'], name: 'train' },
  msgpack: { ...COMMON, format: 'msgpack' },
  lmdb: { ...COMMON, format: 'lmdb' },
  'lmdb-images': {
    ...COMMON,
    format: 'lmdb',
    lmdbValues: 'image',
    fields: [],
    exclude: ['**/*.{json,txt,seg.png}'],
  },
  npy: { ...COMMON, imageFormat: 'npy', exclude: ['**/*.seg.png'], fields: [] },
};

/** A copy that may be changed, with the same name. */
function copyOf(name: string): string {
  const copy = path.join(emptyFolder(), name);
  cpSync(at(name), copy, { recursive: true });
  return copy;
}

/** A copy whose files have the old time with which the unfinished pack was planned. */
function copyOfThen(name: string): string {
  const copy = copyOf(name);
  for (const file of readdirSync(copy, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.parquet')) utimesSync(path.join(copy, file), 1_700_000_000, 1_700_000_000);
  }
  return copy;
}

/** Indexes of foreign tars are used only if they are not older than their tars; a checkout sets both times arbitrarily. */
const foreign = copyOfThen('foreign');

/** Digests of all files except the list of bad files, which contains the folder of the source, and the record of the pack. */
function bytesOf(folder: string): Record<string, string> {
  const { 'quarantine.jsonl': _list, 'pack.json': _note, ...digests } = digestsOf(folder);
  return digests;
}

describe.each(Object.entries(PACKS))('an earlier dataset of %s', (name, options) => {
  test('passes verify, including decoding', async () => {
    expect(await verify(at(name), { workers: 1, check: 'decode' })).toMatchObject({
      shards: 4,
      samples: 24,
      faults: 0,
    });
  });

  test('opens with every sample, its fields, class and columns', async () => {
    const samples = await samplesOf(at(name));
    expect(samples).toHaveLength(24);
    for (const { key, source, fields, cls, columns } of samples) {
      const original = readFileSync(path.join(at('source'), source)).toString('latin1');
      if (name !== 'npy') expect(fields.png).toBe(original);
      expect(cls).toBe(key.startsWith('cat') ? 0 : 1);
      expect(columns.score).toBe(Number(key.slice(-2)) / 4);
    }
    await using dataset = await openDataset(at(name));
    const keys: string[] = [];
    for await (const sample of dataset.samples()) keys.push(sample.key);
    expect(keys).toEqual(samples.map(({ key }) => key));
  });

  test('is byte-for-byte identical to the same pack of today', async () => {
    const output = newFolder();
    await pack(at('source'), output, options);
    expect(bytesOf(output)).toEqual(bytesOf(at(name)));
  });

  test('is unchanged by a repair', async () => {
    const copy = copyOf(name);
    expect(await repair(copy, { workers: 1 })).toMatchObject({ samples: 24, repairedShards: 0, takenOut: 0 });
    expect(digestsOf(copy)).toEqual(digestsOf(at(name)));
  });
});

test('a pack that an earlier build did not finish resumes, and the result has the same bytes', async () => {
  const output = copyOf('unfinished');
  const report = await pack(copyOfThen('source'), output, PACKS.tar);
  expect(report).toMatchObject({ keptShards: 1, shards: 4, samples: 24, isCommitted: true });
  expect(bytesOf(output)).toEqual(bytesOf(at('tar')));
});

test('an append to an earlier dataset keeps its shards', async () => {
  const output = copyOf('tar');
  const source = copyOf('source');
  cpSync(path.join(source, 'cat/00.png'), path.join(source, 'cat/new.png'));
  const labels = path.join(source, 'labels.csv');
  cpSync(at('labels.csv'), labels);
  appendFileSync(labels, 'cat/new.png,7,new\n');
  const report = await pack(source, output, { append: true, labels, workers: 1 });
  expect(report).toMatchObject({ samples: 1, shards: 1, isCommitted: true });
  const before = digestsOf(at('tar'));
  const after = digestsOf(output);
  const shards = Object.keys(before).filter((file) => file.startsWith('train-'));
  expect(shards).toHaveLength(12);
  for (const file of shards) expect(after[file], file).toBe(before[file]);
});

test('an earlier index of tars of other software is used to open them', async () => {
  expect(await verify(foreign, { workers: 1 })).toMatchObject({ shards: 2, samples: 13, faults: 0, checksums: true });
});

/** Every sample of the dataset, with its payloads as text. In Parquet the class is a column and not a field. */
async function opened(place: string): Promise<unknown[]> {
  await using dataset = await openDataset(place);
  const samples: unknown[] = [];
  for await (const { key, label: cls, fields, columns } of dataset.samples({ checksum: true })) {
    const { cls: _, ...others } = fields;
    const texts = Object.entries(others).map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')]);
    samples.push([key, cls, columns, texts]);
  }
  return samples;
}

describe('an earlier Parquet dataset with its indexes next to its shards', () => {
  test('has no faults, and opens with its keys, its columns, its crop indexes and its inspection', async () => {
    expect(await verify(at('parquet'), { workers: 1 })).toMatchObject({ shards: 4, samples: 24, faults: 0 });
    expect(await opened(at('parquet'))).toEqual(await opened(at('tar')));
    await using dataset = await openDataset(at('parquet'));
    expect(await dataset.files.files[0]!.findCropIndex()).toBe(at('parquet/data/train-00000-of-00004.crops'));
    const inspection = await dataset.files.files[0]!.loadInspection!();
    expect([...inspection!.columns.keys()].length).toBeGreaterThan(0);
  });

  test('is replaced completely by --overwrite, and index moves its sidecar files', async () => {
    const copy = copyOf('parquet');
    const sidecars = readdirSync(path.join(copy, 'data')).filter((name) => !name.endsWith('.parquet'));
    expect(sidecars).toHaveLength(12);
    expect(await indexShards([copy])).toMatchObject({ kept: 4, shards: 0 });
    expect(readdirSync(copy)).toEqual(expect.arrayContaining(sidecars));
    expect(readdirSync(path.join(copy, 'data')).every((name) => name.endsWith('.parquet'))).toBe(true);
    expect(await opened(copy)).toEqual(await opened(at('tar')));
    const other = copyOf('parquet');
    await convert(at('lmdb-images'), other, { format: 'parquet', overwrite: true, workers: 1 });
    expect(readdirSync(path.join(other, 'data')).every((name) => name.endsWith('.parquet'))).toBe(true);
    expect(readdirSync(other).filter((name) => /\.(crops|inspect)$/.test(name))).toEqual([]);
  });

  test('opens by its earlier indexes if only its data folder is copied, and index moves them', async () => {
    const folder = path.join(copyOf('parquet'), 'data');
    for (const file of readdirSync(folder)) utimesSync(path.join(folder, file), 1_700_000_000, 1_700_000_000);
    rmSync(path.join(folder, '../dataset.json'));
    expect(await indexShards([folder])).toMatchObject({ kept: 4, shards: 0 });
    const left = readdirSync(folder).filter((name) => !name.endsWith('.parquet'));
    expect(left).toHaveLength(12);
    expect(left.every((name) => name.startsWith('.'))).toBe(true);
  });
});

interface EarlierRun {
  readonly dataset: string;
  readonly after: number;
  readonly options: LoaderOptions;
  /** Options that are changed in the resumed run. */
  readonly with?: LoaderOptions;
  readonly state: unknown;
  /** Epoch, key, label, validity, and crc32 of pixels or bytes of every remaining row. */
  readonly rest: readonly string[];
}

const runs: EarlierRun[] = JSON.parse(readFileSync(at('states.json'), 'utf8'));
/** Options that earlier builds knew by another name. */
const RENAMED: Readonly<Record<string, string>> = {
  repeat: 'epochsPerLoop',
  streams: 'streams',
  epochSamples: 'samplesPerEpoch',
};
const withCurrentNames = (options: LoaderOptions | undefined): LoaderOptions =>
  Object.fromEntries(Object.entries(options ?? {}).map(([name, value]) => [RENAMED[name] ?? name, value]));

test.each(runs.map((run, number) => [number, run.dataset, run] as const))(
  'the state of run %i, over %s, resumes with the same rows and pixels as then',
  async (_, name, { options, with: others, state, rest }) => {
    const batches = await batchesOf(name === 'foreign' ? foreign : at(name), {
      ...withCurrentNames(options),
      ...withCurrentNames(others),
      state,
    });
    const rows = batches.flatMap(({ epoch, keys, labels, valid, rows: checks }) =>
      keys.map((key, row) => `${epoch} ${key} ${labels[row]} ${valid[row]} ${checks[row]!.toString(16)}`),
    );
    expect(rows).toEqual(rest);
  },
);
