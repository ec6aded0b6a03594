/**
 * How much memory do the ranks of one machine take, and how much of it do they have in common?
 *
 *   node bench/ranks.mjs make DATASET FOLDER SHARDS   # a dataset of SHARDS shards: links to the only shard of DATASET
 *   node bench/ranks.mjs measure FOLDER [--ranks 1,2,4,8] [--batches 20] [--batch-size 64] [--options JSON] [--keys] [--alone]
 *
 * Each rank is a process with one decode worker, and reads its part of the same epoch. PSS divides a page by the number of
 * processes that map it (proc(5), smaps). Heap and arrays are those of the main thread after a garbage collection.
 * With `--alone`, only the first rank runs. `weights` and `indices` in the options are numbers: the length of an array that the script makes.
 */
import { fork } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createManifest, readManifest, readShardIndex, writeManifest, writeShardIndex } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { cost } from './figures.mjs';

const MB = 1e6;
/** Number of different indexes. Further shards have links to them. */
const INDEXES = 128;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ranks: { type: 'string', default: '1,2,4,8' },
    batches: { type: 'string', default: '20' },
    'batch-size': { type: 'string', default: '64' },
    options: { type: 'string', default: '{}' },
    keys: { type: 'boolean', default: false },
    alone: { type: 'boolean', default: false },
  },
});

if (process.send !== undefined) process.once('message', load);
else if (positionals[0] === 'make') await make(positionals[1], positionals[2], Number(positionals[3]));
else await measureAll(positionals[1]);

async function make(from, folder, shards) {
  mkdirSync(folder, { recursive: true });
  const manifest = await readManifest(from);
  const [shard] = manifest.shards;
  const index = await readShardIndex(path.join(from, '000000.parquet'));
  for (let number = 0; number < shards; number++) {
    const name = String(number).padStart(6, '0');
    linkSync(path.join(from, shard.file), path.join(folder, `${name}.tar`));
    const file = path.join(folder, `${name}.parquet`);
    const first = String(number % INDEXES).padStart(6, '0');
    if (number >= INDEXES) {
      linkSync(path.join(folder, `${first}.parquet`), file);
      continue;
    }
    const key = index.key.map((_, row) => `n${String(1440764 + (row % 1000)).padStart(8, '0')}/n${row}_${number}`);
    await writeShardIndex(file, { ...index, key, source: key.map((name) => `${name}.JPEG`) });
  }
  const { format, fields, columns, classes } = manifest;
  const grown = (list) => list.map((one) => ({ ...one, samples: one.samples * shards }));
  const files = Array.from({ length: shards }, (_, i) => ({ ...shard, file: `${String(i).padStart(6, '0')}.tar` }));
  await writeManifest(
    folder,
    createManifest({ format, columns, classes: grown(classes), fields: grown(fields), shards: files }),
  );
}

async function measureAll(folder) {
  console.log('| ranks | PSS of a rank, MB | code | slots | other | heap | arrays | main thread, µs per sample |');
  console.log('|---:|---:|---:|---:|---:|---:|---:|---:|');
  for (const ranks of values.ranks.split(',').map(Number)) {
    const children = Array.from({ length: values.alone ? 1 : ranks }, (_, rank) => {
      const child = fork(fileURLToPath(import.meta.url), { execArgv: ['--expose-gc'] });
      child.send({ ...values, folder, rank, ranks });
      return child;
    });
    // All ranks wait with their memory until the last one has its batches.
    const ready = await Promise.all(children.map((child) => new Promise((resolve) => child.once('message', resolve))));
    const found = children.map(({ pid }, rank) => ({ ...ready[rank], ...pssOf(pid) }));
    const cells = ['all', 'code', 'slots', 'other', 'heap', 'arrays', 'main'].map((name) =>
      median(found.map((one) => one[name])),
    );
    console.log(`| ${ranks} | ${cells.map((cell) => cell.toFixed(1)).join(' | ')} |`);
    cost(`PSS of a rank of ${ranks}, MB`, cells[0]);
    for (const child of children) child.kill();
    await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))));
  }
}

/** The part of one rank. */
async function load({ folder, rank, ranks, options, batches, 'batch-size': batchSize, keys }) {
  const { weights, indices, ...given } = JSON.parse(options);
  if (weights !== undefined) given.weights = Float64Array.from({ length: weights }, (_, i) => 1 + (i % 3));
  if (indices !== undefined) given.indices = Uint32Array.from({ length: indices }, (_, i) => indices - 1 - i);
  const dataset = await openDataset(folder);
  const loader = dataset.loader({
    batchSize: Number(batchSize),
    transform: 'train224',
    workers: 1,
    reuse: true,
    rank,
    worldSize: ranks,
    ...given,
  });
  let [left, read] = [Number(batches), 0];
  let begun = mainThread();
  for await (const batch of loader) {
    if (keys) read += batch.keys.length;
    // The first batch has the start.
    if (left === Number(batches)) begun = mainThread();
    if (--left === 0) break;
  }
  const main = (mainThread() - begun) / ((Number(batches) - 1) * Number(batchSize));
  const pss = pssOf(process.pid);
  global.gc();
  global.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  process.send({ main, peak: pss.all, read, heap: heapUsed / MB, arrays: arrayBuffers / MB });
  // Keeps the dataset and its loader until this process is ended.
  setInterval(() => [dataset, loader], 2 ** 30);
}

/** Microseconds that the main thread has run. */
function mainThread() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e3;
}

/** PSS in MB: code is in files, slots and scratch are in one large WebAssembly memory. */
function pssOf(pid) {
  const pss = { all: 0, code: 0, slots: 0, other: 0 };
  let kind = 'other';
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'latin1').split('\n')) {
    const mapping = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+\s*(.*)$/.exec(line);
    if (mapping !== null) {
      const size = Number.parseInt(mapping[2], 16) - Number.parseInt(mapping[1], 16);
      kind = mapping[3].startsWith('/') ? 'code' : mapping[3] === '' && size > 2 ** 25 ? 'slots' : 'other';
    }
    const bytes = /^Pss:\s+(\d+) kB$/.exec(line);
    if (bytes === null) continue;
    const found = (Number(bytes[1]) * 1024) / MB;
    pss[kind] += found;
    pss.all += found;
  }
  return pss;
}

function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
