/** Shards in which some images are truncated within their pixels, and loops over them. */
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { emptyFolder, packedSmall, smallImages } from './datasets.js';
import { batchesOf, keysOf, look, type Seen } from './loader-look.js';

/** 48 images, some of which are truncated within their pixels; `bad` has their numbers. */
async function packedWithBad(bad: readonly number[]): Promise<string> {
  const folder = await smallImages({ samples: 48 });
  for (const i of bad)
    copyFileSync('test/fixtures/odd-images/truncated-half.jpg', path.join(folder, `${keyOf(i)}.jpg`));
  const output = path.join(emptyFolder(), 'shards');
  await pack(folder, output, { workers: 1, maxShardSamples: 10 });
  return output;
}

const keyOf = (i: number) => `a/${String(i).padStart(4, '0')}`;

/** The same images, all undamaged. */
export const packedSound = () => packedSmall({ samples: 48 }, { maxShardSamples: 10 });

/** With one stream, blocks are 8 consecutive rows. One worker by default. */
export const base = {
  transform: [{ name: 'resize', size: [24, 24] }],
  batchSize: 8,
  workers: 1,
  shuffleUnit: 'chunk',
  streams: 1,
  blockSamples: 8,
  seed: 4,
} as const;

const sound = await batchesOf(await packedSound(), base);
export const order = keysOf(sound);
/** The last of one block; two consecutive ones; the first and the last of one batch. */
export const badRows = [7, 18, 19, 32, 39];
export const badKeys = badRows.map((row) => order[row]!);
export const shards = await packedWithBad(badKeys.map((key) => Number(key.slice(2))));
/** Packing the same names gives the same order, but other bytes for the bad images. */
export const soundRows = sound.flatMap(({ rows }) => rows);

/** All batches of an epoch. */
export async function run(options: LoaderOptions, location = shards): Promise<{ seen: Seen[]; loader: Loader }> {
  await using dataset = await openDataset(location);
  await using loader = dataset.loader({ ...base, ...options });
  const seen: Seen[] = [];
  for await (const batch of loader) seen.push(look(batch));
  return { seen, loader };
}
