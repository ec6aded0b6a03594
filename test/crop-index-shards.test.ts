import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { convert, indexShards, pack, repair, verify } from '@shardtool/writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { draw } from './crop-index-workbench.js';
import { makeJpeg } from './jpeg-maker.js';
import { randomOf } from './random.js';

let folder: string;
/** The batches of an epoch without crop indexes, which are the same in every layout. */
let today: Buffer[];
const at = (...names: string[]) => path.join(folder, ...names);

/** 4:2:0, 4:4:4, gray and a restart interval; and one image that has no crop index. */
const KINDS = [
  { quality: 85, subsampling: 2 },
  { quality: 85, subsampling: 0 },
  { quality: 85, subsampling: 3 },
  { quality: 85, subsampling: 2, restartRows: 1 },
  { quality: 85, subsampling: 2, progressive: true },
];
const COUNT = 20;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'shardtool-crops-'));
  mkdirSync(at('photos', 'a'), { recursive: true });
  for (let i = 0; i < COUNT; i++) {
    const jpeg = makeJpeg(draw(300, 240, 3, i % 4, i * 977), KINDS[i % KINDS.length]!);
    writeFileSync(at('photos', 'a', `${i}.jpg`), jpeg);
  }
  const report = await pack(at('photos'), at('tar'), { index: ['crops'], maxShardSamples: 8, workers: 1 });
  expect(report.crops).toEqual({ indexed: 16, refused: { progressive: 4 } });
  today = (await epoch(at('tar'), { cropIndex: false }))[0];
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The rows of one epoch, and the number of images that were decoded with a crop index. */
async function epoch(location: string | string[], options = {}, opening = {}): Promise<[Buffer[], number]> {
  const dataset = await openDataset(location, opening);
  const loader = dataset.loader({
    cropIndex: true,
    batchSize: 4,
    lastBatch: 'partial',
    workers: 1,
    seed: 3,
    transform: CROPS,
    ...options,
  });
  const rows: Buffer[] = [];
  for await (const { images } of loader) rows.push(Buffer.from(images as Uint8Array));
  const { spliced, samples } = loader.report();
  const info = await loader.info();
  expect([info.cropIndex.spliced, info.cropIndex.others]).toEqual([spliced, samples - spliced]);
  await loader.close();
  await dataset.close();
  return [rows, spliced];
}
const CROPS = [{ name: 'randomResizedCrop', size: 48, scale: [0.05, 0.4] }] as const;

test.each(['tar', 'lmdb', 'msgpack'] as const)(
  'batches of %s are the same with and without a crop index',
  async (format) => {
    const output = format === 'tar' ? at('tar') : at(format);
    if (format !== 'tar') await convert(at('tar'), output, { format, index: ['crops'], workers: 1 });
    const [by, spliced] = await epoch(output);
    expect(by).toEqual(today);
    expect(spliced).toBeGreaterThan(COUNT / 2);
  },
);

test('streamed blocks without checksums are decoded with a crop index as well', async () => {
  const options = { shuffleUnit: 'chunk', checksum: 'never' };
  const [by, spliced] = await epoch(at('tar'), options);
  expect(by).toHaveLength(today.length);
  expect(spliced).toBeGreaterThan(COUNT / 2);
});

test('tars of other software get a crop index, and images without one are counted with the reason', async () => {
  mkdirSync(at('foreign'));
  writeFileSync(at('foreign', 'x.tar'), readFileSync(at('tar', '000000.tar')));
  const { crops } = await indexShards([at('foreign')], { index: ['crops'] });
  expect(crops).toEqual({ indexed: 6, refused: { progressive: 1 } });
  expect(existsSync(at('foreign', 'x.crops'))).toBe(true);
  const [by, spliced] = await epoch(at('foreign'));
  expect(by).toHaveLength(2);
  expect(spliced).toBeGreaterThan(3);
});

test('an overlay that excludes samples keeps the crop index of the other samples', async () => {
  const keys: string[] = [];
  const dataset = await openDataset(at('tar'));
  for await (const { key } of dataset.samples()) if (keys.length < 5) keys.push(key);
  await dataset.close();
  const opening = { excludeKeys: keys };
  const [by, spliced] = await epoch(at('tar'), {}, opening);
  expect(by).toEqual((await epoch(at('tar'), { cropIndex: false }, opening))[0]);
  expect(spliced).toBeGreaterThan(6);
});

test('a damaged crop index gives the same pixels; verify reports it and builds it again', async () => {
  await convert(at('tar'), at('damaged'), { index: ['crops'], workers: 1 });
  const file = at('damaged', '000000.crops');
  const whole = readFileSync(file);
  for (const place of [100, whole.length - 100]) {
    const bytes = Buffer.from(whole);
    bytes[place]! ^= 1;
    writeFileSync(file, bytes);
    expect((await epoch(at('damaged')))[0]).toEqual(today);
    const faults: string[] = [];
    await verify(at('damaged'), { workers: 1, onFault: ({ reason }) => faults.push(reason) });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/crop index|000000\.crops/);
    await repair(at('damaged'), { workers: 1 });
    expect(readFileSync(file).equals(whole)).toBe(true);
  }
  rmSync(file);
  await repair(at('damaged'), { workers: 1 });
  expect(readFileSync(file).equals(whole)).toBe(true);
});

test.each(['first-epoch', 'always', 'never'] as const)(
  'a damaged crop index is not used in any epoch: %s',
  async (checksum) => {
    const output = at(`damaged-${checksum}`);
    await convert(at('tar'), output, { index: ['crops'], workers: 1 });
    const order = { epochsPerLoop: 2, shuffleUnit: 'chunk', streams: 1 };
    const [expected] = await epoch(output, { ...order, cropIndex: false });
    const file = path.join(output, '000000.crops');
    const bytes = readFileSync(file);
    const random = randomOf('damaged crop indexes');
    // The records and the end of the file are intact.
    for (let i = 0; i < 20; i++) bytes[Math.floor(random() * (bytes.length - 600))]! ^= 1 << (i % 8);
    writeFileSync(file, bytes);
    expect((await epoch(output, { ...order, checksum }))[0]).toEqual(expected);
  },
);

test('the crop index of another shard is not used', async () => {
  await convert(at('tar'), at('mixed'), { index: ['crops'], workers: 1 });
  renameSync(at('mixed', '000001.crops'), at('mixed', '000000.crops'));
  const [by, spliced] = await epoch(at('mixed'));
  expect(by).toEqual(today);
  expect(spliced).toBeLessThan(6);
});

test('an append creates crop indexes if the dataset has them, and a pack that overwrites removes them', async () => {
  mkdirSync(at('more', 'a'), { recursive: true });
  writeFileSync(at('more', 'a', '0.jpg'), readFileSync(at('photos', 'a', '0.jpg')));
  await pack(at('more'), at('grown'), { workers: 1 });
  expect(existsSync(at('grown', '000000.crops'))).toBe(false);
  await indexShards([at('grown')], { index: ['crops'] });
  writeFileSync(at('more', 'a', '1.jpg'), readFileSync(at('photos', 'a', '1.jpg')));
  await pack(at('more'), at('grown'), { append: true, workers: 1 });
  expect(existsSync(at('grown', '000001.crops'))).toBe(true);
  await pack(at('more'), at('grown'), { overwrite: true, workers: 1 });
  expect(existsSync(at('grown', '000000.crops')) || existsSync(at('grown', '000001.crops'))).toBe(false);
});
