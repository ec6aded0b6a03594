/** Overlays: other classes, columns, splits and excluded samples, next to unchanged shards. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OverlayError } from '@shardtool/format';
import {
  addOverlay,
  checkOverlays,
  getStats,
  listOverlays,
  openDataset,
  planDataset,
  removeOverlay,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import {
  compactDataset,
  convert,
  eraseSamples,
  listVersions,
  type PackOptions,
  pack,
  restoreVersion,
  verify,
} from '@shardtool/writer';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bin } from './cli-process.js';
import { emptyFolder, packedPhotos, packedSmall, smallImages } from './datasets.js';
import { jpeg } from './pack-workbench.js';

/** Key and class of every sample of a dataset. */
async function classesOf(...given: Parameters<typeof openDataset>): Promise<Map<string, string>> {
  await using dataset = await openDataset(...given);
  const classes = new Map<string, string>();
  for await (const { key, label: cls } of dataset.samples()) classes.set(key, dataset.classes[cls] ?? '-');
  return classes;
}

test('an overlay excludes samples and gives others another class, in every layout, and the shards are unchanged', async () => {
  for (const format of ['tar', 'lmdb', 'msgpack'] as const) {
    const shards = await packedPhotos({ format });
    const before = await classesOf(shards);
    const files = readdirSync(shards, { recursive: true }).filter((name) =>
      /\.(tar|mdb|msgpack|parquet|json)$/.test(`${name}`),
    );
    const sums = () =>
      files.map((name) =>
        createHash('md5')
          .update(readFileSync(path.join(shards, `${name}`)))
          .digest('hex'),
      );
    const sumsBefore = sums();
    const report = await addOverlay(shards, {
      name: 'clean',
      excludeKeys: ['cat/cat_001', 'moon/moon_002'],
      labels: { by: 'key', id: ['cat/cat_002', 'cat/cat_003'], cls: ['moon', 'ghost'], columns: new Map() },
    });
    expect(report).toMatchObject({ excluded: 2, relabelled: 2, classes: 7 });

    const after = await classesOf(shards, { overlay: 'clean' });
    const expected = new Map(before);
    for (const key of ['cat/cat_001', 'moon/moon_002']) expected.delete(key);
    expected.set('cat/cat_002', 'moon').set('cat/cat_003', 'ghost');
    expect(after).toEqual(expected);
    expect(await classesOf(shards)).toEqual(before);
    expect(sums()).toEqual(sumsBefore);

    await using dataset = await openDataset(shards, { overlay: 'clean' });
    const stats = await getStats(dataset);
    expect(stats.samples).toBe(58);
    expect(Object.fromEntries(stats.classes.map(({ name, samples }) => [name, samples]))).toEqual(
      Object.fromEntries(dataset.classes.map((name, cls) => [name, dataset.classSamples[cls]])),
    );
    expect(dataset.classSamples).toEqual(
      dataset.classes.map((name) => [...expected.values()].filter((cls) => cls === name).length),
    );
  }
});

test('a loader delivers the dataset of the overlay, and its state is rejected with another overlay', async () => {
  const shards = await packedPhotos();
  await addOverlay(shards, { name: 'one', excludeKeys: ['cat/cat_001'] });
  await addOverlay(shards, { name: 'two', parent: 'one', excludeKeys: ['cat/cat_002'] });
  const expected = await classesOf(shards, { overlay: 'two' });
  expect(expected.size).toBe(58);
  await using dataset = await openDataset(shards, { overlay: 'two' });
  const loader = dataset.loader({ transform: 'eval224', batchSize: 7, workers: 1, fields: [] });
  const seen = new Map<string, string>();
  for await (const batch of loader) {
    for (const [row, key] of batch.keys.entries()) seen.set(key, dataset.classes[batch.labels[row]!]!);
  }
  const state = loader.state();
  await loader.close();
  expect(seen).toEqual(expected);
  await using other = await openDataset(shards, { overlay: 'one' });
  const refused = other.loader({ transform: 'eval224', state });
  await expect(refused.info()).rejects.toThrow(
    /belongs to another dataset .*overlay two [0-9a-f]{16}.*overlay one [0-9a-f]{16}/,
  );
  await refused.close();
});

test('classes can be renamed, merged and reordered', async () => {
  const shards = await packedPhotos();
  const before = await classesOf(shards);
  const rename = new Map([
    ['cat', 'animal'],
    ['moon', 'sky'],
    ['galaxies', 'sky'],
  ]);
  const classes = ['sky', 'animal', 'astronaut', 'rocket', 'coffee'];
  await addOverlay(shards, { name: 'fewer', rename, classes });
  await using dataset = await openDataset(shards, { overlay: 'fewer' });
  expect(dataset.classes).toEqual(classes);
  expect(dataset.classSamples[0]).toBe(
    [...before.values()].filter((name) => ['moon', 'galaxies'].includes(name)).length,
  );
  const after = await classesOf(shards, { overlay: 'fewer' });
  expect(after).toEqual(new Map([...before].map(([key, name]) => [key, rename.get(name) ?? name])));
});

test('columns of an overlay are columns of the dataset, also in where', async () => {
  const shards = await packedPhotos();
  const id = ['cat/cat_001.jpg', 'rocket/rocket_001.jpg'];
  await addOverlay(shards, {
    name: 'scores',
    labels: {
      by: 'path',
      id,
      cls: null,
      columns: new Map([
        ['score', [0.5, 0.9]],
        ['__proto__', ['a', 'b']],
      ]),
    },
  });
  await using dataset = await openDataset(shards, { overlay: 'scores' });
  const loader = dataset.loader({ transform: 'raw', where: 'score > 0.6', batchSize: 4, fields: [] });
  const keys: string[] = [];
  for await (const batch of loader) keys.push(...batch.keys);
  await loader.close();
  expect(keys).toEqual(['rocket/rocket_001']);
});

test('random chains of overlays give the same result as a simple model', async () => {
  const shards = await packedSmall({ samples: 40, classes: 3 }, { maxShardSamples: 7 });
  const before = await classesOf(shards);
  const keys = [...before.keys()];
  const layer = fc.record({
    exclude: fc.uniqueArray(fc.constantFrom(...keys), { maxLength: 6 }),
    relabel: fc.dictionary(fc.constantFrom(...keys), fc.constantFrom('a', 'b', 'c', 'new', 'other'), { maxKeys: 6 }),
  });
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(layer, { minLength: 1, maxLength: 4 }), async (layers) => {
      const expected = new Map(before);
      let parent: string | undefined;
      for (const { exclude, relabel } of layers) {
        const gone = exclude.filter((key) => expected.has(key));
        const labels = Object.entries(relabel).filter(([key]) => expected.has(key) && !gone.includes(key));
        const isChange = gone.length > 0 || labels.some(([key, cls]) => expected.get(key) !== cls);
        if (!isChange) continue;
        for (const key of gone) expected.delete(key);
        for (const [key, cls] of labels) expected.set(key, cls);
        const name = `random-${number++}`;
        await addOverlay(shards, {
          name,
          parent,
          excludeKeys: gone,
          labels: { by: 'key', id: labels.map(([key]) => key), cls: labels.map(([, cls]) => cls), columns: new Map() },
        });
        parent = name;
      }
      if (parent === undefined) return;
      expect(await classesOf(shards, { overlay: parent })).toEqual(expected);
      await using dataset = await openDataset(shards, { overlay: parent });
      expect(dataset.classSamples).toEqual(
        dataset.classes.map((name) => [...expected.values()].filter((cls) => cls === name).length),
      );
    }),
    { numRuns: 15 },
  );
  expect(await checkOverlays(shards)).toEqual([]);
});

test('a split has its share of each class, no sample on both sides, and does not change when the dataset grows', async () => {
  const images = await smallImages({ samples: 90, classes: 3 });
  const shards = path.join(emptyFolder(), 'shards');
  const options: PackOptions = { workers: 1, maxShardSamples: 16 };
  await pack(images, shards, options);
  const first = await splitDataset(shards, {
    shares: new Map([
      ['val', 0.2],
      ['test', 0.1],
    ]),
    byClass: true,
  });
  expect(first.splits.map(({ name, samples }) => ({ name, samples }))).toEqual([
    { name: 'val', samples: 18 },
    { name: 'test', samples: 9 },
    { name: 'train', samples: 63 },
  ]);
  const sides = async () => {
    const found = new Map<string, string>();
    for (const split of ['val', 'test', 'train']) {
      for (const key of (await classesOf(shards, { overlay: 'split', split })).keys()) {
        expect(found.has(key)).toBe(false);
        found.set(key, split);
      }
    }
    return found;
  };
  const before = await sides();
  expect(before.size).toBe(90);
  await using val = await openDataset(shards, { overlay: 'split', split: 'val' });
  expect(val.classSamples).toEqual([6, 6, 6]);
  await using whole = await openDataset(shards);
  const settings = { transform: 'train224', batchSize: 2, workers: 1 } as const;
  await using loaderOfAll = whole.loader(settings);
  await using loaderOfVal = val.loader(settings);
  const { blockSamples } = await loaderOfAll.info();
  expect((await loaderOfVal.info()).blockSamples, 'images of like sizes: the block of the whole dataset').toBe(
    blockSamples,
  );
  const { transform, batchSize } = settings;
  const { memory, reads } = await planDataset(val, { transform, batchSize });
  const planned = await planDataset(whole, { transform, batchSize });
  expect(memory.readBytes).toBeLessThan(planned.memory.readBytes / 3);
  expect(reads.largestBytes).toBeLessThan(planned.reads.largestBytes);

  mkdirSync(path.join(images, 'new'));
  for (let i = 0; i < 30; i++) {
    writeFileSync(path.join(images, 'new', `n${i}.jpg`), readFileSync(path.join(images, 'a', '0000.jpg')));
  }
  await pack(images, shards, { workers: 1, ...options, append: true });
  await expect(openDataset(shards, { overlay: 'split', split: 'val' })).rejects.toThrow(
    /has grown since the split "val" was created .* run the same "shardtool split" again/,
  );
  const again = await splitDataset(shards, {
    shares: new Map([
      ['val', 0.2],
      ['test', 0.1],
    ]),
    byClass: true,
  });
  expect(again.isNew).toBe(true);
  const after = await sides();
  expect(after.size).toBe(120);
  expect(new Map([...after].filter(([key]) => before.has(key)))).toEqual(before);
  expect(
    (
      await splitDataset(shards, {
        shares: new Map([
          ['val', 0.2],
          ['test', 0.1],
        ]),
        byClass: true,
      })
    ).isNew,
  ).toBe(false);
  await expect(splitDataset(shards, { shares: new Map([['val', 0.3]]) })).rejects.toThrow(
    /is not this split: choose another name/,
  );
});

test('a change that adds samples puts each into a split, and the others stay in theirs', async () => {
  const options = { workers: 1, shuffle: false } as const;
  const add = (images: string, from: number, to: number) => {
    for (let i = from; i < to; i++) writeFileSync(path.join(images, 'a', `${i}.jpg`), jpeg(i));
  };
  const start = async () => {
    const images = emptyFolder();
    mkdirSync(path.join(images, 'a'));
    add(images, 0, 20);
    const shards = path.join(emptyFolder(), 'shards');
    await pack(images, shards, options);
    return { images, shards };
  };
  const split = (shards: string) => splitDataset(shards, { shares: new Map([['val', 0.4]]) });
  const sides = async (shards: string) => {
    const found = new Map<string, string>();
    for (const name of ['val', 'train'])
      for (const key of (await classesOf(shards, { overlay: 'split', split: name })).keys()) found.set(key, name);
    return found;
  };
  const changes: Record<string, (shards: string, images: string) => Promise<unknown>> = {
    async appliedChanges(shards, images) {
      writeFileSync(path.join(images, 'a', '3.jpg'), jpeg('other'));
      add(images, 20, 30);
      await pack(images, shards, { ...options, append: true, applyChanges: true, compare: 'checksum' });
    },
    async compaction(shards, images) {
      add(images, 20, 30);
      await pack(images, shards, { ...options, append: true });
      await compactDataset(shards);
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    const { images, shards } = await start();
    await split(shards);
    const before = await sides(shards);
    expect(before.size).toBe(20);
    await change(shards, images);
    const after = await sides(shards);
    expect([name, after.size]).toEqual([name, 30]);
    expect(new Map([...after].filter(([key]) => before.has(key)))).toEqual(before);
    expect((await split(shards)).isNew).toBe(false);
  }
  // An erased sample comes back.
  const { shards } = await start();
  const [current] = await listVersions(shards);
  await eraseSamples(shards, { keys: ['a/7'] });
  await split(shards);
  expect((await sides(shards)).size).toBe(19);
  await restoreVersion(shards, current!.version);
  expect((await sides(shards)).size).toBe(20);
});

test('a sample stays in its split by class when its class changes and the split is drawn again', async () => {
  const images = emptyFolder();
  const labels = path.join(emptyFolder(), 'labels.csv');
  const label = (classOf: (i: number) => string, count: number) => {
    for (let i = 0; i < count; i++) writeFileSync(path.join(images, `${i}.jpg`), jpeg(i));
    const rows = Array.from({ length: count }, (_, i) => `${i}.jpg,${classOf(i)}`);
    writeFileSync(labels, `path,class\n${rows.join('\n')}\n`);
  };
  const shards = path.join(emptyFolder(), 'shards');
  const options = { labels, workers: 1, shuffle: false, maxShardSamples: 30 } as const;
  label((i) => (i < 30 ? 'ant' : 'bee'), 60);
  await pack(images, shards, options);
  const split = () => splitDataset(shards, { shares: new Map([['val', 0.4]]), byClass: true });
  const sides = async () => {
    const [val, train] = await Promise.all(
      ['val', 'train'].map((name) => classesOf(shards, { overlay: 'split', split: name })),
    );
    return [[...val!.keys()].sort(), [...train!.keys()].sort()];
  };
  await split();
  const before = await sides();
  label((i) => (i < 30 ? 'bee' : 'ant'), 60);
  await pack(images, shards, { ...options, append: true, applyChanges: true, compare: 'checksum' });
  expect(await sides()).toEqual(before);
  label((i) => (i < 30 ? 'bee' : 'ant'), 61);
  await pack(images, shards, { ...options, append: true });
  expect((await split()).isNew).toBe(true);
  const after = await sides();
  expect(after.map((keys) => keys.filter((key) => key !== '60'))).toEqual(before);
  expect(after.flat()).toHaveLength(61);
});

test('a group is never divided between two sides of a split', async () => {
  const images = await smallImages({ samples: 60, classes: 2 });
  const labels = path.join(emptyFolder(), 'labels.csv');
  const rows = Array.from({ length: 60 }, (_, i) => {
    const cls = 'ab'[i % 2];
    return `${cls}/${String(i).padStart(4, '0')}.jpg,patient${i % 9}`;
  });
  writeFileSync(labels, ['path,patient', ...rows].join('\n'));
  const shards = path.join(emptyFolder(), 'shards');
  await pack(images, shards, { workers: 1, maxShardSamples: 16, labels });
  await splitDataset(shards, { shares: new Map([['val', 0.4]]), group: 'patient' });
  const groups = async (split: string) => {
    await using dataset = await openDataset(shards, { overlay: 'split', split });
    const found = new Set<unknown>();
    for (let shard = 0; shard < dataset.shards.length; shard++) {
      for (const value of (await dataset.files.index(shard)).columns.get('patient')!) found.add(value);
    }
    return found;
  };
  const [val, train] = [await groups('val'), await groups('train')];
  expect(val.size + train.size).toBe(9);
  expect(val.size).toBeGreaterThan(0);
  expect([...val].filter((patient) => train.has(patient))).toEqual([]);
  await expect(splitDataset(shards, { name: 'x', shares: new Map([['val', 0.4]]), group: 'doctor' })).rejects.toThrow(
    /No sample has a column "doctor"/,
  );
});

test('a subset contains the samples that match all conditions, also on top of other overlays', async () => {
  const shards = await packedSmall({ samples: 200, classes: 4 }, { maxShardSamples: 30 });
  await addOverlay(shards, { name: 'clean', excludeKeys: ['a/0000', 'b/0001'], rename: new Map([['d', 'c']]) });
  const clean = await classesOf(shards, { overlay: 'clean' });
  const report = await subsetDataset(shards, { name: 'part', parent: 'clean', classes: ['a', 'c'], share: 0.5 });
  const part = await classesOf(shards, { overlay: 'part' });
  expect(part.size).toBe(report.samples);
  expect([...new Set(part.values())].sort()).toEqual(['a', 'c']);
  for (const [key, cls] of part) expect(clean.get(key)).toBe(cls);
  expect(report.samples / 148).toBeGreaterThan(0.35);
  expect(report.samples / 148).toBeLessThan(0.65);
  await using dataset = await openDataset(shards, { overlay: 'part' });
  expect(dataset.classSamples).toEqual(
    dataset.classes.map((name) => [...part.values()].filter((cls) => cls === name).length),
  );
  await addOverlay(shards, { name: 'less', parent: 'part', excludeKeys: [[...part.keys()][0]!] });
  expect((await classesOf(shards, { overlay: 'less' })).size).toBe(part.size - 1);
  await subsetDataset(shards, { name: 'again', parent: 'clean', classes: ['a', 'c'], share: 0.5 });
  expect(await classesOf(shards, { overlay: 'again' })).toEqual(part);
  await expect(subsetDataset(shards, { name: 'x', classes: ['dog'] })).rejects.toThrow(/no class "dog"/);
  await expect(subsetDataset(shards, { name: 'x', where: 'width > 9000' })).rejects.toThrow(
    /No sample is in the subset/,
  );
  await expect(subsetDataset(shards, { name: 'x', keys: ['a/0000', 'unknown'] })).rejects.toThrow(
    /keys: .* has no sample with the key "unknown"/,
  );
});

test('convert turns the dataset of an overlay into a separate dataset, in any layout, that records its origin', async () => {
  const shards = await packedSmall({ samples: 60, classes: 3 }, { maxShardSamples: 10 });
  const id = ['a/0003', 'b/0004'];
  await addOverlay(shards, {
    name: 'clean',
    excludeKeys: ['a/0000'],
    labels: { by: 'key', id, cls: ['new', 'c'], columns: new Map([['score', [1, 0.5]]]) },
  });
  await splitDataset(shards, { name: 'parts', parent: 'clean', shares: new Map([['val', 0.1]]) });
  for (const format of ['tar', 'lmdb', 'msgpack'] as const) {
    for (const split of [undefined, 'val']) {
      const output = path.join(emptyFolder(), 'copy');
      const view = { overlay: split === undefined ? 'clean' : 'parts', split };
      const report = await convert(shards, output, { format, workers: 1, ...view });
      const shown = await classesOf(shards, view);
      expect(await classesOf(output)).toEqual(shown);
      expect(report.samples).toBe(shown.size);
      expect(await verify(output, { workers: 1 })).toMatchObject({ faults: 0, samples: shown.size });
      await using dataset = await openDataset(output);
      for await (const { label: cls, fields } of dataset.samples())
        expect(Buffer.from(fields.cls!).toString()).toBe(`${cls}`);
      const manifest = JSON.parse(readFileSync(path.join(output, 'dataset.json'), 'utf8'));
      expect(manifest.madeFrom).toMatch(
        split === undefined ? /overlay clean [0-9a-f]{16}$/ : /overlay parts [0-9a-f]{16}, split val$/,
      );
      expect(manifest.columns).toEqual([{ name: 'score', type: 'double' }]);
    }
  }
});

test('two datasets are merged into one, with one list of classes', async () => {
  const [one, other] = [await packedPhotos(), await packedSmall({ samples: 20, classes: 2 }, { format: 'msgpack' })];
  await addOverlay(other, { name: 'named', rename: new Map([['a', 'cat']]) });
  const file = path.join(emptyFolder(), 'both.json');
  writeFileSync(file, JSON.stringify({ mixture: [{ dataset: one }, { dataset: other, overlay: 'named' }] }));
  const output = path.join(emptyFolder(), 'both');
  const report = await convert(file, output, { format: 'lmdb', workers: 1 });
  expect(report.samples).toBe(80);
  const expected = new Map([...(await classesOf(one)), ...(await classesOf(other, { overlay: 'named' }))]);
  expect(await classesOf(output)).toEqual(expected);
  expect(await verify(output, { workers: 1 })).toMatchObject({ faults: 0, samples: 80 });
});

test('killing overlay add leaves the overlay complete or absent, and the command can be repeated', async () => {
  const shards = await packedPhotos();
  const keys = path.join(emptyFolder(), 'keys.txt');
  writeFileSync(keys, 'cat/cat_001\n');
  for (const afterMs of [60, 150, 250, 400]) {
    const name = `after-${afterMs}`;
    const child = spawn(process.execPath, [bin, 'overlay', 'add', shards, name, '--exclude-keys', keys], {
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await sleep(afterMs);
    child.kill('SIGKILL');
    await ended;
    const made = (await listOverlays(shards)).some((overlay) => overlay.name === name);
    if (!made) await addOverlay(shards, { name, excludeKeys: ['cat/cat_001'] });
    expect((await classesOf(shards, { overlay: name })).size).toBe(59);
  }
  expect(await checkOverlays(shards)).toEqual([]);
});

test('keys can be excluded without an overlay, and a missing key is an error', async () => {
  const shards = await packedPhotos();
  const kept = await classesOf(shards, { excludeKeys: ['cat/cat_001', 'rocket/rocket_003'] });
  expect(kept.size).toBe(58);
  expect(kept.has('cat/cat_001')).toBe(false);
  await using dataset = await openDataset(shards, { excludeKeys: ['cat/cat_001'] });
  expect(dataset.classSamples[dataset.classes.indexOf('cat')]).toBe(9);
  await expect(openDataset(shards, { excludeKeys: ['cat/unknown'] })).rejects.toThrow(
    /excludeKeys: .* has no sample with the key "cat\/unknown"/,
  );
});

test('the error for an invalid overlay names it', async () => {
  const shards = await packedPhotos();
  await addOverlay(shards, { name: 'one', excludeKeys: ['cat/cat_001'] });
  await addOverlay(shards, { name: 'two', parent: 'one', excludeKeys: ['cat/cat_002'] });
  await expect(addOverlay(shards, { name: 'one', excludeKeys: ['cat/cat_003'] })).rejects.toThrow(
    /The overlay .*one\.jsonl already exists/,
  );
  await expect(addOverlay(shards, { name: '../one', excludeKeys: ['cat/cat_003'] })).rejects.toThrow(/cannot be named/);
  await expect(addOverlay(shards, { name: '_one', excludeKeys: ['cat/cat_003'] })).rejects.toThrow(
    'An overlay cannot be named "_one": use up to 100 letters, digits, dots, dashes and underscores, starting with a letter or a digit and not ending with .jsonl.',
  );
  const archive = path.join(emptyFolder(), 'one.zip');
  copyFileSync('test/fixtures/zip/stored.zip', archive);
  await expect(addOverlay(archive, { name: 'x', rename: new Map([['ant', 'fly']]) })).rejects.toThrow(
    `${archive} is a file; move it into its own folder, and give that folder.`,
  );
  await expect(addOverlay(shards, { name: 'x', excludeKeys: ['unknown'] })).rejects.toThrow(
    /excludeKeys: .* has no sample with the key "unknown": correct it/,
  );
  await expect(addOverlay(shards, { name: 'x', parent: 'one', excludeKeys: ['cat/cat_001'] })).rejects.toThrow(
    /has no sample with the key "cat\/cat_001"/,
  );
  await expect(addOverlay(shards, { name: 'x', rename: new Map([['dog', 'cat']]) })).rejects.toThrow(
    /no class "dog": there are astronaut/,
  );
  await expect(addOverlay(shards, { name: 'x', classes: ['cat'] })).rejects.toThrow(/lacks "astronaut"/);
  await expect(addOverlay(shards, { name: 'x' })).rejects.toThrow(/would change nothing/);
  await expect(removeOverlay(shards, 'one')).rejects.toThrow(/The overlay "two" is based on "one": drop "two" first/);
  await expect(openDataset(shards, { overlay: 'three' })).rejects.toThrow(OverlayError);
  await expect(openDataset(shards, { overlay: 'one', split: 'val' })).rejects.toThrow(/has no split "val"/);
  expect((await listOverlays(shards)).map(({ name, parent }) => [name, parent])).toEqual([
    ['one', null],
    ['two', 'one'],
  ]);

  const other = await packedSmall({ samples: 9, classes: 2 });
  await expect(openDataset(other, { overlay: path.join(shards, 'overlays/one.jsonl') })).rejects.toThrow(
    /created for other shards/,
  );

  const file = path.join(shards, 'overlays/one.jsonl');
  const text = readFileSync(file, 'utf8');
  for (let at = 0; at < text.length; at += 17) {
    writeFileSync(file, text.slice(0, at) + (text[at] === 'x' ? 'y' : 'x') + text.slice(at + 1));
    await expect(openDataset(shards, { overlay: 'one' })).rejects.toThrow(/has changed since it was written/);
  }
  const faults = await checkOverlays(shards);
  expect(faults.map(({ overlay }) => overlay)).toEqual(['one', 'two']);
  writeFileSync(file, text);
  expect(await checkOverlays(shards)).toEqual([]);
  await removeOverlay(shards, 'two');
  expect((await listOverlays(shards)).map(({ name }) => name)).toEqual(['one']);
  expect(readdirSync(path.join(shards, 'overlays/dropped'))).toHaveLength(1);
});

test('of several concurrent calls that add the same overlay, one succeeds and the others fail', async () => {
  const shards = await packedPhotos();
  const tries = await Promise.allSettled(
    ['cat/cat_001', 'cat/cat_002', 'cat/cat_003'].map((key) =>
      addOverlay(shards, { name: 'race', excludeKeys: [key] }),
    ),
  );
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect((await classesOf(shards, { overlay: 'race' })).size).toBe(59);
  expect(readdirSync(path.join(shards, 'overlays'))).toEqual(['race.jsonl']);
});
