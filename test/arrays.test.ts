import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { encodeNpyHeader } from '@shardtool/format';
import { type Batch, type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack, Writer } from '@shardtool/writer';
import { afterAll, expect, test } from 'vitest';
import { shardtool } from './cli-here.js';
import { emptyFolder, removeFolders } from './datasets.js';
import { newFolder } from './pack-workbench.js';

afterAll(removeFolders);

const COUNT = 23;

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** A `.npy` file of float32 values. */
function npy(values: readonly number[], shape: readonly number[] = [values.length]): Uint8Array {
  return Buffer.concat([encodeNpyHeader('<f4', shape), Buffer.from(Float32Array.from(values).buffer)]);
}

/** Three values of sample `number`. */
const valuesOf = (number: number) => [number, number + 0.5, 1 - number];

/** A folder of arrays with captions, in two class folders. */
function arraysFolder(): string {
  const folder = path.join(emptyFolder(), 'in');
  for (let number = 0; number < COUNT; number++) {
    const stem = path.join(folder, number % 2 === 0 ? 'even' : 'odd', String(number).padStart(3, '0'));
    mkdirSync(path.dirname(stem), { recursive: true });
    writeFileSync(`${stem}.npy`, npy(valuesOf(number)));
    writeFileSync(`${stem}.txt`, `caption ${number}`);
  }
  return folder;
}

/** Checks the rows of a batch against their captions, and returns the numbers of its samples. */
function numbersOf(batch: Pick<Batch, 'arrays' | 'fields' | 'labels' | 'size'>): number[] {
  const { shape, data, dtype } = batch.arrays.npy!;
  expect([dtype, shape]).toEqual(['<f4', [batch.size, 3]]);
  return Array.from({ length: batch.size }, (_, row) => {
    const number = Number(String(batch.fields.txt![row]).split(' ')[1]);
    expect([...data.subarray(3 * row, 3 * row + 3)]).toEqual(valuesOf(number));
    expect(batch.labels[row]).toBe(number % 2);
    return number;
  });
}

test('an RGB image in Fortran order is an image, and gives the pixels of the same image in C order', async () => {
  const [height, width] = [20, 30];
  const at = (y: number, x: number, channel: number) => (y * 7 + x * 3 + channel * 50) % 256;
  const inC = new Uint8Array(height * width * 3);
  const inFortran = new Uint8Array(height * width * 3);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let channel = 0; channel < 3; channel++) {
        inC[(y * width + x) * 3 + channel] = at(y, x, channel);
        inFortran[y + height * (x + width * channel)] = at(y, x, channel);
      }
    }
  }
  const header = Buffer.from(encodeNpyHeader('|u1', [height, width, 3]));
  const ofFortran = Buffer.from(header.toString('latin1').replace('False', 'True '), 'latin1');
  const images = async (head: Buffer, values: Uint8Array, options: LoaderOptions) => {
    const output = newFolder();
    const writer = new Writer(output);
    // The headers of later images are known, so that a loader may read only their crops.
    for (const key of ['a', 'b', 'c']) await writer.add({ key, npy: Buffer.concat([head, values]) });
    await writer.close();
    await using dataset = await openDataset(output);
    await using loader = dataset.loader({ workers: 1, batchSize: 3, checksum: 'never', ...options });
    for await (const batch of loader) return Buffer.from(batch.images!);
  };
  const crop = { transform: [{ name: 'randomResizedCrop', size: 8 }] } as const;
  for (const options of [{}, { transform: [{ name: 'centerCrop', size: [10, 12] }] }, crop] as const) {
    const expected = await images(header, inC, options);
    expect(await images(ofFortran, inFortran, options)).toEqual(expected);
  }
});

test('a folder of arrays is packed, and its shuffled batches have each array with its caption and class', async () => {
  const output = path.join(emptyFolder(), 'out');
  const report = await pack(arraysFolder(), output, { primary: 'npy', maxShardSamples: 5, workers: 1 });
  expect([report.samples, report.files, report.classes]).toEqual([COUNT, 2 * COUNT, ['even', 'odd']]);
  await using dataset = await openDataset(output);
  const found: number[] = [];
  for await (const batch of dataset.loader({ batchSize: 4, workers: 2 })) found.push(...numbersOf(batch));
  expect(found).not.toEqual(found.toSorted((a, b) => a - b));
  expect(found.toSorted((a, b) => a - b)).toEqual(Array.from({ length: COUNT }, (_, number) => number));
});

test('arrays of a batch are copies, unless reuse is set', async () => {
  const output = path.join(emptyFolder(), 'out');
  await pack(arraysFolder(), output, { primary: 'npy', workers: 1 });
  await using dataset = await openDataset(output);
  const kept = await all(dataset.loader({ image: false, batchSize: 2, prefetchBatches: 1, workers: 1 }));
  expect(kept.flatMap(numbersOf)).toHaveLength(COUNT);
  const buffers = new Set<ArrayBufferLike>();
  for await (const batch of dataset.loader({ image: false, batchSize: 2, reuse: true, workers: 1 })) {
    const images: null = batch.images;
    expect(images).toBeNull();
    numbersOf(batch);
    buffers.add(batch.arrays.npy!.data.buffer);
  }
  expect(buffers.size).toBe(1);
});

test("with collate 'list', each sample has a separate array, of any shape", async () => {
  const folder = path.join(emptyFolder(), 'in');
  mkdirSync(folder);
  for (let number = 1; number < 4; number++)
    writeFileSync(path.join(folder, `${number}.npy`), npy(new Array(number).fill(7)));
  const output = path.join(emptyFolder(), 'out');
  await pack(folder, output, { primary: 'npy', workers: 1, shuffle: false });
  await using dataset = await openDataset(output);
  const batches = await all(dataset.loader({ collate: 'list', shuffle: false, workers: 1 }));
  expect(batches[0]!.fields.npy!.map((value) => (value as { shape: readonly number[] }).shape)).toEqual([
    [1],
    [2],
    [3],
  ]);
  await expect(all(dataset.loader({ shuffle: false, workers: 1 }))).rejects.toThrow(
    /In sample "1" of 000000.tar it is float32 \(1,\), but in sample "2" of 000000.tar it is an array of float32 \(2,\)/,
  );
});

test('samples of text and of JSON are packed with their primary extension, and other files are listed as skipped', async () => {
  const folder = path.join(emptyFolder(), 'in');
  mkdirSync(folder);
  for (const name of ['a.txt', 'b.txt', 'b.json', 'c.json']) writeFileSync(path.join(folder, name), '"x"');
  const output = path.join(emptyFolder(), 'out');
  const { stdout } = await shardtool('pack', folder, output, '--primary', 'txt', '--json', '--quiet');
  expect(JSON.parse(stdout)).toMatchObject({ samples: 2, files: 3, skippedFiles: 1 });
  await using dataset = await openDataset(output);
  const { fields } = await dataset.get('b');
  expect(Object.entries(fields).map(([name, bytes]) => [name, Buffer.from(bytes).toString()])).toEqual([
    ['json', '"x"'],
    ['txt', '"x"'],
  ]);
});

test('the error for a folder without images names the option that packs it', async () => {
  const { stderr, code } = await shardtool('pack', arraysFolder(), path.join(emptyFolder(), 'out'));
  expect(stderr).toContain('no image among 46 files');
  expect(stderr).toContain('To pack samples without images, set --primary npy.');
  expect(code).not.toBe(0);
});

test.each([
  [{ primary: 'png' }, 'The option "primary" is for samples without images, so it cannot be "png"'],
  [{ primary: 'npy', resize: 8 }, 'The option "resize" is for images, and with "primary" samples have none'],
  [{ primary: 'npy', check: 'decode' }, 'The option "check" is for images'],
] as const)('pack rejects %j', async (options, message) => {
  await expect(pack('examples/photos', path.join(emptyFolder(), 'out'), options)).rejects.toThrow(message);
});

test('a truncated or pickled array is a bad file', async () => {
  const folder = arraysFolder();
  writeFileSync(path.join(folder, 'odd', '001.npy'), npy([1, 2, 3]).subarray(0, -1));
  const pickled = encodeNpyHeader('|O', [1]);
  writeFileSync(path.join(folder, 'odd', '003.npy'), Buffer.concat([pickled, Buffer.from('x')]));
  const output = path.join(emptyFolder(), 'out');
  await expect(pack(folder, output, { primary: 'npy', workers: 1 })).rejects.toThrow(/00[13]\.npy cannot be packed/);
  const report = await pack(folder, output, { primary: 'npy', onBad: 'quarantine', maxBad: 1, workers: 1 });
  expect(report.samples).toBe(COUNT - 2);
});

test('an append finds new, changed and deleted arrays, and verify finds no faults', async () => {
  const folder = arraysFolder();
  const output = path.join(emptyFolder(), 'out');
  await pack(folder, output, { primary: 'txt', workers: 1 });
  writeFileSync(path.join(folder, 'odd', '101.npy'), npy(valuesOf(101)));
  writeFileSync(path.join(folder, 'odd', '101.txt'), 'caption 101');
  await pack(folder, output, { append: true, applyChanges: true, compare: 'checksum', workers: 1 });
  await using dataset = await openDataset(output);
  expect(dataset.size).toBe(COUNT + 1);
  const { stdout } = await shardtool('verify', output);
  expect(stdout).toContain('OK, all checksums match');
});

test('a writer without images needs its primary field in every sample', async () => {
  const output = path.join(emptyFolder(), 'out');
  const writer = new Writer(output, { primary: 'latent.npy', columns: { score: 'double' } });
  await writer.add({ key: 'a', 'latent.npy': npy([1]), txt: 'x', columns: { score: 0.5 } });
  await writer.add({ key: 'b', 'latent.npy': npy([2]), columns: { score: 2 } });
  await expect(writer.add({ key: 'c', txt: 'x' })).rejects.toThrow('The sample "c" has no field "latent.npy"');
  await writer.close();
  await using dataset = await openDataset(output);
  const [batch] = await all(dataset.loader({ where: 'score > 1', workers: 1 }));
  expect([batch!.keys, batch!.fields.txt, [...batch!.arrays['latent.npy']!.data]]).toEqual([['b'], [null], [2]]);
});

test('a writer without the option still needs an image in every sample', async () => {
  const writer = new Writer(path.join(emptyFolder(), 'out'));
  await expect(writer.add({ key: 'a', txt: 'x' })).rejects.toThrow(/has no image; add one, such as jpg: bytes, or set/);
});

test('bench measures samples without images, and commands for images reject them', async () => {
  const output = path.join(emptyFolder(), 'out');
  await pack(arraysFolder(), output, { primary: 'npy', workers: 1 });
  const { stdout } = await shardtool('bench', output, '--json', '--workers', '1');
  expect(JSON.parse(stdout)).toMatchObject({ images: COUNT, bad: 0 });
  for (const command of ['inspect', 'preview', 'tune']) {
    const { stderr } = await shardtool(command, output);
    expect(stderr).toContain(`The samples of ${output} have no images`);
  }
});
