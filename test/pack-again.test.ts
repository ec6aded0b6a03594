import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { convert, OutputNotEmptyError, pack, repair, verify } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder } from './datasets.js';
import { digestsOf, jpeg, newFolder, tree } from './pack-workbench.js';

const images = () => tree({ 'a/1.jpg': jpeg(1), 'a/2.jpg': jpeg(2), 'b/3.jpg': jpeg(3), 'b/3.json': '{}' });

test('repeating a pack of the same files reports that everything is done, also on the command line', async () => {
  const [source, output] = [images(), newFolder()];
  for (const options of [{ maxShardSamples: 2 }, { dedupe: true, overwrite: true }]) {
    await pack(source, output, options);
    const digests = digestsOf(output);
    const again = await pack(source, output, { ...options, overwrite: false, workers: 1 });
    expect(again).toMatchObject({ wasCommitted: true, isCommitted: true, samples: 3, classes: ['a', 'b'] });
    expect(again.keptShards).toBe(again.shards);
    expect(digestsOf(output)).toEqual(digests);
  }
  expect(await shardtool('pack', source, output, '--dedupe')).toMatchObject({
    code: 0,
    stdout: `${output} already has all of ${source}.\n`,
  });
});

test('other options, other files, a touched file, and a dataset that was changed since are rejected', async () => {
  const [source, output] = [images(), newFolder()];
  await pack(source, output, { workers: 1 });
  const refused = () => expect(pack(source, output, { workers: 1 })).rejects.toBeInstanceOf(OutputNotEmptyError);
  await expect(pack(source, output, { workers: 1, seed: 1 })).rejects.toBeInstanceOf(OutputNotEmptyError);
  utimesSync(path.join(source, 'a/1.jpg'), 1, 1);
  await refused();
  await pack(source, output, { workers: 1, overwrite: true });
  writeFileSync(path.join(source, 'b/4.jpg'), jpeg(4));
  await refused();
  await pack(source, output, { workers: 1, append: true });
  await refused();
  await pack(source, output, { workers: 1, overwrite: true });
  const shard = path.join(output, '000000.tar');
  const bytes = readFileSync(shard);
  rmSync(shard);
  await expect(pack(source, output, { workers: 1 })).rejects.toThrow('is missing or differs from dataset.json');
  bytes[bytes.indexOf(jpeg(1)) + 10]! ^= 1;
  writeFileSync(shard, bytes);
  expect(await repair(output, { workers: 1 })).toMatchObject({ takenOut: 1 });
  await refused();
});

test('repeating a conversion reports that everything is done, and an unfinished conversion resumes', async () => {
  const [source, dataset, whole, output] = [images(), newFolder(), newFolder(), newFolder()];
  await pack(source, dataset, { workers: 1, maxShardSamples: 1 });
  await convert(dataset, whole, { workers: 1, format: 'msgpack' });
  expect(await convert(dataset, whole, { workers: 1, format: 'msgpack' })).toMatchObject({
    wasCommitted: true,
    samples: 3,
  });
  await expect(convert(dataset, whole, { workers: 1, format: 'lmdb' })).rejects.toBeInstanceOf(OutputNotEmptyError);

  const last = path.join(dataset, '000002.tar');
  const bytes = readFileSync(last);
  const { atimeMs, mtimeMs } = { atimeMs: 1_000_000, mtimeMs: 2_000_000 };
  const put = (content: Uint8Array) => {
    writeFileSync(last, content);
    utimesSync(last, atimeMs / 1000, mtimeMs / 1000);
    utimesSync(path.join(dataset, '000002.parquet'), atimeMs / 1000, mtimeMs / 1000);
  };
  put(Buffer.from(bytes).fill(0, 0, 600));
  await expect(convert(dataset, output, { format: 'msgpack', workers: 1 })).rejects.toThrow(
    '000002.tar: field "cls" of sample "a/1" has changed',
  );
  const first = path.join(output, '000000.msgpack');
  utimesSync(first, 5, 5);
  put(bytes);
  await expect(convert(dataset, output, { workers: 1, format: 'lmdb' })).rejects.toBeInstanceOf(OutputNotEmptyError);
  expect(await convert(dataset, output, { workers: 1, format: 'msgpack' })).toMatchObject({
    wasCommitted: false,
    samples: 3,
  });
  const kept = (name: string) => digestsOf(name)['000000.msgpack'];
  expect(kept(output)).toBe(kept(whole));
  const { 'pack.json': mine, ...shards } = digestsOf(output);
  const { 'pack.json': theirs, ...expected } = digestsOf(whole);
  expect(shards).toEqual(expected);
  expect(mine).not.toBe(theirs);
});

test('totals, classes, fields, columns and repeated shards of a manifest without its checksum are checked', async () => {
  const output = newFolder();
  const labels = path.join(emptyFolder(), 'labels.csv');
  writeFileSync(labels, 'path,score\na/1.jpg,1\na/2.jpg,2\nb/3.jpg,3\n');
  await pack(images(), output, { workers: 1, labels });
  const file = path.join(output, 'dataset.json');
  const { crc32, ...manifest } = JSON.parse(readFileSync(file, 'utf8'));
  const faultsOf = async (said: object): Promise<string[]> => {
    writeFileSync(file, JSON.stringify(said));
    const faults: string[] = [];
    await verify(output, { onFault: ({ shard, reason }) => faults.push(`${shard}: ${reason}`) });
    return faults;
  };
  expect(crc32).toMatch(/^[0-9a-f]{8}$/);
  expect(await faultsOf(manifest)).toEqual([]);
  const [a, b] = manifest.classes;
  expect(await faultsOf({ ...manifest, classes: [{ ...a, samples: 3 }, b] })).toEqual([
    'dataset.json: the class "a" has 2 samples, but it says 3',
  ]);
  expect(await faultsOf({ ...manifest, classes: [a] })).toEqual(['dataset.json: it has no name for the class 1']);
  expect(await faultsOf({ ...manifest, fields: manifest.fields.slice(1) })).toEqual([
    'dataset.json: it does not list the field "cls", which the shards have',
  ]);
  expect(await faultsOf({ ...manifest, columns: [{ name: 'score', type: 'string' }] })).toEqual([
    'dataset.json: the column "score" is of type int, but it says string',
  ]);
  const [shard] = manifest.shards;
  expect(await faultsOf({ ...manifest, shards: [{ ...shard, maxSampleBytes: 1 }] })).toEqual([
    expect.stringMatching(/^000000.tar: the longest sample has \d+ bytes, the manifest says 1$/),
  ]);
  expect(await repair(output, { workers: 1 })).toMatchObject({ newManifest: true, samples: 3, takenOut: 0 });
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ ...manifest, crc32 });
});
