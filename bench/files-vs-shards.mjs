/**
 * Measures what packing gains: the same photos, not in the page cache, opened file by file in shuffled order, and streamed from
 * shards, without decoding; and a loader with two workers over the plain folder and over the shards.
 *
 *   node bench/files-vs-shards.mjs [--photos FOLDER] [--count 30000] [--rounds 3]
 *
 * Linux only. posix_fadvise drops pages from the cache. As root, the kernel's cached inodes and directory entries are dropped as
 * well, as after a reboot. The disk of a virtual machine can be faster than bare metal, because the host caches it too.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { rate } from './figures.mjs';
import { listPhotos, makePhotos, randomNumbers } from './make-photos.mjs';
import { preparePhotos, prepareShards } from './peers/data.mjs';
import { median } from './peers/measure.mjs';

const koffi = createRequire(new URL('../packages/reader/package.json', import.meta.url))('koffi');
const cache = path.join(path.dirname(fileURLToPath(import.meta.url)), '.cache');
/** posix_fadvise(2), fcntl.h. */
const POSIX_FADV_DONTNEED = 4;
const FILES_AT_ONCE = 16;

const { values } = parseArgs({
  options: {
    photos: { type: 'string' },
    count: { type: 'string', default: '30000' },
    rounds: { type: 'string', default: '3' },
  },
});
const rounds = Number(values.rounds);
const log = (line) => process.stderr.write(`${line}\n`);

const folder = values.photos ?? path.join(cache, `copies-${values.count}`);
if (values.photos === undefined) await makePhotos({ count: Number(values.count), out: folder, copies: true, log });
const photos = await preparePhotos({ photos: folder, cache, log });
const shards = prepareShards(photos, 1, log);
if (shards.missing !== undefined) throw new Error(shards.missing);

const files = shuffled(listPhotos(photos.folder));
const shardFiles = fs.readdirSync(shards.path).map((name) => path.join(shards.path, name));
const ways = [
  { name: 'files, opened one by one', read: () => readOneByOne(files) },
  { name: `files, ${FILES_AT_ONCE} at once`, read: () => readManyAtOnce(files) },
  { name: 'shards, streamed by shardtool', read: () => streamShards(shards.path) },
  { name: 'plain folder, a loader of train224', read: () => load(photos.folder) },
  { name: 'shards, the same loader', read: () => load(shards.path) },
];
const evict = openEvictor();
const seconds = new Map(ways.map(({ name }) => [name, { cold: [], cached: [] }]));
for (let round = 0; round < rounds; round++) {
  for (const { name, read } of ways) {
    for (const state of ['cold', 'cached']) {
      if (state === 'cold') evict([...files, ...shardFiles]);
      const started = performance.now();
      const count = await read();
      if (count !== photos.count) throw new Error(`${name}: expected ${photos.count} photos, but read ${count}.`);
      seconds.get(name)[state].push((performance.now() - started) / 1000);
    }
  }
}
print();

async function readOneByOne(paths) {
  let count = 0;
  for (const file of paths) count += fs.readFileSync(file).length > 0 ? 1 : 0;
  return count;
}

async function readManyAtOnce(paths) {
  let next = 0;
  let count = 0;
  const readRest = async () => {
    while (next < paths.length) {
      const { length } = await fs.promises.readFile(paths[next++]);
      if (length > 0) count++;
    }
  };
  await Promise.all(Array.from({ length: FILES_AT_ONCE }, readRest));
  return count;
}

async function streamShards(location) {
  const dataset = await openDataset(location);
  let count = 0;
  for await (const sample of dataset.samples({ reuse: true })) count += sample.fields.jpg.length > 0 ? 1 : 0;
  await dataset.close();
  return count;
}

async function load(location) {
  const dataset = await openDataset(location);
  const loader = dataset.loader({
    transform: 'train224',
    batchSize: 64,
    workers: 2,
    seed: 1,
    lastBatch: 'partial',
    reuse: true,
  });
  let count = 0;
  for await (const batch of loader) count += batch.size;
  await loader.close();
  await dataset.close();
  return count;
}

/** Returns a function that drops files from the page cache, and as root also inodes and directory entries. */
function openEvictor() {
  const libc = koffi.load(null);
  const sync = libc.func('sync', 'void', []);
  const advise = libc.func('posix_fadvise', 'int', ['int', 'int64_t', 'int64_t', 'int']);
  return (paths) => {
    sync();
    for (const file of paths) {
      const descriptor = fs.openSync(file);
      advise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
      fs.closeSync(descriptor);
    }
    if (process.getuid() === 0) fs.writeFileSync('/proc/sys/vm/drop_caches', '2');
  };
}

/** Fisher-Yates with a fixed seed. */
function shuffled(list) {
  const random = randomNumbers(1);
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

function print() {
  const perSecond = (list) => Math.round(photos.count / median(list)).toLocaleString('en-US');
  const inodes =
    process.getuid() === 0 ? 'pages, inodes and directory entries' : 'pages, but not inodes (which requires root)';
  console.log(
    `${photos.count} photos, ${Math.round(photos.bytes / photos.count)} bytes on average, medians of ${rounds} rounds; ` +
      `cold: without ${inodes} in memory.\n`,
  );
  console.log('| photos/s | cold | cached |\n| --- | ---: | ---: |');
  for (const [name, { cold, cached }] of seconds) {
    rate(`${name}, cold, photos/s`, photos.count / median(cold));
    rate(`${name}, cached, photos/s`, photos.count / median(cached));
    console.log(`| ${name} | ${perSecond(cold)} | ${perSecond(cached)} |`);
  }
}
