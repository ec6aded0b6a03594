/**
 * Measures `shardtool inspect`: its rate compared with a loader with `resize: 256` on the same shards, in turns, with the same
 * number of workers; the search for near-duplicates among a million hashes; and how many planted copies of photos it finds.
 *
 *   node bench/inspect.mjs [--count 2000] [--rounds 5] [--workers 2] [--hashes 1000000]
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { inspect, openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { Groups, joinNear } from '#reader/inspect/near-duplicates';
import { cost, rate } from './figures.mjs';
import { listPhotos, makePhotos, randomNumbers } from './make-photos.mjs';

const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');
const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '5' },
    workers: { type: 'string', default: '2' },
    hashes: { type: 'string', default: '1000000' },
  },
});
const workers = Number(options.workers);
/** Changes that make a copy of a photo, by name. */
const PLANTED = {
  'compressed again, quality 40': (image) => image.jpeg({ quality: 40 }),
  'half the size': (image, { width }) => image.resize(Math.round(width / 2)).jpeg({ quality: 90 }),
  'cropped by 2 %': (image, { width, height }) =>
    image
      .extract({
        left: Math.round(width / 100),
        top: Math.round(height / 100),
        width: Math.round(width * 0.98),
        height: Math.round(height * 0.98),
      })
      .jpeg({ quality: 90 }),
  'brighter by a fifth': (image) => image.modulate({ brightness: 1.2 }).jpeg({ quality: 90 }),
};

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-bench-'));
try {
  await compareRates();
  searchHashes(Number(options.hashes));
  await countFound();
} finally {
  rmSync(folder, { recursive: true });
}

async function compareRates() {
  const count = Number(options.count);
  const photos = path.join(here, `.cache/photos-500x375-${count}`);
  await makePhotos({ count, out: photos, log: console.error });
  const shards = path.join(folder, 'shards');
  await pack(photos, shards, { workers, maxShardSamples: Math.ceil(count / 4) });
  const found = { inspect: [], loader: [] };
  for (let round = -1; round < Number(options.rounds); round++) {
    const turns = round % 2 === 0 ? ['inspect', 'loader'] : ['loader', 'inspect'];
    for (const turn of turns) {
      const figures = await timed(
        turn === 'inspect' ? () => inspect(shards, { workers, overwrite: true }) : () => epoch(shards),
      );
      if (round >= 0) found[turn].push({ rate: count / figures.seconds, cpu: (1e6 * figures.cpu) / count });
    }
  }
  for (const [name, rounds] of Object.entries(found)) {
    const [images, cpu] = [median(rounds.map((one) => one.rate)), median(rounds.map((one) => one.cpu))];
    console.log(`${name}: ${images.toFixed(0)} images/s, ${cpu.toFixed(0)} microseconds of CPU per image`);
    rate(`${name}, images/s`, images);
    cost(`${name}, CPU an image`, cpu);
  }
  for (const what of ['rate', 'cpu']) {
    const ratios = found.inspect.map((one, round) => one[what] / found.loader[round][what]).toSorted((a, b) => a - b);
    console.log(
      `inspect by loader, ${what}: ${median(ratios).toFixed(2)} (${ratios[0].toFixed(2)} to ${ratios.at(-1).toFixed(2)})`,
    );
  }
}

/** Includes opening and starting, as the time of `inspect` does. */
async function epoch(shards) {
  const dataset = await openDataset(shards);
  const transform = [{ name: 'resize', size: [256, 256] }];
  for await (const batch of dataset.loader({ transform, workers, batchSize: 64, reuse: true })) batch.images[0];
  await dataset.close();
}

async function timed(work) {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - began) / 1000, cpu: (user + system) / 1e6 };
}

/** Random hashes. Every tenth has a copy that differs in three bits. */
function searchHashes(count) {
  const random = randomNumbers(7);
  const hashes = Uint32Array.from({ length: 2 * count }, () => random() * 2 ** 32);
  const planted = Math.floor(count / 10);
  for (let i = 0; i < planted; i++) {
    hashes[2 * i] = hashes[2 * (count - 1 - i)] ^ 0b1001;
    hashes[2 * i + 1] = hashes[2 * (count - 1 - i) + 1] ^ 0b10000;
  }
  const owners = Uint32Array.from({ length: count }, (_, i) => i);
  const before = process.memoryUsage().rss;
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const groups = new Groups(count);
  joinNear(hashes, owners, groups);
  const seconds = (performance.now() - began) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const together = Array.from({ length: planted }, (_, i) => i).filter(
    (i) => groups.first(i) === groups.first(count - 1 - i),
  );
  const megabytes = (process.memoryUsage().rss - before) / 1e6;
  console.log(
    `${count} hashes: ${seconds.toFixed(1)} s (${((user + system) / 1e6).toFixed(1)} of CPU), ${megabytes.toFixed(0)} MB more, ` +
      `${together.length} of ${planted} planted pairs found`,
  );
  cost('search, s', seconds);
}

async function countFound() {
  const source = path.join(folder, 'planted');
  mkdirSync(source);
  const photos = listPhotos(path.join(here, '../examples/photos'));
  for (const [number, photo] of photos.entries()) {
    const { width, height } = await sharp(photo).metadata();
    await sharp(photo).toFile(path.join(source, `${number}-0.jpg`));
    for (const [i, change] of Object.values(PLANTED).entries())
      await change(sharp(photo), { width, height }).toFile(path.join(source, `${number}-${i + 1}.jpg`));
  }
  const shards = path.join(folder, 'planted-shards');
  await pack(source, shards, { workers });
  const { nearDuplicates } = await inspect(shards, { workers, most: photos.length });
  const dataset = await openDataset(shards);
  const groupOf = new Map();
  for (const shard of dataset.shards) {
    const { key } = await shard.loadParts(['key']);
    const { values } = (await shard.loadInspection()).columns.get('inspect.near');
    for (const [row, name] of key.entries()) groupOf.set(name, values[row]);
  }
  await dataset.close();
  for (const [i, name] of Object.keys(PLANTED).entries()) {
    const found = [...photos.keys()].filter((number) => {
      const group = groupOf.get(`${number}-${i + 1}`);
      return group !== null && group === groupOf.get(`${number}-0`);
    });
    console.log(`${name}: ${found.length} of ${photos.length} found`);
  }
  console.log(`${nearDuplicates.groups} groups of ${photos.length} photos, some of which were similar before`);
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
