import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Lock, tryLock } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import {
  collectGarbage,
  DatasetChangedError,
  eraseSamples,
  listVersions,
  pack,
  restoreVersion,
  verify,
} from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { type BucketServer, useBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder, packedPhotos } from './datasets.js';
import { digestsOf, filesIn, jpeg, newFolder, tree } from './pack-workbench.js';

let server: BucketServer;
useBucketServer((started) => {
  server = started;
});

function add(images: string, files: Record<string, Uint8Array>): void {
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(images, file)), { recursive: true });
    writeFileSync(path.join(images, file), content);
  }
}

/** Every sample of a dataset: image by key. */
async function contents(location: string, version?: string): Promise<Record<string, string>> {
  await using dataset = await openDataset(location, { version });
  const found: Record<string, string> = {};
  for await (const { key, fields } of dataset.samples({ checksum: true })) {
    found[key] = Buffer.from(fields.jpg!).toString('base64');
  }
  return found;
}

const encoded = (number: number) => Buffer.from(jpeg(number)).toString('base64');
const OPTIONS = { maxShardSamples: 2, shuffle: false, workers: 1 };

/** Names in a location that do not belong to any version. */
function names(location: string): string[] {
  if (!location.startsWith('s3://')) return filesIn(location);
  return server.names('versions').map((name) => name.slice('shards/'.length));
}

describe.each(['a folder', 'a bucket'])('%s', (kind) => {
  const place = () => (kind === 'a folder' ? newFolder() : 's3://versions/shards');
  const start = async () => {
    const output = place();
    const images = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2), 'fox/3.jpg': jpeg(3) });
    await pack(images, output, OPTIONS);
    const versions = [(await readManifest(output)).identity];
    for (const [file, number] of [
      ['cat/4.jpg', 4],
      ['bee/5.jpg', 5],
    ] as const) {
      add(images, { [file]: jpeg(number) });
      await pack(images, output, { append: true, workers: 1 });
      versions.push((await readManifest(output)).identity);
    }
    return { output, images, versions };
  };

  test('each append keeps the previous version, which still opens', async () => {
    const { output, versions } = await start();
    const listed = await listVersions(output);
    expect(
      listed.map(({ version, parent, command, isCurrent, isKept, samples }) => [
        version,
        parent,
        command,
        isCurrent,
        isKept,
        samples,
      ]),
    ).toEqual([
      [versions[2], versions[1], 'append', true, true, 5],
      [versions[1], versions[0], 'append', false, true, 4],
      [versions[0], null, null, false, true, 3],
    ]);
    const first = { 'cat/1': encoded(1), 'cat/2': encoded(2), 'fox/3': encoded(3) };
    expect(await contents(output, versions[0])).toEqual(first);
    expect(await contents(output, versions[1]!.slice(0, 8))).toEqual({ ...first, 'cat/4': encoded(4) });
    expect(await contents(output, versions[2])).toEqual(await contents(output));
    await expect(contents(output, 'abcdef123456')).rejects.toThrow('has no version abcdef123456');
    await expect(contents(output, 'abc')).rejects.toThrow('at least the first 6');
  });

  test('a restored version becomes the current one, can be undone, and new shards get new names', async () => {
    const { output, images, versions } = await start();
    const before = await contents(output);
    const report = await restoreVersion(output, versions[0]!);
    expect(report).toMatchObject({ version: versions[0], replaced: versions[2], samples: 3, isChanged: true });
    expect(Object.keys(await contents(output))).toEqual(['cat/1', 'cat/2', 'fox/3']);
    expect(await restoreVersion(output, versions[0]!)).toMatchObject({ isChanged: false });
    // Files that only the rolled back version had are new to an append, and get shards with other names.
    await pack(images, output, { append: true, workers: 1 });
    expect(await contents(output)).toEqual(before);
    expect((await verify(output)).faults).toBe(0);
    expect(await contents(output, versions[2])).toEqual(before);
    await restoreVersion(output, versions[2]!);
    expect(await contents(output)).toEqual(before);
    expect((await listVersions(output)).map(({ command }) => command)).toEqual([
      'restore',
      'append',
      'restore',
      'append',
      'append',
      null,
    ]);
  });

  test('an append with restart after a restore removes no shard of a kept version', async () => {
    const { output, images, versions } = await start();
    const before = await contents(output);
    await restoreVersion(output, versions[0]!);
    rmSync(path.join(images, 'bee'), { recursive: true });
    rmSync(path.join(images, 'cat/4.jpg'));
    add(images, { 'dog/6.jpg': jpeg(6) });
    await pack(images, output, { append: true, restart: true, workers: 1 });
    expect(Object.keys(await contents(output)).sort()).toEqual(['cat/1', 'cat/2', 'dog/6', 'fox/3']);
    expect(await contents(output, versions[2])).toEqual(before);
    expect(Object.keys(await contents(output, versions[1]))).toHaveLength(4);
  });

  test('gc removes files that no kept version contains', async () => {
    const { output, versions } = await start();
    await restoreVersion(output, versions[0]!);
    const all = names(output);
    const dry = await collectGarbage(output, { keep: 1, dryRun: true });
    expect(names(output)).toEqual(all);
    const report = await collectGarbage(output, { keep: 1 });
    expect({ ...dry }).toEqual(report);
    expect(report.keptVersions).toEqual([versions[0]]);
    expect([...report.removedVersions].sort()).toEqual([versions[1], versions[2]].sort());
    expect(names(output).filter((name) => /^0/.test(name))).toEqual([
      '000000.parquet',
      '000000.tar',
      '000001.parquet',
      '000001.tar',
    ]);
    expect(all.length - names(output).length).toBe(report.removedFiles);
    await expect(contents(output, versions[2])).rejects.toThrow('has no version');
    expect(Object.keys(await contents(output))).toHaveLength(3);
  });

  test('overlays follow a restored version: entries of missing samples are dropped', async () => {
    const { output, versions } = await start();
    const keys = path.join(emptyFolder(), 'keys.txt');
    writeFileSync(keys, 'cat/2\ncat/4\n');
    await shardtool('overlay', 'add', output, 'clean', '--exclude-keys', keys);
    await shardtool('split', output, '--val', '0.5', '--parent', 'clean');
    await restoreVersion(output, versions[0]!);
    await using clean = await openDataset(output, { overlay: 'clean' });
    expect(clean.size).toBe(2);
    expect(clean.classSamples.slice(0, 2)).toEqual([1, 1]);
    let samples = 0;
    for (const split of ['train', 'val']) {
      await using part = await openDataset(output, { split });
      samples += part.size;
      expect(part.classSamples.reduce((sum, count) => sum + count, 0)).toBe(part.size);
    }
    expect(samples).toBe(2);
    expect((await verify(output)).faults).toBe(0);
  });
});

test('an append to a bucket writes the same bytes as an append to a folder', async () => {
  const images = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2), 'fox/3.jpg': jpeg(3) });
  const folder = newFolder();
  const options = { ...OPTIONS, index: ['wids', 'dali'] as const };
  for (const output of [folder, 's3://versions/shards']) await pack(images, output, options);
  const later = emptyFolder();
  cpSync(images, later, { recursive: true });
  add(later, { 'cat/9.jpg': jpeg(9), 'ant/8.jpg': jpeg(8), 'fox/7.jpg': jpeg(7) });
  for (const output of [folder, 's3://versions/shards']) await pack(later, output, { append: true, workers: 1 });
  const inBucket = Object.fromEntries(
    names('s3://versions/shards').map((name) => [name, server.objects.get(`versions/shards/${name}`)!.bytes]),
  );
  expect(digestsOf(tree(inBucket))).toEqual(digestsOf(folder));
  expect(await listVersions('s3://versions/shards')).toHaveLength(2);
});

test('an append to a bucket that is changed just before the commit changes nothing, and can be repeated', async () => {
  const output = 's3://versions/shards';
  const images = tree({ 'cat/1.jpg': jpeg(1) });
  await pack(images, output, OPTIONS);
  const { identity } = await readManifest(output);
  await using open = await openDataset(output);
  add(images, { 'cat/2.jpg': jpeg(2) });
  await pack(images, output, { append: true, workers: 1 });
  add(images, { 'cat/3.jpg': jpeg(3) });
  server.fault = ({ method, key, headers }) => {
    if (method !== 'PUT' || key !== 'shards/dataset.json') return undefined;
    expect(headers['if-match']).toBeDefined();
    server.put('versions/shards/dataset.json', server.objects.get(`versions/shards/versions/${identity}.json`)!.bytes);
    return undefined;
  };
  const failed = await pack(images, output, { append: true, workers: 1 }).catch((error) => error);
  server.fault = () => undefined;
  expect(failed).toBeInstanceOf(DatasetChangedError);
  expect(failed.message).toContain('run the same command again');
  expect(Object.keys(await contents(output))).toEqual(['cat/1']);
  await pack(images, output, { append: true, workers: 1 });
  expect(Object.keys(await contents(output)).sort()).toEqual(['cat/1', 'cat/2', 'cat/3']);
  expect((await verify(output)).faults).toBe(0);
  // A reader that has been open all the time still reads its version.
  expect(new Uint8Array((await open.get('cat/1')).fields.jpg!)).toEqual(new Uint8Array(jpeg(1)));
});

test('of two concurrent appends to a bucket at least one succeeds; the other reports that, and can be repeated', async () => {
  const output = 's3://versions/shards';
  await pack(tree({ 'cat/1.jpg': jpeg(1) }), output, OPTIONS);
  const sources = [tree({ 'a/1.jpg': jpeg(11) }), tree({ 'b/2.jpg': jpeg(12) })];
  const append = (source: string) => pack(source, output, { append: true, workers: 1, staging: emptyFolder() });
  const ended = await Promise.allSettled(sources.map(append));
  expect(ended.some(({ status }) => status === 'fulfilled')).toBe(true);
  for (const [i, end] of ended.entries()) {
    if (end.status === 'fulfilled') continue;
    expect(['DatasetChangedError', 'PlanChangedError']).toContain(end.reason.name);
    await append(sources[i]!);
  }
  expect(Object.keys(await contents(output)).sort()).toEqual(['a/1', 'b/2', 'cat/1']);
  expect((await verify(output)).faults).toBe(0);
});

test('an append to a bucket that is interrupted at any request can be repeated with the same result', async () => {
  const output = 's3://versions/shards';
  const images = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2) });
  await pack(images, output, { ...OPTIONS, maxShardSamples: 1 });
  const before = new Map(server.objects);
  add(images, { 'cat/3.jpg': jpeg(3), 'dog/4.jpg': jpeg(4) });
  const append = () => pack(images, output, { append: true, workers: 1, staging: emptyFolder() });
  let asked = 0;
  server.fault = () => void asked++;
  await append();
  const whole = await contents(output);
  const shards = names(output).filter((name) => /^0.*tar$|dataset.json/.test(name));
  const sums = shards.map((name) => server.objects.get(`versions/shards/${name}`)!.etag);
  for (let at = 0; at < asked; at += 7) {
    server.objects.clear();
    for (const [name, object] of before) server.objects.set(name, object);
    let count = 0;
    server.fault = () => (count++ >= at ? { status: 403, code: 'AccessDenied' } : undefined);
    await append().catch(() => undefined);
    server.fault = () => undefined;
    await append();
    expect(await contents(output)).toEqual(whole);
    expect(shards.map((name) => server.objects.get(`versions/shards/${name}`)!.etag)).toEqual(sums);
  }
});

test('an append to a bucket starts again with restart if only the index of a shard was uploaded', async () => {
  const output = 's3://versions/shards';
  const images = tree({ 'cat/1.jpg': jpeg(1) });
  await pack(images, output, OPTIONS);
  add(images, { 'cat/2.jpg': jpeg(2) });
  const append = (restart: boolean) => pack(images, output, { append: true, restart, workers: 1 });
  server.fault = ({ method, key }) =>
    method !== 'GET' && key.endsWith('000001.tar') ? { status: 403, code: 'AccessDenied' } : undefined;
  await expect(append(false)).rejects.toThrow();
  server.fault = () => undefined;
  expect(names(output)).toContain('000001.parquet');
  expect(names(output)).not.toContain('000001.tar');
  await append(true);
  expect(Object.keys(await contents(output)).sort()).toEqual(['cat/1', 'cat/2']);
});

test('gc --dry-run writes nothing, so it also works on a dataset that another process is changing', async () => {
  const output = await packedPhotos();
  const lock = tryLock(path.join(output, 'pack.lock')) as Lock;
  const before = names(output);
  const { code, stdout } = await shardtool('gc', output, '--keep', '1', '--dry-run');
  expect([code, stdout]).toEqual([0, expect.stringContaining('Would remove 0 versions and 0 files')]);
  expect(names(output)).toEqual(before);
  lock.release();
});

test('gc keeps the newest versions if the list of changes that it gets is incomplete', async () => {
  const output = 's3://versions/shards';
  const images = tree({ 'cat/1.jpg': jpeg(1) });
  await pack(images, output, OPTIONS);
  for (const number of [2, 3]) {
    add(images, { [`cat/${number}.jpg`]: jpeg(number) });
    await pack(images, output, { append: true, workers: 1 });
  }
  const before = server.names('versions');
  server.editList = (xml) => xml.replace(/<Contents><Key>[^<]*versions%2Flog%2F00000002.*?<\/Contents>/g, '');
  const reports = [await collectGarbage(output, { keep: 3 }), await collectGarbage(output, { olderThan: 3600_000 })];
  server.editList = (xml) => xml;
  expect(reports.map(({ removedVersions }) => removedVersions)).toEqual([[], []]);
  expect(before.filter((name) => !server.names('versions').includes(name) && !name.includes('/log/'))).toEqual([]);
  // Only the current version is left, and is counted once.
  expect((await collectGarbage(output, { keep: 1 })).keptVersions).toHaveLength(1);
  expect((await collectGarbage(output, { keep: 3 })).keptVersions).toHaveLength(1);
});

test('gc removes nothing from a bucket whose current version has just changed', async () => {
  const output = 's3://versions/shards';
  const images = tree({ 'cat/1.jpg': jpeg(1) });
  await pack(images, output, OPTIONS);
  const first = server.objects.get('versions/shards/dataset.json')!.bytes;
  add(images, { 'cat/2.jpg': jpeg(2) });
  await pack(images, output, { append: true, workers: 1 });
  const before = server.names('versions');
  let lists = 0;
  server.fault = ({ query }) => {
    if (query.get('prefix') === 'shards/versions/pending/') lists++;
    // The second such list comes after the chain of versions was read.
    if (lists === 2) server.put('versions/shards/dataset.json', first);
    return undefined;
  };
  await expect(collectGarbage(output, { keep: 1 })).rejects.toThrow(DatasetChangedError);
  expect(server.names('versions')).toEqual(before);
});

test('an erasure works after a gc that was killed between the files of a shard', async () => {
  const images = tree({ 'cat/1.jpg': jpeg(1), 'cat/2.jpg': jpeg(2) });
  const output = newFolder();
  await pack(images, output, OPTIONS);
  const { identity } = await readManifest(output);
  await eraseSamples(output, { keys: ['cat/1'] });
  rmSync(path.join(output, '000000.parquet'));
  expect(await eraseSamples(output, { keys: ['cat/1'], verify: true })).toMatchObject({ heldBy: [identity] });
  await collectGarbage(output, { keep: 1 });
  expect(await eraseSamples(output, { keys: ['cat/1'], verify: true })).toMatchObject({ heldBy: [] });
});

test('the commands log, restore and gc print what they do, also as JSON', async () => {
  const images = tree({ 'cat/1.jpg': jpeg(1) });
  const output = newFolder();
  await pack(images, output, OPTIONS);
  const { identity } = await readManifest(output);
  add(images, { 'dog/2.jpg': jpeg(2) });
  await pack(images, output, { append: true, workers: 1 });
  const log = (await shardtool('log', output)).stdout.trim().split('\n');
  expect(log).toHaveLength(2);
  expect(log[0]).toContain('append\t2 samples, 2 shards');
  expect(JSON.parse((await shardtool('log', output, '--json')).stdout)).toHaveLength(2);
  expect((await shardtool('ls', output, '--at', identity.slice(0, 6))).stdout).toContain('1 sample');
  expect((await shardtool('restore', output, identity.slice(0, 10))).stdout).toContain('Undo: shardtool restore');
  const usage = await shardtool('gc', output);
  expect(usage.stderr).toContain('--keep');
  expect((await shardtool('gc', output, '--older-than', '1d')).stdout).toContain('Removed 0 versions');
  expect((await shardtool('gc', output, '--keep', '1')).stdout).toContain('Removed 1 version and');
  expect(existsSync(path.join(output, '000001.tar'))).toBe(false);
  expect(readFileSync(path.join(output, 'dataset.json'), 'utf8')).toContain(identity);
});
