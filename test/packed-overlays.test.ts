/** Overlays of label files that are too large for memory: one line per shard, and labels that are sorted on disk. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { newToken, temporaryName } from '@shardtool/base';
import {
  addOverlay,
  checkOverlays,
  listOverlays,
  openDataset,
  overlayColumnTypes,
  splitDataset,
  subsetDataset,
} from '@shardtool/reader';
import { compactDataset, eraseSamples, openPackedLabels, pack, restoreVersion } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { jpeg, tree } from './pack-workbench.js';
import { randomOf } from './random.js';
import { TIMES } from './repetitions.js';

const random = randomOf('packed overlays');
const below = (count: number) => Math.floor(random() * count);

/** A sample as the model knows it. */
interface Facts {
  readonly cls: string;
  readonly score: number | null;
  readonly note: string | null;
}
type Model = Map<string, Facts>;

/** Keys that are difficult for CSV, JSON and hash tables. */
const KEYS = Array.from({ length: 40 }, (_, i) =>
  ['ant', 'bee'].map((cls) => `${cls}/${['ä ö', "o'clock", 'a,b', 'x;y', '日本', '__proto__', 'é'][i % 7]} ${i}`),
).flat();

async function packed(keys: readonly string[] = KEYS): Promise<{ shards: string; images: string; model: Model }> {
  const images = tree(Object.fromEntries(keys.map((key, i) => [`${key}.jpg`, jpeg(i)])));
  const rows = keys.map((key, i) => JSON.stringify({ path: `${key}.jpg`, class: key.slice(0, 3), score: i / 2 }));
  const labels = path.join(emptyFolder(), 'labels.jsonl');
  writeFileSync(labels, rows.join('\n'));
  const shards = path.join(emptyFolder(), 'shards');
  await pack(images, shards, { labels, maxShardSamples: 7, shuffle: false, workers: 1 });
  const model = new Map(keys.map((key, i) => [key, { cls: key.slice(0, 3), score: i / 2, note: null }]));
  return { shards, images, model };
}

/** The samples of a dataset. Checks that its totals agree with them. */
async function shown(...given: Parameters<typeof openDataset>): Promise<Model> {
  await using dataset = await openDataset(...given);
  const found: Model = new Map();
  for await (const { key, label, columns } of dataset.samples()) {
    const { score = null, note = null } = columns;
    found.set(key, { cls: dataset.classes[label]!, score: score as number | null, note: note as string | null });
  }
  const counts = dataset.classes.map((name) => [...found.values()].filter(({ cls }) => cls === name).length);
  expect(dataset.classSamples).toEqual(counts);
  expect(dataset.size).toBe(found.size);
  return found;
}

const sorted = (model: Model) => [...model].sort(([a], [b]) => (a < b ? -1 : 1));

/** Writes labels in one of the formats, and applies them to the model. */
function labelsFor(model: Model, keys: readonly string[]): string {
  const isJson = random() < 0.5;
  const isZipped = random() < 0.3;
  const byPath = random() < 0.3;
  const rows = keys.map((key) => {
    const cls = ['', 'ant', 'bee', 'new', 'wasp, a'][below(5)]!;
    const score = random() < 0.3 ? null : below(3) / 4;
    const note = random() < 0.4 ? null : ['x', 'he said "no"', 'two\nlines', '日本'][below(4)]!;
    const old = model.get(key)!;
    model.set(key, { cls: cls === '' ? old.cls : cls, score, note });
    return { id: byPath ? `${key}.jpg` : key, cls, score, note };
  });
  const by = byPath ? 'path' : 'key';
  const cell = (value: string) => `"${value.replaceAll('"', '""')}"`;
  const text = isJson
    ? rows.map(({ id, cls, score, note }) => JSON.stringify({ note, [by]: id, class: cls, score })).join('\n')
    : `score,class,${by},note\n${rows.map(({ id, cls, score, note }) => `${score ?? ''},${cell(cls)},${cell(id)},${cell(note ?? '')}`).join('\r\n')}`;
  const file = path.join(emptyFolder(), `labels.${isJson ? 'jsonl' : 'csv'}${isZipped ? '.gz' : ''}`);
  writeFileSync(file, isZipped ? gzipSync(text) : text);
  return file;
}

const some = (keys: Iterable<string>, share: number) => [...keys].filter(() => random() < share);

/** Labels of a file that is read row by row. */
const streamed = (file: string) => openPackedLabels(file, { heldBytes: 0 });

test('random labels that are sorted on disk equal those of a Map, above and below other overlays and splits', async () => {
  for (let round = 0; round < 3 * TIMES; round++) {
    const { shards, model } = await packed();
    let parent: string | undefined;
    for (let i = 0; i < 4; i++) {
      const name = `o${i}`;
      const keys = some(model.keys(), [1, 0.5, 0.1][below(3)]!);
      if (keys.length === 0) continue;
      if (random() < 0.3) {
        await addOverlay(shards, { name, parent, excludeKeys: keys.slice(0, 5) });
        for (const key of keys.slice(0, 5)) model.delete(key);
      } else {
        const file = labelsFor(model, keys);
        const labels = random() < 0.7 ? await streamed(file) : await openPackedLabels(file);
        await addOverlay(shards, { name, parent, labels });
      }
      parent = name;
      if (random() < 0.5) {
        await splitDataset(shards, { shares: new Map([['val', 0.3]]), name: `s${i}`, parent });
        parent = `s${i}`;
      }
      expect(sorted(await shown(shards, { overlay: parent }))).toEqual(sorted(model));
    }
    expect(await checkOverlays(shards)).toEqual([]);
    const splits = (await listOverlays(shards)).filter(({ splits: [one] }) => one !== undefined);
    for (const { name, splits: parts } of splits) {
      for (const split of parts) await shown(shards, { overlay: name, split: split.name });
    }
    if (splits.length > 0) {
      const split = splits.at(-1)!;
      const [val, train] = await Promise.all(
        ['val', 'train'].map((one) => shown(shards, { overlay: parent!, split: one })),
      );
      expect(val!.size + train!.size).toBe(model.size);
      expect(split.splits.length).toBe(2);
    }
  }
});

test('labels from memory and from disk give equal overlays, and the file contains no keys', async () => {
  const { shards, model } = await packed();
  const file = labelsFor(model, KEYS);
  const one = await addOverlay(shards, { name: 'one', labels: await openPackedLabels(file) });
  const other = await addOverlay(shards, { name: 'other', labels: await streamed(file) });
  const { file: _, hash: __, ...counts } = one;
  expect(other).toMatchObject(counts);
  expect(await shown(shards, { overlay: 'other' })).toEqual(await shown(shards, { overlay: 'one' }));
  expect(readFileSync(other.file, 'utf8')).not.toContain('日本 ');
  const [first, second] = await listOverlays(shards);
  expect({ ...second, name: '', hash: '' }).toEqual({ ...first, name: '', hash: '' });
  const types = await overlayColumnTypes(shards, 'other', new Map([['score', 'double']]));
  expect([...types]).toEqual([
    ['score', 'double'],
    ['note', 'string'],
  ]);
  expect(readdirSync(shards).filter((name) => name.startsWith('.labels'))).toEqual([]);
});

test('files of a killed process that wrote an overlay are removed when the next one is written', async () => {
  const { shards } = await packed(KEYS.slice(0, 3));
  await addOverlay(shards, { name: 'one', excludeKeys: [KEYS[0]!] });
  const folder = path.join(shards, 'overlays');
  // A process with this process id exists, but started at another time.
  const [ended, alive] = [newToken().replace(/^(\d+)-\d+/, '$1-1'), newToken()];
  for (const token of [ended, alive]) writeFileSync(path.join(folder, temporaryName('two.jsonl', token)), 'half');
  await addOverlay(shards, { name: 'two', excludeKeys: [KEYS[1]!] });
  expect(readdirSync(folder).sort()).toEqual(['one.jsonl', 'two.jsonl', temporaryName('two.jsonl', alive)]);
});

test('labels sorted on disk that name a sample twice, or one that does not exist, are rejected and leave nothing', async () => {
  const { shards } = await packed();
  const add = async (text: string) => {
    const file = path.join(emptyFolder(), 'l.csv');
    writeFileSync(file, text);
    await addOverlay(shards, { name: 'wrong', labels: await streamed(file) });
  };
  const [a, b] = KEYS as [string, string];
  await expect(add(`key,class\n"${a}",x\n"${b}",y\n"${a}",z\n`)).rejects.toThrow(`4 repeats the key "${a}" of line 2`);
  await expect(add(`key,class\n"${a}",x\nunknown,y\n"${b}",y\nnone,z\n`)).rejects.toThrow(
    /2 of 4 labels name a key that is not in .*The first is "unknown"/,
  );
  await expect(add('key,class\n')).rejects.toThrow('has no rows');
  await expect(add(`key,class\n"${a}"\n`)).rejects.toThrow('l.csv:2 has the wrong number of values');
  await expect(add(`key,class\n"${a}",ant\n`)).rejects.toThrow('would change nothing');
  expect(await listOverlays(shards)).toEqual([]);
});

test('packed overlays follow compactions, erasures and restored versions, and forget what was erased', async () => {
  for (let round = 0; round < 2 * TIMES; round++) {
    const { shards, images, model } = await packed();
    const secret = KEYS[3]!;
    model.set(secret, { ...model.get(secret)!, score: null, note: 'secret caption' });
    const rows = [...model].map(([key, { note }], i) => {
      const cls = i % 3 === 0 ? 'new' : model.get(key)!.cls;
      model.set(key, { cls, score: i, note });
      return JSON.stringify({ key, class: cls, score: i, note });
    });
    const file = path.join(emptyFolder(), 'l.jsonl');
    writeFileSync(file, rows.join('\n'));
    await splitDataset(shards, { shares: new Map([['val', 0.3]]), byClass: true });
    await addOverlay(shards, { name: 'low', parent: 'split', labels: await streamed(file) });
    const top = labelsFor(
      model,
      some(model.keys(), 0.5).filter((key) => key !== secret),
    );
    await addOverlay(shards, { name: 'top', parent: 'low', labels: await streamed(top) });
    const check = async () => {
      expect(sorted(await shown(shards, { overlay: 'top' }))).toEqual(sorted(model));
      for (const split of ['val', 'train']) await shown(shards, { overlay: 'top', split });
      expect(await checkOverlays(shards)).toEqual([]);
    };
    await check();
    const gone = [secret, ...some(KEYS, 0.1)];
    const { version } = await eraseSamples(shards, { keys: gone });
    for (const key of gone) model.delete(key);
    await check();
    const texts = readdirSync(path.join(shards, 'overlays'), { recursive: true })
      .filter((name) => `${name}`.endsWith('.jsonl'))
      .map((name) => readFileSync(path.join(shards, 'overlays', `${name}`), 'utf8'));
    expect(texts.filter((text) => text.includes('secret caption'))).toEqual([]);
    await compactDataset(shards, { maxShardSamples: 30 });
    await check();
    await restoreVersion(shards, version);
    await check();
    // Samples that are packed later have no changes.
    writeFileSync(path.join(images, 'ant', 'later.jpg'), jpeg('later'));
    const labels = path.join(emptyFolder(), 'later.jsonl');
    writeFileSync(labels, JSON.stringify({ path: 'ant/later.jpg', class: 'ant', score: 1 }));
    await pack(images, shards, { labels, append: true, workers: 1 });
    model.set('ant/later', { cls: 'ant', score: 1, note: null });
    expect(sorted(await shown(shards, { overlay: 'top' }))).toEqual(sorted(model));
  }
});

test('a damaged packed line is an error that names the overlay or the shard', async () => {
  const { shards, model } = await packed();
  const { file } = await addOverlay(shards, { name: 'o', labels: await streamed(labelsFor(model, KEYS)) });
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"codes":"', '"codes":"A'));
  await expect(openDataset(shards, { overlay: 'o' })).rejects.toThrow('has changed since it was written');
});

test('a subset and an expression see the classes and columns of packed overlays', async () => {
  const { shards, model } = await packed();
  await addOverlay(shards, { name: 'o', labels: await streamed(labelsFor(model, KEYS)) });
  await subsetDataset(shards, { name: 'part', parent: 'o', where: "class = 'new' and score > 0" });
  const expected = [...model].filter(([, { cls, score }]) => cls === 'new' && (score ?? 0) > 0).map(([key]) => key);
  expect([...(await shown(shards, { overlay: 'part' })).keys()].sort()).toEqual(expected.sort());
});
