import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { BadSampleError, openDataset, SampleDecoder } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { expect, test } from 'vitest';
import { badKeys, base, order, packedSound, run, shards } from './bad-samples.js';
import { emptyFolder } from './datasets.js';
import { batchesOf, keysOf, look, type Seen } from './loader-look.js';
import { TIMES } from './repetitions.js';
import { archive, entry } from './tar-craft.js';

test('a bad sample ends the loop with shard, key and reason: the first of a batch, on any worker', async () => {
  for (let i = 0; i < 2 * TIMES; i++) {
    const error = await run({ batchSize: 48, workers: 3 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BadSampleError);
    expect((error as BadSampleError).key).toBe(badKeys[0]);
    expect((error as BadSampleError).message).toMatch(
      /^\d{6}\.tar: sample "a\/\d{4}" cannot be used: .*shardtool verify --check decode/,
    );
  }
});

test('replacements do not depend on where the epoch was resumed, on workers or on the batch size', async () => {
  const whole = await run({ onBad: 'replace', batchSize: 7 });
  await using dataset = await openDataset(shards);
  const loader = dataset.loader({ ...base, onBad: 'replace', batchSize: 6 });
  for await (const { index } of loader) if (index === 2) break;
  const rest = await run({ onBad: 'replace', batchSize: 9, workers: 2, state: loader.state() });
  expect(keysOf(rest.seen)).toEqual(keysOf(whole.seen).slice(18));
});

test('a block without any good sample throws an error, also with replace', async () => {
  await expect(run({ onBad: 'replace', keys: badKeys })).rejects.toThrow(
    /sample "a\/\d{4}" cannot be used, and its block has no sample to replace it.*Its block is \d+ samples? long: choose fewer streams/,
  );
  const { seen, loader } = await run({ onBad: 'skip', keys: badKeys });
  expect(seen.flatMap(({ valid }) => valid)).toEqual([0, 0, 0, 0, 0]);
  expect(loader.report().bad).toBe(5);
});

test('for blocks of one sample the error suggests a number of streams, with which samples have replacements', async () => {
  const few = { ...base, shuffleUnit: undefined, streams: undefined, blockSamples: undefined, keys: [...order] };
  await expect(run({ ...few, onBad: 'replace' })).rejects.toThrow(
    'Its block is 1 sample long: choose fewer streams (4 for a few hundred samples, 1 for a few). Run "shardtool verify --check decode"',
  );
  const { loader } = await run({ ...few, onBad: 'replace', streams: 4 });
  expect(loader.report().bad).toBe(5);
});

test('the error for an image that the transform rejects does not suggest verify', async () => {
  const options = { ...base, keys: ['a/0000'], transform: [{ name: 'randomCrop', size: 4000 }] } as const;
  const wrong = /smaller than the randomCrop of 4000x4000: resize it first, or set padIfNeeded of randomCrop\./;
  const messageOf = async (work: Promise<unknown>) => ((await work.catch((error: unknown) => error)) as Error).message;
  await using dataset = await openDataset(shards);
  const decoder = await SampleDecoder.open(dataset, { transform: options.transform });
  const single = await messageOf(decoder.get('a/0000'));
  decoder.close();
  for (const message of [
    await messageOf(run(options)),
    await messageOf(run({ ...options, onBad: 'replace' })),
    single,
  ]) {
    expect(message).toMatch(wrong);
    expect(message).not.toContain('verify');
  }
});

test('samples without an image, or with a field that does not match its name, are bad samples too', async () => {
  await using photos = await openDataset(shards);
  const photo = (await photos.get(order[0]!)).fields.jpg!;
  const entries = [0, 1, 2, 3, 4, 5].flatMap((i) => [
    i === 2 ? Buffer.alloc(0) : entry({ name: `s${i}.jpg` }, photo),
    entry({ name: `s${i}.json` }, i === 4 ? '{"width": ' : `{"number": ${i}}`),
  ]);
  const file = path.join(emptyFolder(), 'foreign.tar');
  writeFileSync(file, archive(...entries));
  const options = { ...base, shuffle: false, batchSize: 6 } as const;
  await expect(run(options, file)).rejects.toThrow('sample "s2" cannot be used: it has no image. Set onBad to');
  await expect(run({ ...options, keys: ['s3', 's4'] }, file)).rejects.toThrow(
    'sample "s4" cannot be used: its field "json" is not what its name says',
  );
  await using dataset = await openDataset(file);
  for await (const { valid, fields } of dataset.loader({ ...options, onBad: 'skip' })) {
    expect([...valid]).toEqual([1, 1, 0, 1, 0, 1]);
    expect(fields.json!.map((value) => (value as { number: number } | null)?.number)).toEqual([
      0,
      1,
      undefined,
      3,
      undefined,
      5,
    ]);
  }
  for await (const { keys, fields } of dataset.loader({ ...options, onBad: 'replace' })) {
    expect(keys).toEqual(['s0', 's1', 's3', 's3', 's5', 's5']);
    expect(fields.json!.map((value) => (value as { number: number }).number)).toEqual([0, 1, 3, 3, 5, 5]);
  }
});

/** Changes a byte of a sample after the end of its JPEG, where no decoder reads. */
async function damage(location: string, key: string): Promise<void> {
  await using dataset = await openDataset(location);
  const number = await dataset.indexOf(key);
  const shard = dataset.files.firstSample.findLastIndex((first) => first <= number);
  const index = await dataset.files.index(shard);
  const row = number - dataset.files.firstSample[shard]!;
  const { offset, bytes } = index.fields.get('jpg')!;
  const file = await open(dataset.shards[shard]!.path, 'r+');
  await file.write(Buffer.from([0xee]), 0, 1, offset[row]! + bytes[row]! - 1);
  await file.close();
}

const hasChanged =
  /cannot be used: it has changed since it was packed \(checksum: crc32 [0-9a-f]{8}, the index says [0-9a-f]{8}\)/;

test.each([
  ['always', 0, true],
  ['always', 1, true],
  ['first-epoch', 0, true],
  ['first-epoch', 1, false],
  ['never', 0, false],
] as const)(
  'with checksum %s, a byte that changes before epoch %i is detected: %s',
  async (checksum, before, found) => {
    const location = await packedSound();
    await using dataset = await openDataset(location);
    await using loader = dataset.loader({ ...base, checksum });
    const epoch = async (): Promise<string[]> => {
      const seen: Seen[] = [];
      for await (const batch of loader) seen.push(look(batch));
      return keysOf(seen);
    };
    for (let e = 0; e < before; e++) await epoch();
    await damage(location, order[30]!);
    if (found) await expect(epoch()).rejects.toThrow(hasChanged);
    else expect(await epoch()).toHaveLength(48);
  },
);

test("with onBad 'raise', a rank that runs alone fails in the first epoch in which it gets a damaged sample", async () => {
  const location = await packedSound();
  await using dataset = await openDataset(location);
  const own = { ...base, streams: 2, rank: 0, worldSize: 2, batchSize: 6 } as const;
  const epochsOf = async (checksum: 'first-epoch' | 'never'): Promise<string[][]> => {
    await using loader = dataset.loader({ ...own, checksum });
    const epochs: string[][] = [];
    for (let epoch = 0; epoch < 6; epoch++) {
      const seen: Seen[] = [];
      epochs.push([]);
      try {
        for await (const batch of loader) seen.push(look(batch));
      } catch (error) {
        expect((error as Error).message).toMatch(hasChanged);
        return epochs;
      }
      epochs[epoch] = keysOf(seen);
    }
    return epochs;
  };
  const shares = await epochsOf('never');
  const late = shares[2]!.find((key) => !shares[0]!.includes(key) && !shares[1]!.includes(key))!;
  await damage(location, late);
  expect(await epochsOf('first-epoch')).toEqual([shares[0], shares[1], []]);
});

test('the first epoch that is checked is a whole one, even if the run was resumed in the middle of an epoch', async () => {
  const location = await packedSound();
  await using dataset = await openDataset(location);
  const first = dataset.loader(base);
  for await (const { index } of first) if (index === 4) break;
  await damage(location, order[3]!);
  const rest = await run({ state: first.state() }, location);
  expect(keysOf(rest.seen)).toEqual(order.slice(40));
  await expect(run({ state: first.state(), epochsPerLoop: 2 }, location)).rejects.toThrow(hasChanged);
});

test('a changed byte can be skipped or replaced like any bad sample', async () => {
  const location = await packedSound();
  await damage(location, order[10]!);
  const { seen, loader } = await run({ onBad: 'replace', checksum: 'always' }, location);
  expect(keysOf(seen)[10]).toBe(order[11]);
  expect(loader.report().badSamples).toMatchObject([{ key: order[10], replacement: order[11] }]);
  const raw = await run({ onBad: 'skip', checksum: 'always', transform: 'raw' }, location);
  expect(raw.seen.flatMap(({ valid }) => valid).indexOf(0)).toBe(10);
});

test.each(['raise', 'skip', 'replace'] as const)(
  'images of two sizes without a transform are not bad samples: the error suggests a transform (onBad %s)',
  async (onBad) => {
    const [source, output] = [emptyFolder(), path.join(emptyFolder(), 'shards')];
    mkdirSync(path.join(source, 'a'));
    for (const name of ['one-pixel.jpg', 'palette.png'])
      copyFileSync(path.join('test/fixtures/odd-images', name), path.join(source, 'a', name));
    await pack(source, output, { workers: 1 });
    const run = batchesOf(output, { batchSize: 2, onBad });
    await expect(run).rejects.toThrow(/^The images differ in size. Sample "a\/.*" of 000000\.tar is undamaged/);
  },
);
