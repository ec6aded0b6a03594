import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { addOverlay, openDataset } from '@shardtool/reader';
import { collectGarbage, eraseSamples, pack, restoreVersion, verify } from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { type BucketServer, useBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder, tree } from './pack-workbench.js';

let server: BucketServer;
useBucketServer((started) => {
  server = started;
});

const IMAGES = ['ant/1', 'ant/2', 'bee/3', 'bee/4', 'cat/5', 'cat/6', 'cat/7'];
const GONE = ['ant/2', 'cat/5', 'cat/6', 'cat/7'];
const OPTIONS = { maxShardSamples: 2, shuffle: false, workers: 1 };

function source(): string {
  const rows = IMAGES.map((key, i) => `${key}.jpg,${i / 2}`);
  return tree({
    ...Object.fromEntries(IMAGES.map((key, i) => [`${key}.jpg`, jpeg(i)])),
    'labels.csv': `path,score\n${rows.join('\n')}\n`,
  });
}

async function samplesOf(location: string) {
  await using dataset = await openDataset(location);
  const found: Record<string, unknown> = {};
  for await (const { key, fields, label } of dataset.samples({ checksum: true })) {
    found[key] = [Buffer.from(fields.jpg!).toString('base64'), dataset.classes[label]];
  }
  return found;
}

/** The expected dataset after the samples were erased, by an independent model. */
const LEFT = Object.fromEntries(
  IMAGES.flatMap((key, i) =>
    GONE.includes(key) ? [] : [[key, [Buffer.from(jpeg(i)).toString('base64'), key.split('/')[0]]]],
  ),
);

/** The content of every file of a dataset. */
function bytesIn(location: string): Map<string, Buffer> {
  if (!location.startsWith('s3://')) {
    return new Map(filesIn(location).map((name) => [name, readFileSync(path.join(location, name))]));
  }
  return new Map(server.names('erase').map((name) => [name, server.objects.get(`erase/${name}`)!.bytes]));
}

/** Files that contain the key or the image of an erased sample. */
function filesWithErased(location: string): string[] {
  const texts = GONE.flatMap((key) => [Buffer.from(key), Buffer.from(jpeg(IMAGES.indexOf(key)))]);
  return [...bytesIn(location)].filter(([, bytes]) => texts.some((text) => bytes.includes(text))).map(([name]) => name);
}

const formats = [
  ['a folder', { index: ['wids', 'dali', 'crops'] as const }],
  ['a bucket', { index: ['wids', 'crops'] as const }],
  ['a folder', { format: 'lmdb' as const }],
  ['a bucket', { format: 'msgpack' as const }],
] as const;

describe.each(formats)('%s, %j', (kind, options) => {
  const packed = async () => {
    const images = source();
    const output = kind === 'a folder' ? newFolder() : 's3://erase/shards';
    await pack(images, output, { ...OPTIONS, ...options });
    return { images, output };
  };

  test('erased samples are removed from shards, indexes and overlays; gc removes the rest, and an append does not restore them', async () => {
    const { images, output } = await packed();
    const keys = path.join(emptyFolder(), 'keys.txt');
    writeFileSync(keys, 'ant/2\nbee/3\n');
    await shardtool('overlay', 'add', output, 'clean', '--exclude-keys', keys);
    const before = (await readManifest(output)).identity;
    const report = await eraseSamples(output, { keys: [...GONE, 'unknown'], verify: true });
    expect(report).toMatchObject({ erased: 4, missing: 1, rewrittenShards: 1, removedShards: 1 + 1, heldBy: [before] });
    expect(await samplesOf(output)).toEqual(LEFT);
    expect((await readManifest(output)).classes.map(({ samples }) => samples)).toEqual([1, 2, 0]);
    expect((await verify(output)).faults).toBe(0);
    await using clean = await openDataset(output, { overlay: 'clean' });
    expect(clean.size).toBe(2);
    await collectGarbage(output, { keep: 1 });
    expect(filesWithErased(output)).toEqual([]);
    // By the keys, no erased data is found, and nothing changes.
    const again = await eraseSamples(output, { keys: GONE, verify: true });
    expect(again).toMatchObject({ erased: 0, missing: 4, heldBy: [], version: report.version });
    await pack(images, output, { append: true, workers: 1 });
    expect(await samplesOf(output)).toEqual(LEFT);
    expect((await verify(output)).faults).toBe(0);
  });
});

test('an erasure from a bucket that is interrupted at any request can be repeated, with the same result', async () => {
  const output = 's3://erase/shards';
  await pack(source(), output, { ...OPTIONS, index: ['wids'] });
  const before = new Map(server.objects);
  let asked = 0;
  server.fault = () => void asked++;
  const { version } = await eraseSamples(output, { keys: GONE });
  for (let at = 3; at < asked; at += 11) {
    server.objects.clear();
    for (const [name, object] of before) server.objects.set(name, object);
    let count = 0;
    server.fault = () => (count++ >= at ? { status: 403, code: 'AccessDenied' } : undefined);
    await eraseSamples(output, { keys: GONE }).catch(() => undefined);
    server.fault = () => undefined;
    await eraseSamples(output, { keys: GONE });
    expect((await readManifest(output)).identity).toBe(version);
    await collectGarbage(output, { keep: 1 });
    const left = filesWithErased(output);
    // Shards of a killed erasure contain no erased sample; the packed shards are removed.
    expect(left).toEqual([]);
    expect((await verify(output)).faults).toBe(0);
  }
});

const REST = { maxBad: 1, onBad: 'quarantine', dedupe: true } as const;

test.each(['a folder', 'a bucket'])(
  'erased keys are removed from the lists next to the shards, and from an unfinished append, in %s',
  async (kind) => {
    const images = tree({
      ...Object.fromEntries(IMAGES.map((key, i) => [`${key}.jpg`, jpeg(i)])),
      'ant/2.png': 'no image',
      'cat/5.jpeg': jpeg('other'),
      'cat/5.txt': 'skipped',
      'bee/9.jpg': 'broken',
      'bee/8.jpg': jpeg(3),
      'zoo/1.jpg': jpeg(5),
    });
    const output = kind === 'a folder' ? newFolder() : 's3://erase/shards';
    await pack(images, output, { ...OPTIONS, ...REST });
    const listed = () => [...bytesIn(output)].filter(([name]) => /jsonl$|pack\.state|pack\.json/.test(name));
    expect(Buffer.concat(listed().map(([, bytes]) => bytes)).toString()).toContain('cat/5');
    await eraseSamples(output, { keys: ['ant/2', 'cat/5', 'bee/9'] });
    const left = Buffer.concat(listed().map(([, bytes]) => bytes)).toString();
    for (const key of ['ant/2', 'cat/5', 'bee/9']) expect(left).not.toContain(key);
    expect(left).toContain('bee/8');
    expect((await verify(output)).faults).toBe(0);
  },
);

test('an erasure by an expression that is killed after its commit is finished by the next change', async () => {
  const images = source();
  const output = 's3://erase/shards';
  await pack(images, output, { ...OPTIONS, labels: path.join(images, 'labels.csv') });
  await addOverlay(output, { name: 'clean', excludeKeys: ['cat/5', 'bee/3'] });
  const version = (await readManifest(output)).identity;
  const before = new Map(server.objects);
  const where = 'score >= 2 and score <= 2.5';
  for (const next of ['erase', 'append', 'restore', 'gc']) {
    server.objects.clear();
    for (const [name, object] of before) server.objects.set(name, object);
    let isCommitted = false;
    server.fault = ({ method, key }) => {
      if (isCommitted) return { status: 403, code: 'AccessDenied' };
      isCommitted = method === 'PUT' && key === 'shards/dataset.json';
      return undefined;
    };
    await expect(eraseSamples(output, { where })).rejects.toThrow('shards');
    server.fault = () => undefined;
    expect((await readManifest(output)).identity).not.toBe(version);
    if (next === 'erase') {
      const report = await eraseSamples(output, { where });
      expect(report).toMatchObject({ erased: 0, heldBy: [version] });
    } else if (next === 'append')
      await pack(images, output, { append: true, workers: 1, labels: path.join(images, 'labels.csv') });
    else if (next === 'restore') await restoreVersion(output, (await readManifest(output)).identity);
    else await collectGarbage(output, { keep: 2 });
    const texts = [...bytesIn(output)].filter(([name]) => name.includes('overlays/'));
    expect(texts.map(([name]) => name)).toEqual(['shards/overlays/clean.jsonl']);
    expect(texts[0]![1].toString()).not.toContain('cat/5');
    await using clean = await openDataset(output, { overlay: 'clean' });
    expect(clean.size).toBe(4);
    expect((await verify(output)).faults).toBe(0);
  }
});

test('an erasure that is killed before its commit is finished by the next erasure, which reports it', async () => {
  const output = 's3://erase/shards';
  await pack(source(), output, OPTIONS);
  server.fault = ({ method, key }) =>
    method === 'PUT' && key === 'shards/dataset.json' ? { status: 403, code: 'AccessDenied' } : undefined;
  await expect(eraseSamples(output, { keys: ['cat/5'] })).rejects.toThrow();
  server.fault = () => undefined;
  await collectGarbage(output, { keep: 1 });
  const report = await eraseSamples(output, { keys: ['ant/1'], verify: true });
  expect(report).toMatchObject({ erased: 2, resumed: 1, missing: 0 });
  expect(Object.keys(await samplesOf(output)).sort()).toEqual(['ant/2', 'bee/3', 'bee/4', 'cat/6', 'cat/7']);
  expect(await eraseSamples(output, { keys: ['ant/2'] })).toMatchObject({ erased: 1, resumed: 0 });
});

test('an erasure while another process restores a version changes nothing, or succeeds first, and can be repeated', async () => {
  const output = 's3://erase/shards';
  const images = source();
  await pack(images, output, OPTIONS);
  const first = server.objects.get('erase/shards/dataset.json')!.bytes;
  writeFileSync(path.join(images, 'ant/9.jpg'), jpeg(9));
  await pack(images, output, { append: true, workers: 1 });
  const before = new Map(server.objects);
  let asked = 0;
  server.fault = () => void asked++;
  await eraseSamples(output, { keys: ['ant/9'] });
  for (let at = 1; at < asked; at += 8) {
    server.objects.clear();
    for (const [name, object] of before) server.objects.set(name, object);
    let count = 0;
    server.fault = () => {
      if (count++ !== at) return undefined;
      const { bytes } = server.objects.get('erase/shards/dataset.json')!;
      server.put(`erase/shards/versions/${JSON.parse(bytes.toString()).identity}.json`, bytes);
      server.put('erase/shards/dataset.json', first);
      return undefined;
    };
    const ended = await eraseSamples(output, { keys: ['ant/9'] }).catch((error) => error.name);
    server.fault = () => undefined;
    if (typeof ended === 'string') expect(ended).toBe('DatasetChangedError');
    await eraseSamples(output, { keys: ['ant/9'] });
    expect(Object.keys(await samplesOf(output))).not.toContain('ant/9');
    expect((await verify(output)).faults).toBe(0);
  }
});

test('other files in the folders of versions and erasures are kept, and do no harm', async () => {
  const output = newFolder();
  await pack(source(), output, OPTIONS);
  await eraseSamples(output, { keys: ['ant/1'] });
  const others = [
    'versions/a.txt',
    'versions/pending/.DS_Store',
    'versions/pending/x.json',
    'versions/log/x',
    'erased/y',
    'overlays/dropped/z.jsonl',
  ];
  for (const name of others) {
    mkdirSync(path.dirname(path.join(output, name)), { recursive: true });
    writeFileSync(path.join(output, name), 'cat/5 of another program');
  }
  await eraseSamples(output, { keys: ['cat/5'] });
  await collectGarbage(output, { keep: 1 });
  await pack(source(), output, { ...OPTIONS, overwrite: true });
  expect(filesIn(output)).toEqual(expect.arrayContaining(others));
  expect(filesIn(output).filter((name) => /^0.*-v|^versions\/.*[0-9a-f]{16}/.test(name))).toEqual([]);
});

test('an erasure without the salt of earlier erasures fails, and reports what is missing', async () => {
  const output = newFolder();
  await pack(source(), output, OPTIONS);
  await eraseSamples(output, { keys: ['ant/1'] });
  rmSync(path.join(output, 'erased/salt'));
  await expect(eraseSamples(output, { keys: ['cat/5'] })).rejects.toThrow('copy the whole folder "erased"');
});

test('the command erase takes keys or an expression, prints what to run next, and exits with 1 as long as --verify finds erased data', async () => {
  const images = source();
  const output = newFolder();
  await pack(images, output, { ...OPTIONS, labels: path.join(images, 'labels.csv') });
  const first = await shardtool('erase', output, '--where', 'score >= 2', '--verify');
  expect(first.code).toBe(1);
  expect(first.stdout).toContain('Erased 3 samples');
  expect(first.stdout).toContain('shardtool gc');
  await shardtool('gc', output, '--keep', '1');
  const keys = path.join(emptyFolder(), 'keys.txt');
  writeFileSync(keys, 'cat/5\ncat/6\ncat/7\n');
  const second = await shardtool('erase', output, '--keys', keys, '--verify');
  expect([second.code, second.stdout]).toEqual([0, expect.stringContaining('nothing is left')]);
  expect((await shardtool('erase', output)).stderr).toContain('Give either --keys or --where');
  expect((await shardtool('erase', output, '--where', 'width > 0')).stderr).toContain('Nothing would be left');
});
