import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Batch, openDataset } from '@shardtool/reader';
import { convert, pack, repair, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { digestsOf, filesIn, newFolder, PNG, tree } from './pack-workbench.js';

/** Names that every plain object of JavaScript has; names of fields are in lower case. */
const NAMES = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'valueOf'];
const FIELDS = NAMES.map((name) => name.toLowerCase());

const image = readFileSync('test/fixtures/odd-images/gray.jpg');
const files: Record<string, string | Uint8Array> = {};
for (const [i, name] of NAMES.entries()) {
  files[`${name}/${name}.jpg`] = Buffer.concat([image, Buffer.from(name)]);
  for (const field of FIELDS) files[`${name}/${name}.${field}`] = `${field} of ${name}`;
  files[`${name}/${name}.json`] = `{"__proto__": ${i}, "constructor": "${name}"}`;
  files[`${name}/${name}.__proto__.png`] = PNG;
}
const source = tree(files);
const labels = path.join(emptyFolder(), 'labels.csv');
writeFileSync(
  labels,
  `path,class,${NAMES.join(',')}\n${NAMES.map((name, i) => `${name}/${name}.jpg,${name},${NAMES.map((_, n) => 10 * i + n).join(',')}`).join('\n')}\n`,
);
const options = { labels, fields: ['__proto__.png'], maxShardSamples: 2, shuffle: false } as const;

const shards = new Map<string, string>();
for (const format of ['tar', 'lmdb', 'msgpack'] as const) {
  const output = newFolder();
  await pack(source, output, { workers: 1, ...options, format });
  shards.set(format, output);
}
const tar = shards.get('tar')!;

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await shardtool(...args);
  expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' });
  return stdout;
}

/** The files below a folder that were packed, and no other files. */
function expectSource(folder: string): void {
  const unpacked = filesIn(folder).filter((file) => !file.endsWith('.cls'));
  expect(unpacked).toEqual(Object.keys(files).sort());
  for (const file of unpacked)
    expect(readFileSync(path.join(folder, file)).equals(Buffer.from(files[file]!))).toBe(true);
}

test.each([...shards])('every field is read back from %s, and from converted shards', async (format, dataset) => {
  await using opened = await openDataset(dataset);
  for await (const { key, fields } of opened.samples({ checksum: true })) {
    const name = path.basename(key);
    expect(Object.keys(fields).sort()).toEqual([...FIELDS, '__proto__.png', 'cls', 'jpg', 'json'].sort());
    for (const field of FIELDS) expect(Buffer.from(fields[field]!).toString()).toBe(`${field} of ${name}`);
    expect(fields.isprototypeof).toBeUndefined();
  }
  const other = newFolder();
  await convert(dataset, other, { workers: 1, format: format === 'tar' ? 'msgpack' : 'tar' });
  const folder = path.join(emptyFolder(), 'unpacked');
  await printed('unpack', other, folder, '--quiet');
  expectSource(folder);
  expect(await verify(dataset, { check: 'decode', workers: 1 })).toMatchObject({ faults: 0, samples: 5 });
});

test('a repair restores fields with these names, and a stream of them can be converted', async () => {
  const damaged = newFolder();
  await pack(source, damaged, { workers: 1, ...options, format: 'msgpack' });
  const digests = digestsOf(damaged);
  const shard = path.join(damaged, '000001.msgpack');
  const bytes = readFileSync(shard);
  for (const field of FIELDS) bytes[bytes.indexOf(`${field} of `)]! ^= 1;
  writeFileSync(shard, bytes);
  expect(await repair(damaged, { workers: 1, source })).toMatchObject({ takenOut: 0, samples: 5 });
  rmSync(path.join(damaged, 'quarantine'), { recursive: true });
  expect(digestsOf(damaged)).toEqual(digests);
  const streamed = newFolder();
  const { createGzip } = await import('node:zlib');
  const { createReadStream } = await import('node:fs');
  await convert(createReadStream(path.join(tar, '000000.tar')).pipe(createGzip()), streamed, {
    workers: 1,
    format: 'lmdb',
  });
  const listed = await printed('ls', streamed, '--samples', '--json');
  expect(Object.keys(JSON.parse(listed.split('\n')[0]!).fields)).toEqual(expect.arrayContaining(FIELDS));
});

test('commands print, find and count these names', async () => {
  const rows = (await printed('ls', tar, '--samples', '--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  for (const [i, row] of rows.entries()) {
    expect(Object.keys(row.fields)).toEqual(expect.arrayContaining(FIELDS));
    expect(Object.entries(row.columns)).toEqual(NAMES.map((name, n) => [name, 10 * i + n]));
  }
  for (const name of NAMES) {
    expect(await printed('cat', tar, `${name}/${name}`, name.toLowerCase())).toBe(`${name.toLowerCase()} of ${name}`);
    expect(await shardtool('cat', tar, name)).toMatchObject({ code: 2, stderr: expect.stringContaining('no sample') });
  }
  expect(await shardtool('cat', tar, 'constructor/constructor', 'isprototypeof')).toMatchObject({ code: 2 });
  const stats = JSON.parse(await printed('stats', tar, '--json'));
  expect(stats.classes.map(({ name }: { name: string }) => name).sort()).toEqual([...NAMES].sort());
  expect(stats.fields.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(FIELDS));
  // Row i has 10 * i + n in column n.
  for (const [n, name] of NAMES.entries()) {
    const plan = await printed('plan', tar, '--where', `${name} >= ${20 + n}`, '--json');
    expect(JSON.parse(plan)).toMatchObject({ samples: NAMES.length - 2 });
  }
  const folder = path.join(emptyFolder(), 'unpacked');
  await printed('unpack', tar, folder, '--fields', '__proto__', '--quiet');
  expect(filesIn(folder)).toEqual(NAMES.map((name) => `${name}/${name}.__proto__`).sort());
  for (const size of ['5constructor', '5__proto__']) {
    expect((await shardtool('pack', source, newFolder(), '--max-shard-bytes', size)).code).toBe(2);
  }
  const transform = path.join(emptyFolder(), 'list.json');
  writeFileSync(transform, '[{"name": "constructor"}]');
  const preview = await shardtool('preview', tar, '--transform', transform, '--output', `${newFolder()}.png`);
  expect(preview).toMatchObject({ code: 2, stderr: expect.stringContaining('constructor') });
});

test('a loader delivers fields, masks and classes with these names', async () => {
  await using dataset = await openDataset(tar);
  const transform = [
    { name: 'resize' as const, size: 8 },
    { name: 'centerCrop' as const, size: 8 },
  ];
  await using loader = dataset.loader({
    transform,
    batchSize: 5,
    workers: 1,
    shuffle: false,
    fields: [...FIELDS, 'json'],
    masks: ['__proto__.png'],
    classes: NAMES,
    weights: new Map(NAMES.map((name) => [name, 1])),
  });
  const batches: Batch[] = [];
  for await (const batch of loader) {
    batches.push(batch);
    for (const [row, key] of batch.keys.entries()) {
      const name = path.basename(key);
      for (const field of FIELDS)
        expect(Buffer.from(batch.fields[field]![row] as Uint8Array).toString()).toBe(`${field} of ${name}`);
      expect(Object.entries(batch.fields.json![row] as object)[1]).toEqual(['constructor', name]);
    }
    expect(Object.keys(batch.masks)).toEqual(['__proto__.png']);
    expect(batch.fields.isprototypeof).toBeUndefined();
  }
  expect(batches).toHaveLength(1);
});
