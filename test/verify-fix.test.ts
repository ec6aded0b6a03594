import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { indexPathOf, readManifest, readShardIndex, type WrittenLayoutName } from '@shardtool/format';
import { type PackOptions, pack, repair, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkShard } from '#writer/check/check-shard';
import { findDatasetShards } from '#writer/shard/dataset-shards';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { digestsOf, jpeg, newFolder, type PackedSample, PNG, samplesOf, tree } from './pack-workbench.js';
import { TIMES } from './repetitions.js';

const formats = ['tar', 'msgpack', 'lmdb'] as const;

/** Images of some kilobytes with sidecar files, classes and a label column: everything that a shard can contain. */
const photo = (number: number) =>
  Buffer.concat([readFileSync('test/fixtures/odd-images/gray.jpg'), Buffer.from([number])]);
const source = tree({
  ...Object.fromEntries(
    Array.from({ length: 24 }, (_, i) => [
      `${i % 2 ? 'odd' : 'even'}/${i}.jpg`,
      i % 3 === 0 ? photo(i) : jpeg(`number ${i}`),
    ]),
  ),
  'even/4.json': '{"four": 4}',
  'even/4.seg.png': PNG,
  'odd/5.txt': 'five',
  'labels.csv': `path,score\n${Array.from({ length: 24 }, (_, i) => `${i % 2 ? 'odd' : 'even'}/${i}.jpg,${i * 1.5}`).join('\n')}\n`,
});
const options: PackOptions = {
  maxShardSamples: 8,
  fields: ['seg.png'],
  labels: path.join(source, 'labels.csv'),
};

interface Sound {
  readonly folder: string;
  readonly digests: Readonly<Record<string, string>>;
  readonly samples: ReadonlyMap<string, PackedSample>;
}

async function packed(format: WrittenLayoutName): Promise<Sound> {
  const folder = newFolder();
  await pack(source, folder, { workers: 1, ...options, format });
  const samples = new Map((await samplesOf(folder)).map((sample) => [sample.key, sample]));
  return { folder, digests: digestsOf(folder), samples };
}

const sound = new Map<WrittenLayoutName, Sound>();
for (const format of formats) sound.set(format, await packed(format));

function copyOf(format: WrittenLayoutName): string {
  const folder = path.join(emptyFolder(), 'copy');
  cpSync(sound.get(format)!.folder, folder, { recursive: true, preserveTimestamps: true });
  return folder;
}

function shardFile(folder: string, format: WrittenLayoutName, number: number): string {
  const name = `00000${number}.${format}`;
  return path.join(folder, format === 'lmdb' ? `${name}/data.mdb` : name);
}

function change(file: string, edit: (bytes: Buffer) => Buffer | undefined): void {
  const bytes = readFileSync(file);
  writeFileSync(file, edit(bytes) ?? bytes);
}

/** Flips a bit in the middle of a field. */
async function damage(file: string, row: number, field = 'jpg'): Promise<string> {
  const index = await readShardIndex(indexPathOf(file));
  const { offset, bytes } = index.fields.get(field)!;
  change(file, (content) => {
    content[offset[row]! + (bytes[row]! >> 1)]! ^= 4;
    return content;
  });
  return index.key[row]!;
}

/** Everything except the files that a repair keeps in addition to the dataset. */
function datasetDigests(folder: string): Record<string, string> {
  const kept = Object.entries(digestsOf(folder)).filter(
    ([file]) => !file.startsWith('quarantine/') && file !== 'quarantine.jsonl',
  );
  return Object.fromEntries(kept);
}

/** The faults that `verify` finds, without worker threads: starting them would take longer than the work here. */
async function verdictOn(folder: string): Promise<{ faults: readonly string[]; samples: number; shards: number }> {
  const { shards } = await findDatasetShards(folder);
  const verdicts = await Promise.all(shards.map((shard) => checkShard(shard, null)));
  const faults = verdicts.flatMap((verdict) => verdict.faults.map(({ reason }) => reason));
  return { faults, samples: verdicts.reduce((sum, { samples }) => sum + samples, 0), shards: shards.length };
}

function quarantined(folder: string): { path: string; reason: string; shard: string; key: string }[] {
  const file = path.join(folder, 'quarantine.jsonl');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe.each(formats)('%s', (format) => {
  const { digests, samples } = sound.get(format)!;

  test('a shard that cannot be read ends a repair before anything is replaced', async () => {
    const folder = copyOf('tar');
    const [gone, unreadable] = [shardFile(folder, 'tar', 0), shardFile(folder, 'tar', 1)];
    for (const file of [gone, unreadable]) rmSync(file);
    // A link to itself: it exists, but cannot be opened.
    symlinkSync(path.basename(unreadable), unreadable);
    const before = readdirSync(folder);
    await expect(repair(folder, { workers: 1 })).rejects.toThrow(/cannot be opened: its symbolic links form a loop/);
    await expect(verify(folder, { workers: 1 })).rejects.toThrow(/cannot be opened: its symbolic links form a loop/);
    expect(readdirSync(folder)).toEqual(before);
  });

  test('a sound dataset is unchanged, byte for byte', async () => {
    const folder = copyOf(format);
    expect(await repair(folder, { workers: 1 })).toMatchObject({
      shards: 3,
      samples: 24,
      repairedShards: 0,
      takenOut: 0,
    });
    expect(digestsOf(folder)).toEqual(digests);
  });

  test('threads find and repair the same as a repair without threads', async () => {
    const [here, apart] = [copyOf(format), copyOf(format)];
    for (const folder of [here, apart]) for (const shard of [0, 2]) await damage(shardFile(folder, format, shard), 3);
    let threads = 0;
    const count = () => threads++;
    process.on('worker', count);
    const found = async (folder: string, workers: { workers?: number } = {}) => {
      const faults: unknown[] = [];
      const report = await verify(folder, { ...workers, onFault: (fault) => faults.push(fault) });
      return { report, faults, repaired: await repair(folder, workers) };
    };
    const ofThis = await found(here);
    expect([ofThis.faults.length, threads]).toEqual([2, 0]);
    expect(await found(apart, { workers: 2 })).toEqual(ofThis);
    expect(threads).toBe(4);
    expect(datasetDigests(apart)).toEqual(datasetDigests(here));
    process.off('worker', count);
  });

  test('a damaged sample is removed, its shard is written again, and other shards are unchanged', async () => {
    const folder = copyOf(format);
    const key = await damage(shardFile(folder, format, 1), 3);
    const removedKeys: string[] = [];
    const report = await repair(folder, { workers: 1, onTakenOut: (sample) => removedKeys.push(sample.key) });
    expect(report).toMatchObject({ shards: 3, samples: 23, repairedShards: 1, takenOut: 1, restored: 0, unproven: 0 });
    expect(removedKeys).toEqual([key]);
    expect(await verdictOn(folder)).toMatchObject({ faults: [], samples: 23 });
    const left = (await samplesOf(folder)).map((sample) => sample.key);
    expect(left).toEqual([...samples.keys()].filter((name) => name !== key));
    for (const sample of await samplesOf(folder)) expect(sample).toEqual(samples.get(sample.key));
    const now = datasetDigests(folder);
    for (const file of Object.keys(digests)) {
      // The record no longer contains the source of the dataset.
      const isChanged = file.startsWith('000001') || file === 'dataset.json' || file === 'pack.json';
      expect(now[file] !== digests[file], file).toBe(isChanged);
    }
    expect(quarantined(folder)).toEqual([
      {
        shard: `000001.${format}`,
        key,
        path: samples.get(key)!.source,
        reason: expect.stringMatching(/has changed: crc32/),
      },
    ]);
    expect(existsSync(shardFile(path.join(folder, 'quarantine'), format, 1))).toBe(true);
    const { classes } = await readManifest(folder);
    expect(classes.reduce((sum, cls) => sum + cls.samples, 0)).toBe(23);
  });

  test('with the packed folder everything is restored, byte for byte, including the identity', async () => {
    const folder = copyOf(format);
    await damage(shardFile(folder, format, 0), 0);
    await damage(shardFile(folder, format, 0), 5);
    await damage(shardFile(folder, format, 2), 7);
    const report = await repair(folder, { workers: 1, source });
    expect(report).toMatchObject({ samples: 24, repairedShards: 2, restored: 3, takenOut: 0 });
    expect(datasetDigests(folder)).toEqual(digests);
    expect(quarantined(folder)).toEqual([]);
  });

  test('a missing shard is restored from the packed folder, or removed with all of its samples', async () => {
    const folder = copyOf(format);
    rmSync(shardFile(folder, format, 1));
    const without = path.join(emptyFolder(), 'without');
    cpSync(folder, without, { recursive: true });
    expect(await repair(folder, { workers: 1, source })).toMatchObject({ samples: 24, restored: 8 });
    expect(datasetDigests(folder)).toEqual(digests);

    expect(await repair(without, { workers: 1 })).toMatchObject({
      shards: 2,
      samples: 16,
      removedShards: 1,
      takenOut: 8,
    });
    expect(await verdictOn(without)).toMatchObject({ faults: [], samples: 16, shards: 2 });
    expect(quarantined(without)).toHaveLength(8);
    expect(existsSync(path.join(without, 'quarantine', '000001.parquet'))).toBe(true);
  });

  test('a truncated shard keeps the samples before the truncation', async () => {
    const folder = copyOf(format);
    change(shardFile(folder, format, 2), (bytes) => bytes.subarray(0, Math.floor(bytes.length * 0.6)));
    const { samples: left, takenOut } = await repair(folder, { workers: 1 });
    expect(left + takenOut).toBe(24);
    expect(left).toBeGreaterThan(16);
    for (const sample of await samplesOf(folder)) expect(sample).toEqual(samples.get(sample.key));
    expect(await verdictOn(folder)).toMatchObject({ faults: [], samples: left });
  });

  test('damage between the samples changes no sample, and the shard is restored', async () => {
    const folder = copyOf(format);
    const file = shardFile(folder, format, 0);
    const { offset } = await readShardIndex(path.join(folder, '000000.parquet'));
    change(file, (bytes) => {
      // A tar header, a page of LMDB, or the head of a msgpack map.
      if (format === 'lmdb') bytes[40]! ^= 0x10;
      else bytes[offset[2]!]! ^= 0x10;
      return bytes;
    });
    expect((await verdictOn(folder)).faults).not.toEqual([]);
    expect(await repair(folder, { workers: 1 })).toMatchObject({ samples: 24, repairedShards: 1, takenOut: 0 });
    expect(datasetDigests(folder)).toEqual(digests);
  });

  test('a lost index is rebuilt from an intact shard', async () => {
    const folder = copyOf(format);
    rmSync(path.join(folder, '000001.parquet'));
    const report = await repair(folder, { workers: 1 });
    expect(report).toMatchObject({ samples: 24, takenOut: 0, unproven: 0 });
    expect(report.lostColumns).toEqual([`000001.${format}: source`, `000001.${format}: score`]);
    expect(await verdictOn(folder)).toMatchObject({ faults: [], samples: 24 });
    for (const { key, fields, cls, size } of await samplesOf(folder)) {
      const before = samples.get(key)!;
      expect({ key, fields, cls, size }).toEqual({ key, fields: before.fields, cls: before.cls, size: before.size });
    }
  });

  test('an index with a damaged column loses only that column', async () => {
    const folder = copyOf(format);
    const index = path.join(folder, '000002.parquet');
    const before = await readShardIndex(index);
    // The column of the paths is near the start of the file.
    change(index, (bytes) => {
      bytes[bytes.indexOf('odd/') + 1]! ^= 1;
      return bytes;
    });
    const report = await repair(folder, { workers: 1 });
    expect(report).toMatchObject({ samples: 24, takenOut: 0 });
    const after = await readShardIndex(index);
    expect(after.columns).toEqual(before.columns);
    expect(after.key).toEqual(before.key);
    expect(await verdictOn(folder)).toMatchObject({ faults: [] });
  });

  test('a damaged manifest is rebuilt', async () => {
    const text = readFileSync(path.join(sound.get(format)!.folder, 'dataset.json'), 'utf8');
    const damages: ((text: string) => string)[] = [
      (whole) => whole.replace('"even"', '"evem"'),
      (whole) => whole.replace('"samples": 24', '"samples": 25'),
      (whole) => whole.replace('"version": 1', '"version": 7'),
      (whole) => whole.replace('"shards": [', '"shadrs": ['),
      (whole) => whole.replace('{"name":"odd"', '{"name"odd"'),
      (whole) => whole.replace(/"crc32":"[0-9a-f]{4}/, '"crc32":"ffff'),
      (whole) => whole.slice(0, 100),
      () => '',
    ];
    for (const edit of damages) {
      const folder = copyOf(format);
      expect(edit(text)).not.toBe(text);
      writeFileSync(path.join(folder, 'dataset.json'), edit(text));
      await expect(verify(folder, { workers: 1 }), edit(text)).rejects.toMatchObject({
        name: expect.stringMatching(/^(Manifest|Version)Error$/),
      });
      expect(await repair(folder, { workers: 1 }), edit(text)).toMatchObject({
        newManifest: true,
        samples: 24,
        takenOut: 0,
        lostClasses: [],
      });
      expect(datasetDigests(folder), edit(text)).toEqual(digests);
    }
  });
});

/** The changes that the property below makes to a folder. */
interface Damage {
  readonly file: number;
  readonly places: readonly { readonly at: number; readonly value: number; readonly length: number }[];
}

const damages = fc.array(
  fc.record({
    file: fc.nat(100),
    places: fc.array(
      fc.record({
        at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        value: fc.integer({ min: 1, max: 255 }),
        length: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 700 })),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  }),
  { minLength: 1, maxLength: 3 },
);

/** Changes bytes of shards, indexes and manifest, and returns the changed ranges by file. */
function apply(folder: string, files: readonly string[], list: readonly Damage[]): Map<string, [number, number][]> {
  const touched = new Map<string, [number, number][]>();
  for (const { file, places } of list) {
    const name = files[file % files.length]!;
    change(path.join(folder, name), (bytes) => {
      for (const { at, value, length } of places) {
        const from = Math.floor(at * bytes.length);
        const to = Math.min(bytes.length, from + length);
        for (let i = from; i < to; i++) bytes[i]! ^= value;
        touched.set(name, [...(touched.get(name) ?? []), [from, to]]);
      }
      return bytes;
    });
  }
  return touched;
}

/** Number of cases of damage for each layout and each way of repairing. */
const ROUNDS = 3 * TIMES;
// Shrinking a failing case repairs it again and again, which takes longer than finding it.
const RUN = { numRuns: ROUNDS, endOnFailure: true };
const LIMIT = { timeout: 60_000 + ROUNDS * 10_000 };

describe.each(formats)('in a dataset of %s with random damage', (format) => {
  const { folder: original, digests, samples } = sound.get(format)!;
  const files = Object.keys(digests).filter((file) => file !== 'pack.json');

  /** Keys of samples whose span in the shard is undamaged. */
  async function untouched(touched: Map<string, [number, number][]>): Promise<Set<string>> {
    const keys = new Set<string>();
    for (const { file } of (await readManifest(original)).shards) {
      const index = await readShardIndex(path.join(original, indexPathOf(file)));
      const ranges = touched.get(file) ?? [];
      for (let row = 0; row < index.samples; row++) {
        const from = index.offset[row]!;
        const end = from + index.bytes[row]!;
        if (ranges.every(([a, b]) => b <= from || a >= end)) keys.add(index.key[row]!);
      }
    }
    return keys;
  }

  test('a repair gives a sound dataset with every undamaged sample', LIMIT, async () => {
    await fc.assert(
      fc.asyncProperty(damages, async (list) => {
        const folder = copyOf(format);
        const touched = apply(folder, files, list);
        const hitIndexes = [...touched.keys()].filter((file) => file.endsWith('.parquet'));
        const report = await repair(folder, { workers: 1 });
        expect(await verdictOn(folder)).toMatchObject({ faults: [], samples: report.samples });
        const after = new Map((await samplesOf(folder)).map((sample) => [sample.key, sample]));
        // LMDB stores keys apart from the samples: if index and leaf are both damaged, a key is lost.
        const areKeysSafe = format !== 'lmdb' || hitIndexes.length === 0;
        for (const key of await untouched(touched)) {
          if (!areKeysSafe && !after.has(key)) continue;
          const before = samples.get(key)!;
          const now = after.get(key);
          expect(now, key).toBeDefined();
          expect(now!.fields, key).toEqual(before.fields);
          if (hitIndexes.length === 0) expect(now).toEqual(before);
        }
        // With its index a sample is never kept with wrong data.
        if (hitIndexes.length === 0) for (const [key, sample] of after) expect(sample).toEqual(samples.get(key));
        expect(report.samples).toBe(after.size);
        rmSync(path.dirname(folder), { recursive: true, force: true });
      }),
      RUN,
    );
  });

  test('with the packed folder nothing is lost as long as the indexes are intact', LIMIT, async () => {
    const hit = files.filter((file) => !file.endsWith('.parquet'));
    await fc.assert(
      fc.asyncProperty(damages, async (list) => {
        const folder = copyOf(format);
        apply(folder, hit, list);
        expect(await repair(folder, { source, workers: 1 })).toMatchObject({ samples: 24, takenOut: 0 });
        expect(datasetDigests(folder)).toEqual(digests);
        rmSync(path.dirname(folder), { recursive: true, force: true });
      }),
      RUN,
    );
  });
});

test('class names that only a damaged manifest contains are reported, unless nothing else in it is damaged', async () => {
  const classes = tree({
    'labels.csv': 'path,class\na.jpg,cherry\nb.jpg,plum\n',
    'a.jpg': jpeg('a'),
    'b.jpg': jpeg('b'),
  });
  const original = newFolder();
  await pack(classes, original, { workers: 1, labels: path.join(classes, 'labels.csv') });
  const manifest = path.join(original, 'dataset.json');
  const whole = readFileSync(manifest, 'utf8');
  writeFileSync(manifest, whole.replace('"plum"', '"plus"'));
  expect(await repair(original, { workers: 1 })).toMatchObject({
    newManifest: true,
    unprovenClasses: ['cherry', 'plus'],
    samples: 2,
  });
  expect(readFileSync(path.join(original, 'quarantine', 'dataset.json'), 'utf8')).toContain('"plus"');
  for (const edit of [/"samples": 2/, /"crc32": ".......(?=.")/]) {
    writeFileSync(
      manifest,
      whole.replace(edit, (found) => found.replace(/.$/, 'x')),
    );
    expect(await repair(original, { workers: 1 }), String(edit)).toMatchObject({
      newManifest: true,
      unprovenClasses: [],
    });
    expect(readFileSync(manifest, 'utf8')).toBe(whole);
  }
});

test('files that a repair replaces are quarantined: an index, and a whole shard from which images are removed', async () => {
  const folder = newFolder();
  const include = ['truncated-half.jpg', 'gray.jpg'];
  await pack('test/fixtures/odd-images', folder, { workers: 1, include });
  const before = readFileSync(path.join(folder, '000000.tar'));
  await repair(folder, { workers: 1, check: 'decode' });
  expect(readFileSync(path.join(folder, 'quarantine', '000000.tar')).equals(before)).toBe(true);
  const index = path.join(folder, '000000.parquet');
  change(index, (bytes) => {
    bytes[20]! ^= 1;
    return bytes;
  });
  const damaged = readFileSync(index);
  await repair(folder, { workers: 1 });
  expect(readFileSync(path.join(folder, 'quarantine', '1', '000000.parquet')).equals(damaged)).toBe(true);
});

test('an unreadable index does not count as lost', async () => {
  const folder = copyOf('tar');
  rmSync(path.join(folder, '000001.parquet'));
  mkdirSync(path.join(folder, '000001.parquet'));
  await expect(repair(folder, { workers: 1 })).rejects.toMatchObject({ name: 'FileError' });
});

test('a repair that was interrupted between a shard and its index, or before the manifest, can be repeated', async () => {
  const whole = copyOf('tar');
  await damage(shardFile(whole, 'tar', 1), 2);
  const repaired = path.join(emptyFolder(), 'repaired');
  cpSync(whole, repaired, { recursive: true });
  await repair(repaired, { workers: 1 });
  for (const files of [['000001.tar'], ['000001.tar', '000001.parquet']]) {
    const folder = path.join(emptyFolder(), 'between');
    cpSync(whole, folder, { recursive: true });
    for (const file of files) copyFileSync(path.join(repaired, file), path.join(folder, file));
    expect(await repair(folder, { workers: 1 })).toMatchObject({ samples: 23 });
    expect(datasetDigests(folder)).toEqual(datasetDigests(repaired));
  }
});

test('images that were already damaged when they were packed are removed only with check decode', async () => {
  const folder = newFolder();
  const include = ['truncated-half.jpg', 'gray.jpg', 'progressive.jpg'];
  await pack('test/fixtures/odd-images', folder, { workers: 1, include });
  expect(await repair(folder, { workers: 1 })).toMatchObject({ samples: 3, repairedShards: 0 });
  expect(await repair(folder, { workers: 1, check: 'decode', source: 'test/fixtures/odd-images' })).toMatchObject({
    samples: 2,
    takenOut: 1,
  });
  expect(quarantined(folder)[0]!.reason).toMatch(/^field "jpg" cannot be fully decoded: /);
});

test('indexes for other loaders are updated for the new shards', async () => {
  const folder = newFolder();
  await pack(source, folder, { workers: 1, ...options, index: ['wids', 'dali'] });
  const before = digestsOf(folder);
  await damage(shardFile(folder, 'tar', 0), 1);
  await repair(folder, { workers: 1 });
  expect(quarantined(folder)).toHaveLength(1);
  const after = digestsOf(folder);
  const files = ['000000.idx', '000001.idx', '000002.idx', 'shardindex.json'];
  expect(files.filter((file) => after[file] !== before[file])).toEqual(['000000.idx', 'shardindex.json']);
  const { shardlist } = JSON.parse(readFileSync(path.join(folder, 'shardindex.json'), 'utf8'));
  const md5 = (file: string) =>
    createHash('md5')
      .update(readFileSync(path.join(folder, file)))
      .digest('hex');
  expect(shardlist).toMatchObject(
    ['000000.tar', '000001.tar', '000002.tar'].map((url, i) => ({ url, nsamples: i === 0 ? 7 : 8, md5sum: md5(url) })),
  );
  expect(readFileSync(path.join(folder, '000000.idx'), 'utf8')).toMatch(/^v1\.2 7\n/);
});

test('files named like indexes of tars next to other shards are kept', async () => {
  const folder = copyOf('lmdb');
  for (const file of ['shardindex.json', '000000.idx']) writeFileSync(path.join(folder, file), 'theirs');
  rmSync(path.join(folder, '000000.parquet'));
  expect(await repair(folder, { workers: 1 })).toMatchObject({ samples: 24, takenOut: 0 });
  expect(readFileSync(path.join(folder, 'shardindex.json'), 'utf8')).toBe('theirs');
  expect(readFileSync(path.join(folder, '000000.idx'), 'utf8')).toBe('theirs');
});

test('LMDB shards whose values are images keep that form', async () => {
  const folder = newFolder();
  await pack(source, folder, {
    workers: 1,
    maxShardSamples: 8,
    format: 'lmdb',
    lmdbValues: 'image',
    exclude: ['**/*.{json,txt,csv,seg.png}'],
  });
  const digests = digestsOf(folder);
  await damage(shardFile(folder, 'lmdb', 0), 1);
  expect(await repair(folder, { workers: 1, source })).toMatchObject({ restored: 1, samples: 24 });
  expect(datasetDigests(folder)).toEqual(digests);
});

test('the error for a dataset that cannot be repaired says so', async () => {
  await expect(repair('test/fixtures/tar', { workers: 1 })).rejects.toThrow(/shards of other software/);
  const unfinished = copyOf('tar');
  rmSync(path.join(unfinished, 'dataset.json'));
  await expect(repair(unfinished, { workers: 1 })).rejects.toMatchObject({ name: 'UnfinishedPackError' });
  const locked = copyOf('tar');
  writeFileSync(path.join(locked, 'pack.lock'), JSON.stringify({ pid: 1, host: 'elsewhere', started: null }));
  await expect(repair(locked, { workers: 1 })).rejects.toMatchObject({ name: 'OutputLockedError' });
  const empty = copyOf('tar');
  for (const name of readdirSync(empty).filter((file) => file.endsWith('.tar'))) rmSync(path.join(empty, name));
  await expect(repair(empty, { workers: 1 })).rejects.toThrow(/Nothing in .* can be repaired.*"source"/);
});

test('verify --fix prints what it did, and exits with 1 only if something is lost', async () => {
  const folder = copyOf('tar');
  const key = await damage(shardFile(folder, 'tar', 1), 3);
  const restored = await shardtool('verify', folder, '--fix', '--source', source);
  expect(restored).toMatchObject({ code: 0, stderr: '' });
  expect(restored.stdout).toBe(
    '1 shard repaired; the dataset has 3 shards, 24 samples\n  1 sample was restored\n  the folder quarantine keeps the replaced files\n',
  );
  expect((await shardtool('verify', folder, '--fix')).stdout).toBe('3 shards, 24 samples: nothing to repair\n');
  await damage(shardFile(folder, 'tar', 1), 3);
  const lost = await shardtool('verify', folder, '--fix');
  expect(lost.code).toBe(1);
  expect(lost.stdout.split('\n')[0]).toMatch(new RegExp(`^000001\\.tar\\t${key}\\tfield "jpg" has changed`));
  expect(lost.stdout).toContain('1 damaged sample was removed');
  const json = await shardtool('verify', folder, '--fix', '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ samples: 23, takenOut: 0, repairedShards: 0 });
  expect(await shardtool('verify', folder, '--source', source)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--source is for repairs: also set --fix'),
  });
});
