import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { shuffle, temporaryName } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { convert, pack, verify } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketServer, defaultBucketServer } from './bucket-server.js';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { filesIn, jpeg, newFolder } from './pack-workbench.js';
import { archive, entry } from './tar-craft.js';

const SAMPLES = 40;
/** The source of all tests: 40 samples with classes and columns, some with masks. */
const source = () => {
  const images = emptyFolder();
  const rows: string[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const cls = ['cat', 'dog', 'ant'][i % 3]!;
    mkdirSync(path.join(images, cls), { recursive: true });
    writeFileSync(path.join(images, cls, `${i}.jpg`), jpeg(i));
    if (i % 4 === 0) writeFileSync(path.join(images, cls, `${i}.seg.png`), Buffer.from(`mask ${i}`));
    rows.push(`${cls}/${i}.jpg,${cls},${i % 5 === 0 ? '' : (i * 7) % 11},text ${(i * 3) % 8}`);
  }
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, `path,class,score,caption\n${rows.join('\n')}\n`);
  return { images, labels };
};

let server: BucketServer;
let packed: string;
beforeAll(async () => {
  server = await defaultBucketServer();
  packed = newFolder();
  const { images, labels } = source();
  await pack(images, packed, { labels, fields: ['seg.png'], maxShardSamples: 7, workers: 1 });
});
afterAll(() => server.stop());

interface Row {
  readonly key: string;
  readonly score: unknown;
  readonly caption: unknown;
  readonly cls: unknown;
  readonly rest: unknown;
}

async function rowsOf(location: string, options: object = {}): Promise<Row[]> {
  await using dataset = await openDataset(location, options);
  const rows: Row[] = [];
  for await (const { key, fields, label, columns, source: file } of dataset.samples({ checksum: true })) {
    const bytes = Object.keys(fields)
      .sort()
      .map((name) => [name, Buffer.from(fields[name]!).toString('base64')]);
    const { score, caption } = columns;
    rows.push({ key, score, caption, cls: dataset.classes[label], rest: [bytes, columns, file] });
  }
  return rows;
}

const countsOf = async (location: string) => (await readManifest(location)).shards.map(({ samples }) => samples);
const sortedByKey = (rows: readonly Row[]) => rows.toSorted((a, b) => (a.key < b.key ? -1 : 1));

test('shards of another size have the same samples in the same order, with classes, columns, sources and sizes', async () => {
  const before = await rowsOf(packed);
  for (const [maxShardSamples, counts] of [
    [16, [16, 16, 8]],
    [3, [...new Array<number>(13).fill(3), 1]],
    [1000, [40]],
  ] as const) {
    const output = newFolder();
    await convert(packed, output, { maxShardSamples });
    expect(await countsOf(output)).toEqual(counts);
    expect(await rowsOf(output)).toEqual(before);
    expect((await readManifest(output)).classes).toEqual((await readManifest(packed)).classes);
    expect((await readManifest(output)).columns).toEqual((await readManifest(packed)).columns);
    expect((await verify(output)).faults).toBe(0);
    expect(filesIn(output).filter((name) => /spool|pack\.state/.test(name))).toEqual([]);
  }
  const output = newFolder();
  await convert(packed, output, { maxShardBytes: '20KiB', name: 'day' });
  const { shards } = await readManifest(output);
  expect(shards[0]!.file).toBe('day-000000.tar');
  expect(shards.length).toBeGreaterThan(1);
  for (const { bytes, samples } of shards) expect(bytes <= 20 * 1024 + 1024 || samples === 1).toBe(true);
  expect(await rowsOf(output)).toEqual(before);
});

test.each([{ format: 'tar' }, { format: 'lmdb' }, { format: 'msgpack' }] as const)(
  'a seed shuffles all samples, and each is included once: %o',
  async ({ format }) => {
    const before = await rowsOf(packed);
    const output = newFolder();
    await convert(packed, output, { format, seed: 3, maxShardSamples: 9 });
    const order = Uint32Array.from(before, (_, i) => i);
    shuffle(order, SAMPLES, 3, 0, 0, 0);
    expect(await rowsOf(output)).toEqual(Array.from(order, (i) => before[i]));
    expect(Array.from(order)).not.toEqual(before.map((_, i) => i));
    expect((await verify(output)).faults).toBe(0);
  },
);

test('the same seed gives the same bytes, and another seed gives another order', async () => {
  const digests: string[] = [];
  for (const seed of [5, 5, 6]) {
    const output = newFolder();
    await convert(packed, output, { seed, maxShardSamples: 9 });
    digests.push((await readManifest(output)).identity);
  }
  expect(digests[0]).toBe(digests[1]);
  expect(digests[0]).not.toBe(digests[2]);
});

test('samples are sorted by a column, missing values last; equal values keep their order or are shuffled', async () => {
  const before = await rowsOf(packed);
  const compare = (a: unknown, b: unknown) =>
    a === b ? 0 : a === null ? 1 : b === null ? -1 : (a as number) < (b as number) ? -1 : 1;
  for (const [sortBy, of] of [
    ['score', ({ score }: Row) => score],
    ['caption', ({ caption }: Row) => caption],
    ['class', ({ cls }: Row) => cls],
    ['key', ({ key }: Row) => key],
  ] as const) {
    const output = newFolder();
    await convert(packed, output, { sortBy, maxShardSamples: 100 });
    expect((await rowsOf(output)).map(({ key }) => key)).toEqual(
      before.toSorted((a, b) => compare(of(a), of(b))).map(({ key }) => key),
    );
  }
  const shuffled = newFolder();
  await convert(packed, shuffled, { sortBy: 'class', seed: 1 });
  const rows = await rowsOf(shuffled);
  expect(rows.map(({ cls }) => cls)).toEqual(before.map(({ cls }) => cls as string).toSorted());
  expect(rows.map(({ key }) => key)).not.toEqual(
    before.toSorted((a, b) => compare(a.cls, b.cls)).map(({ key }) => key),
  );
  expect(sortedByKey(rows)).toEqual(sortedByKey(before));
});

test('a selection is re-sharded: an overlay, a condition and excluded keys', async () => {
  const output = newFolder();
  await convert(packed, output, { where: 'class == "dog" and score != null', seed: 2, maxShardSamples: 4 });
  const wanted = (await rowsOf(packed)).filter(({ cls, score }) => cls === 'dog' && score !== null);
  expect(sortedByKey(await rowsOf(output))).toEqual(sortedByKey(wanted));
  const fewer = newFolder();
  await convert(packed, fewer, { excludeKeys: [wanted[0]!.key], sortBy: 'key' });
  const keys = (await rowsOf(packed)).map(({ key }) => key).filter((key) => key !== wanted[0]!.key);
  expect((await rowsOf(fewer)).map(({ key }) => key)).toEqual(keys.sort());
});

test('exactly the listed keys are excluded: also of an empty list, and a key with a line break', async () => {
  const folder = emptyFolder();
  const names = ['a', 'b', 'a\nb'];
  writeFileSync(path.join(folder, 'x.tar'), archive(...names.map((name) => entry({ name: `${name}.bin` }, name))));
  const keysWithout = async (excludeKeys: readonly string[]) => {
    const output = newFolder();
    await convert(folder, output, { workers: 1, excludeKeys });
    return (await rowsOf(output)).map(({ key }) => key);
  };
  expect(await keysWithout([])).toEqual(names);
  expect(await keysWithout(['a\nb'])).toEqual(['a', 'b']);
});

test('shards in a bucket are re-sharded to a bucket, and repeating the command writes nothing', async () => {
  server.objects.clear();
  await convert(packed, 's3://reshard/first', {});
  const before = await rowsOf(packed);
  const options = { seed: 4, maxShardSamples: 12, index: ['wids', 'crops'] } as const;
  await convert('s3://reshard/first', 's3://reshard/second', options);
  expect(await countsOf('s3://reshard/second')).toEqual([12, 12, 12, 4]);
  expect(sortedByKey(await rowsOf('s3://reshard/second'))).toEqual(sortedByKey(before));
  const local = newFolder();
  await convert(packed, local, options);
  expect((await readManifest('s3://reshard/second')).identity).toBe((await readManifest(local)).identity);
  const names = server.names('reshard');
  expect(names.filter((name) => /spool|pack\.state/.test(name))).toEqual([]);
  expect((await convert('s3://reshard/first', 's3://reshard/second', options)).wasCommitted).toBe(true);
  await expect(convert('s3://reshard/first', 's3://reshard/second', { ...options, seed: 5 })).rejects.toThrow();
});

test('a run that fails can be repeated, and leaves no temporary file', async () => {
  server.objects.clear();
  const before = await rowsOf(packed);
  for (const at of [2, 6, 11]) {
    const output = `s3://reshard/${at}`;
    let asked = 0;
    server.fault = ({ method }) =>
      method === 'PUT' && asked++ >= at ? { status: 403, code: 'AccessDenied' } : undefined;
    await expect(convert(packed, output, { seed: 1, maxShardSamples: 5 })).rejects.toThrow();
    server.fault = () => undefined;
    await convert(packed, output, { seed: 1, maxShardSamples: 5 });
    expect(sortedByKey(await rowsOf(output))).toEqual(sortedByKey(before));
  }
  const output = newFolder();
  const stop = new AbortController();
  const stopped = convert(packed, output, {
    seed: 1,
    maxShardSamples: 2,
    signal: stop.signal,
    onProgress: () => stop.abort(new Error('stopped')),
  });
  stop.abort(new Error('stopped'));
  await expect(stopped).rejects.toThrow('stopped');
  await convert(packed, output, { seed: 1, maxShardSamples: 5 });
  expect(sortedByKey(await rowsOf(output))).toEqual(sortedByKey(before));
});

test('a run starts in a folder in which a killed one left the name of its temporary file', async () => {
  const output = newFolder();
  mkdirSync(output);
  const left = temporaryName('spool').replace(String(process.pid), String(2 ** 30));
  writeFileSync(path.join(output, left), 'half');
  await convert(packed, output, { seed: 1, maxShardSamples: 5 });
  expect(filesIn(output).filter((name) => name.includes('spool'))).toEqual([]);
});

test('a damaged sample is reported by its key, not copied', async () => {
  const damaged = newFolder();
  await convert(packed, damaged, {});
  const { file } = (await readManifest(damaged)).shards[1]!;
  const bytes = readFileSync(path.join(damaged, file));
  const image = bytes.indexOf(Buffer.from([0xff, 0xd8, 0xff]));
  bytes[image + 20]! ^= 1;
  writeFileSync(path.join(damaged, file), bytes);
  for (const options of [{ seed: 1 }, { maxShardSamples: 100 }]) {
    await expect(convert(damaged, newFolder(), options)).rejects.toMatchObject({
      code: 'ERR_SHARDTOOL_SAMPLE_CHECKSUM',
    });
  }
});

test('the errors for options that cannot be combined contain a remedy', async () => {
  await expect(convert(packed, newFolder(), { sortBy: 'scor' })).rejects.toThrow(
    'The dataset has no column "scor" to sort by ("sortBy"); did you mean "score"?',
  );
  await expect(convert(packed, newFolder(), { format: 'parquet', seed: 1 })).rejects.toThrow('re-shard to tar first');
  await expect(convert(packed, newFolder(), { name: 'x' })).rejects.toThrow('The option "name" is for new shards');
  const { createReadStream } = await import('node:fs');
  const { shards } = await readManifest(packed);
  const stream = createReadStream(path.join(packed, shards[0]!.file));
  await expect(convert(stream, newFolder(), { seed: 1 })).rejects.toThrow('but The stream is a stream');
  stream.destroy();
  const { code, stdout } = await shardtool('convert', packed, newFolder(), '--seed', '1', '--max-shard-samples', '20');
  expect([code, stdout]).toEqual([0, expect.stringContaining('Converted 40 samples into 2 shards')]);
});
