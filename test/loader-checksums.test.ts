import { writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { encodeNpyHeader, encodeNpyImage, type WrittenLayoutName } from '@shardtool/format';
import { type LoaderOptions, openDataset } from '@shardtool/reader';
import { convert } from '@shardtool/writer';
import { describe, expect, test } from 'vitest';
import { emptyFolder } from './datasets.js';
import { archive, entry } from './tar-craft.js';

const SIZE = 8;

/** Samples with a field of every type, in which a changed byte is still a valid value of that type. */
async function shardsOf(format: WrittenLayoutName): Promise<string> {
  const pixels = Buffer.from(encodeNpyImage(new Uint8Array(SIZE * SIZE * 3).fill(7), SIZE, SIZE));
  const mask = Buffer.concat([encodeNpyHeader('|u1', [SIZE, SIZE]), new Uint8Array(SIZE * SIZE).fill(1)]);
  const files = Array.from({ length: 12 }, (_, i) => `s${String(i).padStart(2, '0')}`).flatMap((key, i) => [
    entry({ name: `${key}.npy` }, pixels),
    entry({ name: `${key}.right.npy` }, pixels),
    entry({ name: `${key}.seg.npy` }, mask),
    entry({ name: `${key}.json` }, '{"age": 11}'),
    entry({ name: `${key}.cls` }, String(i % 3)),
    entry({ name: `${key}.count` }, '70000'),
    entry({ name: `${key}.txt` }, 'a cat'),
    entry({ name: `${key}.bin` }, 'bytes'),
  ]);
  const folder = emptyFolder();
  writeFileSync(path.join(folder, 'all.tar'), archive(...files));
  const output = path.join(folder, 'shards');
  await convert(path.join(folder, 'all.tar'), output, { format, workers: 1 });
  return output;
}

/** One field per sample, in the order of the samples: sample 0 gets a changed `npy`, sample 1 a changed `right.npy`, and so on. */
const FIELDS = ['npy', 'right.npy', 'seg.npy', 'json', 'cls', 'count', 'txt', 'bin'];
const keyOf = (sample: number) => `s${String(sample).padStart(2, '0')}`;

/** Adds one to the last byte of one field per sample, which gives another value of the same type. */
async function damaged(location: string): Promise<string> {
  await using dataset = await openDataset(location);
  const index = await dataset.files.index(0);
  const shard = await open(dataset.shards[0]!.path, 'r+');
  for (const [sample, field] of FIELDS.entries()) {
    const { offset, bytes } = index.fields.get(field)!;
    const row = await dataset.indexOf(keyOf(sample));
    // In {"age": 11} the byte is part of the number.
    const at = offset[row]! + bytes[row]! - (field === 'json' ? 2 : 1);
    const byte = new Uint8Array(1);
    await shard.read(byte, 0, 1, at);
    byte[0]!++;
    await shard.write(byte, 0, 1, at);
  }
  await shard.close();
  return location;
}

const VALUES = FIELDS.slice(3);
const stepFile = path.join(emptyFolder(), 'steps.mjs');
writeFileSync(stepFile, 'export default (fields) => fields;');
const stacked = { masks: ['seg.npy'], extraImages: ['right.npy'], fields: VALUES };
const streamed = { shuffleUnit: 'chunk', streams: 1, blockSamples: 4 } as const;
const ways: readonly (readonly [string, LoaderOptions, readonly string[]])[] = [
  ['stacked, with all samples in memory', stacked, FIELDS],
  ['stacked, read block by block', { ...stacked, ...streamed }, FIELDS],
  ['as a list', { collate: 'list', fields: VALUES }, ['npy', ...VALUES]],
  ['encoded', { transform: 'raw', fields: FIELDS.slice(1) }, FIELDS],
  ['encoded, read block by block', { transform: 'raw', fields: ['json'], ...streamed }, ['npy', 'json']],
  [
    'with a custom step on fields',
    { customSteps: { fields: { module: stepFile } }, fields: VALUES },
    ['npy', ...VALUES],
  ],
];

describe.each(['tar', 'lmdb', 'msgpack'] as const)('in %s', (format) => {
  const location = shardsOf(format).then(damaged);

  test.each(ways)('a changed byte of every delivered field is detected: %s', async (_, options, fields) => {
    await using dataset = await openDataset(await location);
    const badOf = async (checksum: 'always' | 'never') => {
      const common = { image: 'npy', onBad: 'skip', batchSize: 6, workers: 1 } as const;
      await using loader = dataset.loader({ ...common, ...options, checksum });
      for await (const _batch of loader);
      return loader.report().badSamples.toSorted((a, b) => a.key.localeCompare(b.key));
    };
    const bad = await badOf('always');
    expect(bad.map(({ key }) => FIELDS[Number(key.slice(1))])).toEqual(fields);
    for (const [i, { reason }] of bad.entries()) {
      const what = fields[i] === 'npy' ? 'it' : `its field "${fields[i]}"`;
      expect(reason).toContain(`${what} has changed since it was packed (checksum: crc32 `);
    }
    expect(await badOf('never')).toEqual([]);
  });

  test('get() and samples() detect a changed byte in every field', async () => {
    await using dataset = await openDataset(await location);
    for (const [sample, field] of FIELDS.entries()) {
      const message = `field "${field}" of sample "${keyOf(sample)}" has changed since it was packed (checksum: crc32`;
      await expect(dataset.get(keyOf(sample))).rejects.toThrow(message);
      const from = await dataset.indexOf(keyOf(sample));
      await expect(dataset.samples({ from, checksum: true }).next()).rejects.toThrow(message);
    }
  });
});

test('a msgpack value that is no longer a value is reported as changed', async () => {
  await using dataset = await openDataset(await shardsOf('msgpack'));
  const row = await dataset.indexOf('s03');
  const { offset } = (await dataset.files.index(0)).fields.get('count')!;
  const file = await open(dataset.shards[0]!.path, 'r+');
  await file.write(Uint8Array.of(0xc1), 0, 1, offset[row]!);
  await file.close();
  const loop = async () => {
    for await (const _batch of dataset.loader({ transform: 'raw', checksum: 'always', workers: 1 }));
  };
  await expect(loop()).rejects.toThrow('its field "count" has changed since it was packed (checksum: the stored bytes');
  await expect(dataset.get('s03')).rejects.toThrow('has changed since it was packed (checksum: the stored bytes');
});
