import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readShardIndex } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { openStorage } from '@shardtool/storage';
import { type PackOptions, pack, repair, verify } from '@shardtool/writer';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { datasetDigestsOf, filesIn, jpeg, newFolder, PNG, tree } from './pack-workbench.js';

let server: BucketServer;

beforeAll(async () => {
  server = await defaultBucketServer();
});
afterAll(() => server.stop());
beforeEach(() => {
  server.objects.clear();
  server.asked.length = 0;
  server.most = 0;
  Object.assign(server, { pageSize: 1000, latencyMs: 0, fault: () => undefined, editList: (xml: string) => xml });
});

const FILES = {
  'cat/1.jpg': jpeg('cat 1'),
  'cat/1.txt': 'a cat',
  'cat/1.seg.png': PNG,
  'cat/2.jpg': jpeg('cat 2'),
  'cat.jpg': jpeg('beside the folder of its name'),
  'dog/é b+c (1).jpg': jpeg('dog'),
  'dog/deep/er/3.png': PNG,
  'dog/.hidden/4.jpg': jpeg('hidden'),
  'dog/.5.jpg': jpeg('hidden, too'),
  'dog/6.jpg': PNG,
  'zebra/7.jpg': jpeg('zebra'),
};

/** Puts the files into the bucket `raw` and into a folder. */
function both(files: Readonly<Record<string, string | Uint8Array>> = FILES): string {
  for (const [name, content] of Object.entries(files)) server.put(`raw/set/${name}`, content);
  return tree(files);
}

const kinds: [string, PackOptions][] = [
  ['everything', {}],
  ['patterns', { include: ['dog/**', '*.jpg'], exclude: ['**/deep'] }],
  ['fields and another layout', { fields: ['seg.png'], format: 'lmdb', maxShardSamples: 2 }],
  ['a list of files', { files: ['cat/2.jpg', 'dog/é b+c (1).jpg'], shuffle: false }],
  ['images without duplicates', { dedupe: true }],
  ['resized images', { resize: 8, workers: 2, maxShardSamples: 1 }],
];
test.each(kinds)('a bucket is packed to the same bytes as a folder with the same files: %s', async (_, options) => {
  const folder = both();
  const [fromBucket, fromFolder] = [newFolder(), newFolder()];
  const report = await pack('s3://raw/set', fromBucket, options);
  // With one thread, which changes no byte.
  const expected = await pack(folder, fromFolder, { ...options, workers: 1 });
  expect({ ...report, hiddenFolders: [] }).toEqual({ ...expected, hiddenFolders: [] });
  expect(report.hiddenFolders.map((hidden) => hidden.replace('s3://raw/set/', ''))).toEqual(
    expected.hiddenFolders.map((hidden) => path.relative(folder, hidden)),
  );
  expect(datasetDigestsOf(fromBucket)).toEqual(datasetDigestsOf(fromFolder));
});

test.each<PackOptions>([{}, { dedupe: true }, { dedupe: true, dryRun: true }, { index: ['wids'] }])(
  'a pack from a bucket with %o stops all timers that watch for hanging calls',
  async (options) => {
    both();
    const [made, cleared] = [vi.spyOn(globalThis, 'setInterval'), vi.spyOn(globalThis, 'clearInterval')];
    try {
      await pack('s3://raw/set', newFolder(), { exclude: ['dog/**'], ...options });
      await vi.waitFor(() => {
        const ended = new Set(cleared.mock.calls.map(([timer]) => timer));
        expect(made.mock.results.filter(({ value }) => !ended.has(value))).toEqual([]);
      });
      expect(made).toHaveBeenCalled();
    } finally {
      made.mockRestore();
      cleared.mockRestore();
    }
  },
);

test('labels and the labels file may be in a bucket, and a second pack finds everything done', async () => {
  const folder = both();
  const labels = path.join(tree({ 'l.csv': 'path,class,age\ncat/1.jpg,c,3\ns3://raw/set/zebra/7.jpg,z,5\n' }), 'l.csv');
  const inFolder = path.join(tree({ 'l.csv': 'path,class,age\ncat/1.jpg,c,3\nzebra/7.jpg,z,5\n' }), 'l.csv');
  const [fromBucket, fromFolder] = [newFolder(), newFolder()];
  expect(await pack('s3://raw/set/', fromBucket, { labels })).toMatchObject({ samples: 2, classes: ['c', 'z'] });
  await pack(folder, fromFolder, { labels: inFolder });
  expect(datasetDigestsOf(fromBucket)).toEqual(datasetDigestsOf(fromFolder));
  // The table itself may be in a bucket, too.
  server.put('tables/l.csv', readFileSync(labels));
  const there = newFolder();
  await pack('s3://raw/set', there, { labels: 's3://tables/l.csv' });
  expect(datasetDigestsOf(there)).toEqual(datasetDigestsOf(fromFolder));
  await expect(pack('s3://raw/set', newFolder(), { labels: 's3://tables/none.csv' })).rejects.toThrow(
    /^s3:\/\/tables\/none\.csv cannot be read: there is no such file \(404, NoSuchKey\)\.$/,
  );
  server.asked.length = 0;
  expect(await pack('s3://raw/set', fromBucket, { labels })).toMatchObject({ wasCommitted: true });
  expect(server.asked.map(({ method, key }) => `${method} ${key}`)).toEqual(['GET ']);
  server.put('raw/set/cat/1.jpg', jpeg('another'), 0);
  await expect(pack('s3://raw/set', fromBucket, { labels })).rejects.toThrow(/already contains a dataset/);
});

test('an append reports missing objects like missing files, but none that its patterns exclude', async () => {
  const folder = both();
  const [fromBucket, fromFolder] = [newFolder(), newFolder()];
  await pack('s3://raw/set', fromBucket);
  await pack(folder, fromFolder);
  for (const name of ['cat/2.jpg', 'zebra/7.jpg']) {
    server.objects.delete(`raw/set/${name}`);
    rmSync(path.join(folder, name));
  }
  const changes = { changed: 0, gone: 2, relabelled: 0, first: 'cat/2.jpg' };
  expect((await pack(folder, fromFolder, { append: true })).changes).toEqual(changes);
  expect((await pack('s3://raw/set', fromBucket, { append: true })).changes).toEqual(changes);
  // A misnamed file is in a field of another name, which does not count as a change.
  const lists = [fromBucket, fromFolder].map((output) => readFileSync(path.join(output, 'changed.jsonl'), 'utf8'));
  expect(lists[0]).toBe(lists[1]);
  const part = await pack('s3://raw/set', fromBucket, { append: true, exclude: ['zebra/**'] });
  expect(part.changes).toEqual({ ...changes, gone: 1 });
});

test('a repair fetches damaged samples from the packed bucket, and no other files', async () => {
  both();
  const output = newFolder();
  await pack('s3://raw/set', output, { maxShardSamples: 2, shuffle: false });
  const shard = path.join(output, '000000.tar');
  const { source, fields } = await readShardIndex(path.join(output, '000000.parquet'));
  const row = source.indexOf('cat/1.jpg');
  const bytes = readFileSync(shard);
  bytes[fields.get('jpg')!.offset[row]! + 20]! ^= 4;
  writeFileSync(shard, bytes);
  server.asked.length = 0;
  const report = await repair(output, { workers: 1, source: 's3://raw/set' });
  expect(report).toMatchObject({ repairedShards: 1, takenOut: 0, restored: 1 });
  expect(new Set(server.asked.map(({ key }) => key))).toEqual(new Set(['', 'set/cat/1.jpg']));
  expect((await verify(output)).faults).toBe(0);
  await expect(repair(output, { source: 's3://raw/elsewhere' })).rejects.toThrow(
    's3://raw/elsewhere contains no files',
  );
});

test('names and sizes are read only from lists, and each object with one request', async () => {
  both();
  await pack('s3://raw/set', newFolder());
  const count = (test: (ask: (typeof server.asked)[number]) => boolean) => server.asked.filter(test).length;
  expect(count(({ key }) => key === '')).toBe(1);
  expect(count(({ method }) => method === 'HEAD')).toBe(0);
  expect(count(({ key }) => key !== '')).toBe(Object.keys(FILES).length - 2);
});

test('many objects are read concurrently', async () => {
  both(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`c/${i}.jpg`, jpeg(i)])));
  // On a busy machine faster responses would arrive before the next request is sent.
  server.latencyMs = 200;
  await pack('s3://raw/set', newFolder(), { workers: 1 });
  expect(server.most).toBeGreaterThan(20);
});

test('a long list is split at folders, and its parts are listed concurrently, each name once and in order', async () => {
  const names = fc.uniqueArray(
    fc.array(fc.constantFrom('a', 'b', 'c.', 'é', '\u{1f600}', 'z0'), { minLength: 1, maxLength: 4 }),
    { minLength: 1, maxLength: 60, selector: (parts) => parts.join('/') },
  );
  await fc.assert(
    fc.asyncProperty(names, fc.integer({ min: 1, max: 7 }), async (found, pageSize) => {
      server.objects.clear();
      for (const parts of found) server.put(`raw/set/${parts.join('/')}`, 'x');
      server.put('raw/set0', 'beside');
      server.pageSize = pageSize;
      const storage = await openStorage('s3://raw/set');
      const listed: string[] = [];
      for await (const { name } of storage.list('', { deep: true })) listed.push(name);
      expect(listed).toEqual(
        server
          .names('raw')
          .filter((name) => name.startsWith('set/'))
          .map((name) => name.slice(4)),
      );
    }),
    { numRuns: 25 },
  );
  server.objects.clear();
  for (let i = 0; i < 800; i++) server.put(`raw/set/${i % 80}/${i}.jpg`, 'x');
  // On a busy machine faster responses would arrive before the next request is sent.
  Object.assign(server, { pageSize: 10, latencyMs: 30, most: 0 });
  let listed = 0;
  for await (const _ of (await openStorage('s3://raw/set')).list('', { deep: true })) listed++;
  expect(listed).toBe(800);
  expect(server.most).toBeGreaterThan(10);
});

test('a store that lists in another order is packed to the same bytes', async () => {
  const folder = both();
  const names = server.names.bind(server);
  server.names = (bucket) => names(bucket).reverse();
  const [fromBucket, fromFolder] = [newFolder(), newFolder()];
  try {
    await pack('s3://raw/set', fromBucket);
  } finally {
    server.names = names;
  }
  await pack(folder, fromFolder);
  expect(datasetDigestsOf(fromBucket)).toEqual(datasetDigestsOf(fromFolder));
});

test('requests with lost connections and busy servers are retried', async () => {
  const folder = both();
  const seen = new Set<string>();
  server.fault = ({ key }) => {
    if (seen.has(key)) return undefined;
    seen.add(key);
    return seen.size % 2 === 0 ? 'reset' : { status: 503, code: 'SlowDown' };
  };
  const [fromBucket, fromFolder] = [newFolder(), newFolder()];
  await pack('s3://raw/set', fromBucket);
  await pack(folder, fromFolder);
  expect(datasetDigestsOf(fromBucket)).toEqual(datasetDigestsOf(fromFolder));
});

test('an object that is replaced or removed after it was listed is a bad file, and no other file is affected', async () => {
  both();
  server.fault = ({ key }) => {
    // After the lists were fetched.
    if (key !== '' && server.objects.has('raw/set/cat/2.jpg')) {
      server.put('raw/set/cat/1.jpg', jpeg('cat 0'), Date.now() + 5000);
      server.objects.delete('raw/set/cat/2.jpg');
    }
    return undefined;
  };
  const output = newFolder();
  const report = await pack('s3://raw/set', output, { onBad: 'quarantine', maxBad: 1 });
  expect(report).toMatchObject({ samples: 6, quarantined: 2 });
  const quarantine = readFileSync(path.join(output, 'quarantine.jsonl'), 'utf8');
  expect(quarantine).toContain('s3://raw/set/cat/1.jpg has changed since the pack began.');
  expect(quarantine).toContain('s3://raw/set/cat/2.jpg cannot be read: there is no such file (404, NoSuchKey).');
});

test('a bucket that does not exist is reported as such, and not as an unfinished pack', async () => {
  server.fault = () => ({ status: 404, code: 'NoSuchBucket' });
  const refused = {
    name: 'RequestRejectedError',
    message: expect.stringContaining('there is no such bucket: check its name'),
  };
  await expect(openDataset('s3://none/shards')).rejects.toMatchObject(refused);
  await expect(pack('s3://none/set', newFolder())).rejects.toMatchObject(refused);
});

test('a list that is truncated in transit is requested again, and never accepted', async () => {
  both();
  server.pageSize = 4;
  const packed = () => pack('s3://raw/set', newFolder(), { workers: 1 });
  const { samples } = await packed();
  let lists = 0;
  server.editList = (xml) => (lists++ % 2 === 0 ? xml.slice(0, xml.length / 2) : xml);
  expect(await packed()).toMatchObject({ samples });
  server.editList = (xml) => xml.replace(/<NextContinuationToken>.*<\/NextContinuationToken>/, '');
  await expect(packed()).rejects.toThrow(
    's3://raw/set cannot be listed: the server cuts the list short and does not say where it continues. Name the files',
  );
  let first = '';
  server.editList = (xml) => (first ||= xml);
  await expect(packed()).rejects.toThrow('the server returns the same part of the list again');
  let n = 0;
  // Other names, with a continuation token that was returned before.
  server.editList = () =>
    `<ListBucketResult><Contents><Key>set/${n++}.jpg</Key><Size>5</Size></Contents><IsTruncated>true</IsTruncated>` +
    '<NextContinuationToken>here</NextContinuationToken></ListBucketResult>';
  await expect(packed()).rejects.toThrow('the server returns the same part of the list again');
});

test('a bucket that may not be listed, an empty one, and names that files cannot have are rejected with one sentence each', async () => {
  const failure = async (options: PackOptions = {}): Promise<Error> =>
    pack('s3://raw/set', newFolder(), options).then(
      () => new Error('it was packed'),
      (error) => error,
    );
  expect(await failure()).toMatchObject({ name: 'NoImagesError' });
  server.put('raw/set/cat//1.jpg', jpeg(1));
  expect(await failure()).toMatchObject({ name: 'FileNameError', path: 's3://raw/set/cat//1.jpg' });
  server.put('raw/set/cat/2.jpg', jpeg(2));
  const named = newFolder();
  for (const include of [['**'], ['cat/**']]) {
    const options = { onBad: 'quarantine', maxBad: 1, include, overwrite: true } as const;
    expect(await pack('s3://raw/set', named, options)).toMatchObject({ samples: 1, quarantined: 1 });
    expect(readFileSync(path.join(named, 'quarantine.jsonl'), 'utf8')).toContain('"path":"cat//1.jpg"');
  }
  server.objects.clear();
  both();
  server.fault = ({ key }) => (key === '' ? { status: 403, code: 'AccessDenied' } : undefined);
  const refused = await failure();
  expect(refused.message).toMatch(/^s3:\/\/raw\/set cannot be listed: access is denied.*AccessDenied/);
  expect(refused.message + refused.stack).not.toMatch(/very-secret|Signature/);
  // Objects whose names are known can be packed nevertheless.
  const output = newFolder();
  expect(await pack('s3://raw/set', output, { files: ['cat/1.jpg', 'cat/2.jpg'] })).toMatchObject({ samples: 2 });
  expect(await failure({ files: ['cat/none.jpg'] })).toMatchObject({
    name: 'BadFileError',
    message: expect.stringContaining('s3://raw/set/cat/none.jpg cannot be read: there is no such file.'),
  });
  expect(await failure({ files: ['../set/cat/1.jpg'] })).toMatchObject({ name: 'LabelsError' });
  for (const file of filesIn(output)) {
    expect(readFileSync(path.join(output, file)).includes('very-secret')).toBe(false);
  }
});
