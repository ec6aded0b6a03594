import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readManifest } from '@shardtool/format';
import { addOverlay, openDataset } from '@shardtool/reader';
import {
  collectGarbage,
  compactDataset,
  convert,
  DatasetChangedError,
  eraseSamples,
  indexShards,
  listVersions,
  pack,
  restoreVersion,
  verify,
} from '@shardtool/writer';
import { describe, expect, test, vi } from 'vitest';
import { type BucketAsk, type BucketServer, useBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { jpeg, newFolder } from './pack-workbench.js';

let server: BucketServer;
useBucketServer((started) => {
  server = started;
});

/** Every sample in the order of the dataset, with all its data. */
async function samplesOf(location: string, options: { version?: string; overlay?: string } = {}): Promise<unknown[]> {
  await using dataset = await openDataset(location, options);
  const found: unknown[] = [];
  for await (const { key, fields, label, columns, source } of dataset.samples({ checksum: true })) {
    const bytes = Object.entries(fields).map(([name, field]) => [name, Buffer.from(field).toString('base64')]);
    found.push([key, bytes, dataset.classes[label], columns, source]);
  }
  const rows: unknown[] = [];
  for (const shard of dataset.shards) {
    const { width, height, orientation } = await shard.loadParts(['width', 'height', 'orientation']);
    width.forEach((one, row) => {
      rows.push([one, height[row], orientation[row]]);
    });
  }
  return found.map((sample, i) => [sample, rows[i]]);
}

const sizesOf = async (location: string) => (await readManifest(location)).shards.map(({ samples }) => samples);

/** A dataset of one large shard, and of one shard for each of four days. */
async function daily(output: string, more: object = {}): Promise<string> {
  const images = emptyFolder();
  const labels = path.join(emptyFolder(), 'labels.csv');
  const lines = ['path,class,score'];
  const add = (from: number, to: number) => {
    for (let i = from; i < to; i++) {
      const cls = ['cat', 'dog'][i % 2]!;
      mkdirSync(path.join(images, cls), { recursive: true });
      writeFileSync(path.join(images, `${cls}/${i}.jpg`), jpeg(i));
      lines.push(`${cls}/${i}.jpg,${cls},${i}.5`);
    }
    writeFileSync(labels, `${lines.join('\n')}\n`);
  };
  add(0, 6);
  await pack(images, output, { labels, workers: 1, ...more });
  for (let day = 1; day <= 4; day++) {
    add(5 + day, 6 + day);
    await pack(images, output, { labels, workers: 1, append: true });
  }
  return images;
}

describe.each(['a folder', 'a bucket'])('in %s', (kind) => {
  const place = () => (kind === 'a folder' ? newFolder() : 's3://compact/shards');

  test('small daily shards are joined, and the samples, their order, overlays and tombstones are kept', async () => {
    const output = place();
    const images = await daily(output, { index: ['wids', 'crops'], name: 'day' });
    await eraseSamples(output, { keys: ['cat/8'] });
    const overlay = path.join(emptyFolder(), 'keys.txt');
    writeFileSync(overlay, 'cat/2\ncat/6\n');
    await shardtool('overlay', 'add', output, 'clean', '--exclude-keys', overlay);
    const before = [await samplesOf(output), await samplesOf(output, { overlay: 'clean' })];
    const { identity } = await readManifest(output);
    expect(await sizesOf(output)).toEqual([6, 1, 1, 1]);
    const dry = await compactDataset(output, { maxShardSamples: 9, dryRun: true });
    expect((await readManifest(output)).identity).toBe(identity);
    const report = await compactDataset(output, { maxShardSamples: 9 });
    expect({ ...dry, version: '', madeBytes: 0 }).toEqual({ ...report, version: '', madeBytes: 0 });
    expect(report).toMatchObject({ shardsBefore: 4, shards: 2, joinedShards: 3, madeShards: 1 });
    expect(await sizesOf(output)).toEqual([6, 3]);
    expect([await samplesOf(output), await samplesOf(output, { overlay: 'clean' })]).toEqual(before);
    expect(await samplesOf(output, { version: identity })).toEqual(before[0]);
    expect((await verify(output)).faults).toBe(0);
    expect((await listVersions(output))[0]).toMatchObject({ command: 'compact', version: report.version });
    expect(await compactDataset(output, { maxShardSamples: 6 })).toMatchObject({ madeShards: 0 });
    writeFileSync(path.join(images, 'dog/11.jpg'), jpeg(11));
    const labels = path.join(emptyFolder(), 'labels.csv');
    writeFileSync(labels, 'path,class,score\ndog/11.jpg,dog,11.5\ncat/8.jpg,cat,8.5\n');
    await pack(images, output, { labels, append: true, workers: 1 });
    expect(await sizesOf(output)).toEqual([6, 3, 1]);
    expect((await samplesOf(output)).slice(0, 9)).toEqual(before[0]);
    await restoreVersion(output, identity);
    expect(await samplesOf(output)).toEqual(before[0]);
    expect(await samplesOf(output, { overlay: 'clean' })).toEqual(before[1]);
    await restoreVersion(output, report.version);
    await collectGarbage(output, { keep: 1 });
    expect([await samplesOf(output), await samplesOf(output, { overlay: 'clean' })]).toEqual(before);
    expect((await verify(output)).faults).toBe(0);
  });
});

test.each([{ format: 'lmdb' }, { format: 'lmdb', lmdbValues: 'image' }, { format: 'msgpack' }])(
  'shards are joined in every format that pack writes: %o',
  async (format) => {
    const output = newFolder();
    await daily(output, format);
    const before = await samplesOf(output);
    await compactDataset(output);
    expect(await sizesOf(output)).toEqual([10]);
    expect(await samplesOf(output)).toEqual(before);
    expect((await verify(output)).faults).toBe(0);
  },
);

test('a compaction that was killed between any two requests to a bucket can be repeated', async () => {
  const output = 's3://compact/shards';
  await daily(output);
  const before = await samplesOf(output);
  const start = new Map(server.objects);
  let asked = 0;
  server.fault = () => {
    asked++;
    return undefined;
  };
  await compactDataset(output);
  const wanted = server.names('compact').filter((name) => !/versions\/(?:log|pending)\//.test(name));
  const total = asked;
  for (let at = 0; at < total; at += Math.ceil(total / 12)) {
    server.objects.clear();
    for (const [name, object] of start) server.objects.set(name, object);
    let number = 0;
    server.fault = () => (number++ >= at ? { status: 403, code: 'AccessDenied' } : undefined);
    await compactDataset(output).catch(() => undefined);
    server.fault = () => undefined;
    expect(await samplesOf(output)).toEqual(before);
    await compactDataset(output);
    expect(await samplesOf(output)).toEqual(before);
    expect(await sizesOf(output)).toEqual([10]);
    expect(server.names('compact').filter((name) => !/versions\/(?:log|pending)\//.test(name))).toEqual(wanted);
  }
});

test('if another process changes a bucket during a compaction, the compaction changes nothing', async () => {
  const output = 's3://compact/shards';
  const images = await daily(output);
  const before = await samplesOf(output);
  let isDone = false;
  server.fault = () => undefined;
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, 'path,class,score\ncat/20.jpg,cat,1.5\n');
  writeFileSync(path.join(images, 'cat/20.jpg'), jpeg(20));
  const original = server.objects.get('compact/shards/dataset.json')!;
  await pack(images, output, { labels, append: true, workers: 1, staging: emptyFolder() });
  const appended = server.objects.get('compact/shards/dataset.json')!;
  server.objects.set('compact/shards/dataset.json', original);
  server.fault = ({ method, key }) => {
    if (!isDone && method === 'PUT' && key.endsWith('.tar')) {
      isDone = true;
      server.objects.set('compact/shards/dataset.json', appended);
    }
    return undefined;
  };
  await expect(compactDataset(output)).rejects.toThrow(DatasetChangedError);
  server.fault = () => undefined;
  expect(isDone).toBe(true);
  expect((await samplesOf(output)).slice(0, 10)).toEqual(before);
  expect(await sizesOf(output)).toEqual([6, 1, 1, 1, 1, 1]);
});

test('an overlay is not created if a compaction replaces its shards in the meantime, and can then be created again', async () => {
  const output = 's3://compact/shards';
  await daily(output);
  let compaction: Promise<unknown> | undefined;
  let isDone = false;
  server.fault = ({ method, key }) => {
    if (method !== 'PUT' || !key.endsWith('/fixed.jsonl')) return undefined;
    compaction ??= compactDataset(output).then(() => {
      isDone = true;
    });
    return isDone ? undefined : { status: 503, code: 'SlowDown' };
  };
  const options = { name: 'fixed', excludeKeys: ['cat/0'] };
  await expect(addOverlay(output, options)).rejects.toThrow(
    's3://compact/shards was changed by another process in the meantime, so the overlay "fixed" was not created',
  );
  await compaction;
  server.fault = () => undefined;
  expect(server.names('compact').filter((name) => name.includes('overlays/'))).toEqual([]);
  const { samples } = await readManifest(output);
  await addOverlay(output, options);
  expect(await samplesOf(output, { overlay: 'fixed' })).toHaveLength(samples - 1);
});

test.each([
  ['a compaction', (output: string) => compactDataset(output)],
  ['an erasure', (output: string) => eraseSamples(output, { keys: ['cat/1'] })],
])(
  'an overlay that another process removes during %s does not stop it, and the other overlay follows',
  async (_, change) => {
    const output = 's3://compact/shards';
    for (let removed = 0, reads = 1; removed < reads; removed++) {
      server.objects.clear();
      await daily(output);
      await addOverlay(output, { name: 'fixed', excludeKeys: ['cat/0'] });
      await addOverlay(output, { name: 'other', excludeKeys: ['cat/2'] });
      reads = 0;
      server.fault = ({ method, key }) => {
        if (method === 'GET' && key.endsWith('overlays/fixed.jsonl') && reads++ === removed)
          server.objects.delete(`compact/${key}`);
        return undefined;
      };
      await change(output);
      server.fault = () => undefined;
      const { samples } = await readManifest(output);
      expect(await samplesOf(output, { overlay: 'other' })).toHaveLength(samples - 1);
      expect(server.names('compact').filter((name) => name.endsWith('overlays/fixed.jsonl'))).toHaveLength(
        reads > removed ? 0 : 1,
      );
    }
  },
);

/** Runs a command, and sends it SIGTERM with the first request that `isMoment`. */
async function interrupted(isMoment: (ask: BucketAsk) => boolean, ...command: string[]) {
  const others = process.listeners('SIGTERM');
  server.fault = (ask) => {
    if (!isMoment(ask)) return undefined;
    for (const stop of process.listeners('SIGTERM')) if (!others.includes(stop)) stop('SIGTERM');
    return undefined;
  };
  const outcome = await shardtool(...command);
  server.fault = () => undefined;
  return outcome;
}

test('a compaction that a signal stops says that the version is the same, and that files may remain', async () => {
  const output = 's3://compact/shards';
  await daily(output);
  const { identity } = await readManifest(output);
  const { code, stderr } = await interrupted(
    ({ method, key }) => method === 'PUT' && key.endsWith('.tar'),
    'compact',
    output,
  );
  expect(code).toBe(143);
  expect(stderr).toContain(
    `The current version of ${output} is unchanged, but files of the unfinished compaction may remain`,
  );
  expect((await readManifest(output)).identity).toBe(identity);
});

test('gc --dry-run of a bucket leaves no folder if a signal stops it', async () => {
  const output = 's3://compact/shards';
  await daily(output);
  const temporary = emptyFolder();
  vi.stubEnv('TMPDIR', temporary);
  try {
    const isList = ({ query }: BucketAsk) => query.has('list-type');
    const { code } = await interrupted(isList, 'gc', output, '--keep', '1', '--dry-run');
    expect([code, readdirSync(temporary)]).toEqual([143, []]);
  } finally {
    vi.unstubAllEnvs();
  }
});

test('the columns of inspect are kept', async () => {
  const output = newFolder();
  await daily(output);
  await shardtool('inspect', output);
  const stats = await shardtool('inspect', output, '--json');
  await compactDataset(output);
  const [shard] = (await readManifest(output)).shards;
  expect(existsSync(path.join(output, shard!.file.replace('.tar', '.inspect')))).toBe(true);
  await using dataset = await openDataset(output);
  const { columns } = await dataset.shards[0]!.loadParts(['columns']);
  expect(columns.get('score')).toHaveLength(10);
  const again = await shardtool('inspect', output, '--json');
  const { measured: _, ...was } = JSON.parse(stats.stdout);
  const { measured: none, ...is } = JSON.parse(again.stdout);
  expect(is).toEqual(was);
  expect(none ?? 0).toBe(0);
});

test('after a compaction, an append still reports files that changed before it', async () => {
  const output = newFolder();
  const images = await daily(output);
  for (const { file } of (await readManifest(output)).shards) utimesSync(path.join(output, file), 1000, 1000);
  utimesSync(path.join(images, 'cat/2.jpg'), 2000, 2000);
  for (let i = 0; i < 10; i++) {
    if (i !== 2) utimesSync(path.join(images, `${['cat', 'dog'][i % 2]}/${i}.jpg`), 500, 500);
  }
  await compactDataset(output);
  expect(statSync(path.join(output, (await readManifest(output)).shards[0]!.file)).mtimeMs).toBe(1_000_000);
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, 'path,class,score\ncat/2.jpg,cat,2.5\n');
  await pack(images, output, { labels, append: true, workers: 1 });
  const changed = readFileSync(path.join(output, 'changed.jsonl'), 'utf8');
  expect(changed.trim().split('\n')).toHaveLength(1);
  expect(changed).toContain('cat/2.jpg');
});

test('a format that only convert writes is rejected, and columns of the index are kept', async () => {
  const output = newFolder();
  const images = await daily(output);
  const mds = newFolder();
  await convert(output, mds, { format: 'mds' });
  await expect(compactDataset(mds)).rejects.toThrow('only "convert" writes: convert its source dataset again');
  await indexShards([output], { index: ['crops'] });
  await addOverlay(output, { name: 'few', excludeKeys: ['cat/0'] });
  await compactDataset(output);
  expect(existsSync(path.join(output, (await readManifest(output)).shards[0]!.file.replace('.tar', '.crops')))).toBe(
    true,
  );
  rmSync(images, { recursive: true });
});

test('the command reports what it joined', async () => {
  const output = newFolder();
  await daily(output);
  expect((await shardtool('compact', output, '--dry-run')).stdout).toMatch(
    /^Would join 5 shards of \S+ to 1 \([\d.]+ kB\): 5 shards before, 1 now\.\n$/,
  );
  expect((await shardtool('compact', output)).stdout).toMatch(/^Joined 5 shards/);
  expect((await shardtool('compact', output)).stdout).toMatch(/^Nothing to join in /);
});
