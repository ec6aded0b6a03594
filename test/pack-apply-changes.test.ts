import { mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { addOverlay, openDataset } from '@shardtool/reader';
import { compactDataset, eraseSamples, listVersions, type PackOptions, pack, verify } from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { type BucketServer, useBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder, PNG } from './pack-workbench.js';

let server: BucketServer;
useBucketServer((started) => {
  server = started;
});

/** A folder of images with a labels file, which its owner changes. */
class Source {
  readonly folder = emptyFolder();
  readonly #rows = new Map<string, string>();

  put(key: string, image: number, score: number, cls = key.split('/')[0]!): void {
    const file = path.join(this.folder, `${key}.jpg`);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, jpeg(image));
    this.label(key, score, cls);
  }

  label(key: string, score: number, cls = key.split('/')[0]!): void {
    this.#rows.set(key, `${key}.jpg,${cls},${score.toFixed(1)}`);
    this.#write();
  }

  remove(key: string): void {
    rmSync(path.join(this.folder, `${key}.jpg`));
    this.#rows.delete(key);
    this.#write();
  }

  /** All files are older than the packed shards, except the given ones. */
  age(newer: readonly string[] = []): void {
    for (const key of this.#rows.keys()) {
      const time = newer.includes(key) ? Date.now() / 1000 + 3600 : 1000;
      utimesSync(path.join(this.folder, `${key}.jpg`), time, time);
    }
  }

  get labels(): string {
    return path.join(this.folder, 'labels.csv');
  }

  #write(): void {
    writeFileSync(this.labels, `path,class,score\n${[...this.#rows.values()].join('\n')}\n`);
  }
}

async function contents(location: string, options: { version?: string; overlay?: string } = {}) {
  await using dataset = await openDataset(location, options);
  const found: Record<string, unknown> = {};
  for await (const { key, fields, label, columns } of dataset.samples({ checksum: true })) {
    found[key] = [Buffer.from(fields.jpg!).toString('base64'), dataset.classes[label], columns.score];
  }
  return found;
}

const sample = (image: number, cls: string, score: number) => [Buffer.from(jpeg(image)).toString('base64'), cls, score];

const append = (source: Source, output: string, more: PackOptions = {}) =>
  pack(source.folder, output, { labels: source.labels, append: true, workers: 1, ...more });

describe.each(['a folder', 'a bucket'])('in %s', (kind) => {
  const place = () => (kind === 'a folder' ? newFolder() : 's3://apply/shards');
  const start = async (more: PackOptions = {}) => {
    const output = place();
    const source = new Source();
    for (let i = 0; i < 8; i++) source.put(`${['cat', 'dog'][i % 2]}/${i}`, i, i);
    source.age();
    await pack(source.folder, output, {
      labels: source.labels,
      maxShardSamples: 3,
      shuffle: false,
      workers: 1,
      ...more,
    });
    return { output, source, before: await contents(output), version: (await readManifest(output)).identity };
  };

  test('changed files and labels replace their samples, and samples of deleted files are removed', async () => {
    const { output, source, before, version } = await start({ index: ['wids', 'crops'] });
    await addOverlay(output, { name: 'clean', excludeKeys: ['cat/0', 'cat/4'] });
    source.put('cat/0', 100, 0);
    source.put('dog/1', 101, 7);
    source.label('cat/2', 2, 'fox');
    source.remove('dog/3');
    source.put('cat/20', 20, 20);
    source.age(['cat/0', 'dog/1']);
    // By default changes are only listed.
    const listed = await append(source, output);
    expect(listed.changes).toMatchObject({ changed: 2, gone: 1, relabelled: 2 });
    expect(listed.changes!.isApplied).toBeUndefined();
    expect(await contents(output)).toEqual({ ...before, 'cat/20': sample(20, 'cat', 20) });
    const report = await append(source, output, { applyChanges: true });
    expect(report.changes).toMatchObject({ changed: 2, gone: 1, relabelled: 2, isApplied: true });
    const { 'dog/3': _, ...rest } = before;
    const now = {
      ...rest,
      'cat/0': sample(100, 'cat', 0),
      'dog/1': sample(101, 'dog', 7),
      'cat/2': sample(2, 'fox', 2),
      'cat/20': sample(20, 'cat', 20),
    };
    expect(await contents(output)).toEqual(now);
    const manifest = await readManifest(output);
    expect(manifest.samples).toBe(8);
    expect(manifest.classes).toEqual([
      { name: 'cat', samples: 4 },
      { name: 'dog', samples: 3 },
      { name: 'fox', samples: 1 },
    ]);
    expect((await verify(output)).faults).toBe(0);
    expect(await contents(output, { version })).toEqual(before);
    expect((await listVersions(output)).map(({ command }) => command)).toEqual(['append', 'append', null]);
    const clean = Object.entries(now).filter(([key]) => !['cat/0', 'cat/4'].includes(key));
    expect(await contents(output, { overlay: 'clean' })).toEqual(Object.fromEntries(clean));
    // Nothing is left to apply.
    source.age();
    const again = await append(source, output, { applyChanges: true });
    expect(again.changes).toBeUndefined();
    expect((await readManifest(output)).identity).toBe(manifest.identity);
    // Removing samples only is a change too.
    source.remove('cat/20');
    await append(source, output, { applyChanges: true });
    expect(Object.keys(await contents(output))).not.toContain('cat/20');
    expect((await verify(output)).faults).toBe(0);
  });

  test('with compare set to checksum, only changed bytes count', async () => {
    const { output, source, before } = await start();
    // With the same size, and older than its shard.
    const other = Buffer.from(jpeg(4));
    other[other.length - 3]! ^= 1;
    writeFileSync(path.join(source.folder, 'cat/4.jpg'), other);
    source.age(['cat/0']);
    const byTime = await append(source, output);
    expect(byTime.changes).toMatchObject({ changed: 1, first: 'cat/0.jpg' });
    const report = await append(source, output, { applyChanges: true, compare: 'checksum' });
    expect(report.changes).toMatchObject({ changed: 1, first: 'cat/4.jpg' });
    expect(await contents(output)).toEqual({ ...before, 'cat/4': [other.toString('base64'), 'cat', 4] });
    await compactDataset(output);
    expect((await append(source, output, { compare: 'checksum' })).changes).toBeUndefined();
  });

  test('an erased sample is not restored by a changed file', async () => {
    const { output, source } = await start();
    await eraseSamples(output, { keys: ['cat/2'] });
    source.put('cat/2', 200, 2);
    source.put('cat/0', 201, 0);
    source.age(['cat/0', 'cat/2']);
    await append(source, output, { applyChanges: true });
    const found = await contents(output);
    expect(Object.keys(found)).not.toContain('cat/2');
    expect(found['cat/0']).toEqual(sample(201, 'cat', 0));
  });
});

test('an append with changes that fails at any request to a bucket can be repeated', async () => {
  const output = 's3://apply/shards';
  const source = new Source();
  for (let i = 0; i < 6; i++) source.put(`cat/${i}`, i, i);
  source.age();
  await pack(source.folder, output, { labels: source.labels, maxShardSamples: 2, workers: 1 });
  source.put('cat/1', 50, 1);
  source.remove('cat/2');
  source.put('cat/9', 9, 9);
  source.age(['cat/1']);
  const before = await contents(output);
  const start = new Map(server.objects);
  let total = 0;
  server.fault = () => {
    total++;
    return undefined;
  };
  await append(source, output, { applyChanges: true });
  server.fault = () => undefined;
  const wanted = await contents(output);
  expect(Object.keys(wanted).sort()).toEqual(['cat/0', 'cat/1', 'cat/3', 'cat/4', 'cat/5', 'cat/9']);
  for (let at = 0; at < total; at += Math.ceil(total / 12)) {
    server.objects.clear();
    for (const [name, object] of start) server.objects.set(name, object);
    let asked = 0;
    server.fault = () => (asked++ >= at ? { status: 403, code: 'AccessDenied' } : undefined);
    await append(source, output, { applyChanges: true }).catch(() => undefined);
    server.fault = () => undefined;
    expect([before, wanted]).toContainEqual(await contents(output));
    await append(source, output, { applyChanges: true });
    expect(await contents(output)).toEqual(wanted);
    expect((await verify(output)).faults).toBe(0);
  }
});

test('an interrupted append can only be resumed with the same option', async () => {
  const output = 's3://apply/shards';
  const source = new Source();
  for (let i = 0; i < 4; i++) source.put(`cat/${i}`, i, i);
  source.age();
  await pack(source.folder, output, { labels: source.labels, maxShardSamples: 2, workers: 1 });
  source.put('cat/1', 50, 1);
  source.age(['cat/1']);
  server.fault = ({ method, key }) =>
    method === 'PUT' && key.endsWith('dataset.json') ? { status: 403, code: 'AccessDenied' } : undefined;
  await expect(append(source, output, { applyChanges: true })).rejects.toThrow();
  server.fault = () => undefined;
  await expect(append(source, output)).rejects.toThrow('applyChanges');
  await append(source, output, { applyChanges: true });
  expect((await contents(output))['cat/1']).toEqual(sample(50, 'cat', 1));
});

test('a source without any file of the dataset, and options that do not match, are rejected', async () => {
  const output = newFolder();
  const source = new Source();
  source.put('cat/1', 1, 1);
  await pack(source.folder, output, { labels: source.labels, workers: 1 });
  const other = new Source();
  other.put('cat/2', 2, 2);
  await expect(append(other, output, { applyChanges: true })).rejects.toThrow('contains no file of the dataset');
  await expect(append(source, output, { applyChanges: true, dedupe: true })).rejects.toThrow(
    'cannot be combined with "dedupe"',
  );
  await expect(pack(source.folder, newFolder(), { applyChanges: true })).rejects.toThrow('also set "append"');
  expect(Object.keys(await contents(output))).toEqual(['cat/1']);
});

test('an overlay counts classes correctly after samples below it have got another class', async () => {
  const output = newFolder();
  const source = new Source();
  for (let i = 0; i < 4; i++) source.put(`cat/${i}`, i, i);
  source.put('dog/4', 4, 4);
  source.age();
  await pack(source.folder, output, { labels: source.labels, workers: 1 });
  await addOverlay(output, { name: 'fewer', excludeKeys: ['cat/0'] });
  await addOverlay(output, {
    name: 'other',
    parent: 'fewer',
    labels: { by: 'key', id: ['cat/1'], cls: ['dog'], columns: new Map() },
  });
  source.label('cat/0', 0, 'dog');
  source.label('cat/1', 1, 'dog');
  await append(source, output, { applyChanges: true, compare: 'checksum' });
  for (const [overlay, counts] of [
    ['fewer', [2, 2]],
    ['other', [2, 2]],
  ] as const) {
    await using dataset = await openDataset(output, { overlay });
    expect([overlay, dataset.classes, dataset.classSamples]).toEqual([overlay, ['cat', 'dog'], counts]);
  }
});

test('all samples of a dataset with an index for wids can be replaced at once', async () => {
  const output = newFolder();
  const source = new Source();
  for (let i = 0; i < 3; i++) source.put(`cat/${i}`, i, i);
  source.age();
  await pack(source.folder, output, { labels: source.labels, index: ['wids'], workers: 1 });
  for (let i = 0; i < 3; i++) source.put(`cat/${i}`, 10 + i, i);
  await append(source, output, { applyChanges: true, compare: 'checksum' });
  expect((await contents(output))['cat/1']).toEqual(sample(11, 'cat', 1));
  const { shardlist } = JSON.parse(readFileSync(path.join(output, 'shardindex.json'), 'utf8'));
  const { shards } = await readManifest(output);
  expect(shardlist.map(({ url }: { url: string }) => url)).toEqual(shards.map(({ file }) => file));
});

test('the command prints that samples were replaced, and a replaced shard keeps its time', async () => {
  const output = newFolder();
  const source = new Source();
  for (let i = 0; i < 4; i++) source.put(`cat/${i}`, i, i);
  source.age();
  await pack(source.folder, output, { labels: source.labels, workers: 1 });
  utimesSync(path.join(output, '000000.tar'), 2000, 2000);
  source.put('cat/0', 30, 0);
  source.age(['cat/0']);
  const flags = ['--labels', source.labels, '--append', '--apply-changes'];
  const { stdout, stderr } = await shardtool('pack', source.folder, output, ...flags);
  expect(stdout + stderr).toContain('1 file has changed: their samples were replaced or removed');
  const { file } = (await readManifest(output)).shards[0]!;
  expect(file).toMatch(/^000000-v/);
  expect(statSync(path.join(output, file)).mtimeMs).toBe(2_000_000);
  expect(readFileSync(path.join(output, 'changed.jsonl'), 'utf8').trim().split('\n')).toHaveLength(1);
});

test('sidecar files of images are compared too: a mask that changes, appears or disappears replaces the sample', async () => {
  const images = emptyFolder();
  const put = (name: string, content: Uint8Array | string, time = 1000) => {
    writeFileSync(path.join(images, name), content);
    utimesSync(path.join(images, name), time, time);
  };
  for (const key of ['a', 'b', 'c', 'd', 'e']) put(`${key}.jpg`, jpeg(key));
  for (const key of ['a', 'b', 'c', 'd']) put(`${key}.seg.png`, PNG);
  put('e.txt', 'five');
  const output = newFolder();
  const options: PackOptions = { fields: ['seg.png'], maxShardSamples: 2, shuffle: false, workers: 1 };
  await pack(images, output, options);
  const unchanged = await pack(images, output, { ...options, append: true, applyChanges: true });
  expect([unchanged.samples, unchanged.changes]).toEqual([0, undefined]);

  put('a.seg.png', Buffer.concat([PNG, Buffer.from('!')]));
  // With the same size and an old time, so that only a comparison of the bytes detects it.
  put('b.seg.png', Buffer.from(PNG).fill(1, PNG.length - 1));
  rmSync(path.join(images, 'c.seg.png'));
  put('e.seg.png', PNG);
  put('e.txt', 'FIVE', Date.now() / 1000 + 3600);
  const listed = await pack(images, output, { ...options, append: true });
  expect(listed.changes).toMatchObject({ changed: 3, gone: 0 });
  const lines = readFileSync(path.join(output, 'changed.jsonl'), 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line)).map(({ path: name, reason }) => [name, reason])).toEqual([
    ['a.jpg', expect.stringMatching(/^of a\.seg\.png: it had \d+ bytes when it was packed, and now has \d+$/)],
    ['c.jpg', 'the file of its field "seg.png" is no longer in the source'],
    ['e.jpg', 'e.seg.png is new'],
  ]);
  await pack(images, output, { ...options, append: true, applyChanges: true });
  utimesSync(path.join(images, 'e.txt'), 1000, 1000);
  const compared = await pack(images, output, { ...options, append: true, applyChanges: true, compare: 'checksum' });
  expect(compared.changes).toMatchObject({ changed: 1, first: 'b.jpg' });
  await using dataset = await openDataset(output);
  const found: Record<string, string[]> = {};
  for await (const { key, fields } of dataset.samples({ checksum: true })) {
    found[key] = Object.entries(fields)
      .filter(([name, bytes]) => {
        const file = path.join(images, `${key}.${name}`);
        return name !== 'jpg' && readFileSync(file).equals(bytes);
      })
      .map(([name]) => name);
  }
  expect(found).toEqual({ a: ['seg.png'], b: ['seg.png'], c: [], d: ['seg.png'], e: ['seg.png', 'txt'] });
});

test('a JSON file or a text next to an image is compared too, also in a dataset without such files', async () => {
  const images = emptyFolder();
  for (const key of ['a', 'b', 'c', 'd']) writeFileSync(path.join(images, `${key}.jpg`), jpeg(key));
  const output = newFolder();
  const options: PackOptions = { maxShardSamples: 2, shuffle: false, workers: 1 };
  await pack(images, output, options);
  const apply = () => pack(images, output, { ...options, append: true, applyChanges: true, compare: 'checksum' });
  const found = async () => {
    await using dataset = await openDataset(output);
    const texts: Record<string, unknown> = {};
    for await (const { key, fields } of dataset.samples({ checksum: true })) {
      const { jpg: _, cls: __, ...others } = fields;
      texts[key] = Object.fromEntries(
        Object.entries(others).map(([name, bytes]) => [name, Buffer.from(bytes).toString()]),
      );
    }
    return texts;
  };
  expect((await apply()).changes).toBeUndefined();
  writeFileSync(path.join(images, 'a.json'), '1');
  writeFileSync(path.join(images, 'b.txt'), 'one');
  expect((await apply()).changes).toMatchObject({ changed: 2, first: 'a.jpg' });
  expect(await found()).toEqual({ a: { json: '1' }, b: { txt: 'one' }, c: {}, d: {} });
  writeFileSync(path.join(images, 'a.json'), '2');
  rmSync(path.join(images, 'b.txt'));
  writeFileSync(path.join(images, 'c.json'), '3');
  expect((await apply()).changes).toMatchObject({ changed: 3 });
  expect(await found()).toEqual({ a: { json: '2' }, b: {}, c: { json: '3' }, d: {} });
  expect((await apply()).changes).toBeUndefined();
});

test('objects of COCO annotations stay, because no file next to the image has them', async () => {
  const images = emptyFolder();
  for (const key of ['a', 'b', 'c']) writeFileSync(path.join(images, `${key}.jpg`), jpeg(key));
  const coco = path.join(emptyFolder(), 'coco.json');
  writeFileSync(
    coco,
    JSON.stringify({
      images: ['a', 'b', 'c'].map((key, id) => ({ id, file_name: `${key}.jpg` })),
      annotations: [{ id: 1, image_id: 0, category_id: 1, bbox: [1, 2, 3, 4] }],
      categories: [{ id: 1, name: 'cat' }],
    }),
  );
  const output = newFolder();
  await pack(images, output, { coco, workers: 1 });
  const changed = { append: true, applyChanges: true, compare: 'checksum', workers: 1, coco } as const;
  expect((await pack(images, output, changed)).changes).toBeUndefined();
});
