/**
 * Compares the three layouts with each other and with Python's lmdb, from the page cache, in alternating rounds:
 *
 *   node bench/formats.mjs [PHOTOS] [--rounds 3] [--folder FOLDER]
 *
 * - streaming: every byte of every sample once, in order, as a ratio to tar and to a cursor of Python's lmdb that touches
 *   one byte of each cache line (the scan alone maps pages and reads nothing);
 * - packing: photos to shards, as a ratio to tar and to Python's lmdb in one transaction, each with fsync at the end;
 * - random access: samples by key, one after the other, from a shard in the page cache.
 *
 * PHOTOS is a folder made by `bench/make-photos.mjs`. Python is SHARDTOOL_PYTHON or python3, with lmdb and numpy. Without
 * these, the lines of Python's lmdb are omitted.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { rate } from './figures.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' }, folder: { type: 'string', default: os.tmpdir() } },
});
const photos = positionals[0] ?? 'examples/photos';
const rounds = Number(values.rounds);
const python = process.env.SHARDTOOL_PYTHON ?? 'python3';
const work = mkdtempSync(path.join(values.folder, 'shardtool-formats-'));
const LAYOUTS = ['tar', 'lmdb', 'msgpack'];
const LOOK_UPS = 20_000;

const PACK_WITH_LMDB = `
import os, sys, time
import lmdb
photos, target = sys.argv[1:]
start = time.perf_counter()
env = lmdb.open(target, map_size=1 << 40)
with env.begin(write=True) as txn:
    for folder, folders, names in os.walk(photos):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                txn.put(os.path.relpath(os.path.join(folder, name), photos).encode(), file.read())
env.sync(True)
print(time.perf_counter() - start)
`;

const SCAN_WITH_LMDB = `
import sys, time
import lmdb, numpy
env = lmdb.open(sys.argv[1], readonly=True, lock=False, subdir=True)
start = time.perf_counter()
total = 0
with env.begin(buffers=True) as txn:
    for key, value in txn.cursor():
        total += int(numpy.frombuffer(value, numpy.uint8)[::64].sum())
print(time.perf_counter() - start)
`;

const hasPython = spawnSync(python, ['-c', 'import lmdb, numpy']).status === 0;
if (!hasPython) console.log(`${python} with lmdb and numpy was not found: Python's lmdb is omitted`);

/** Seconds that a Python program measured. */
function pythonSeconds(program, ...args) {
  const { status, stdout, stderr } = spawnSync(python, ['-c', program, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}

/** Seconds that `work` takes. */
async function secondsOf(task) {
  const start = performance.now();
  await task();
  return (performance.now() - start) / 1000;
}

const theirs = "Python's lmdb";
let touched = 0;

/** Packs into each layout with one worker, including start and scan. The folders of the last round are kept. */
async function packAll() {
  const seconds = {};
  for (const format of LAYOUTS) {
    seconds[format] = await secondsOf(() =>
      pack(photos, path.join(work, format), { format, workers: 1, overwrite: true }),
    );
  }
  if (hasPython) {
    rmSync(path.join(work, 'python'), { recursive: true, force: true });
    seconds[theirs] = pythonSeconds(PACK_WITH_LMDB, photos, path.join(work, 'python'));
  }
  return seconds;
}

async function streamAll() {
  const seconds = {};
  for (const format of LAYOUTS) {
    const dataset = await openDataset(path.join(work, format));
    seconds[format] = await secondsOf(async () => {
      for await (const { fields } of dataset.samples({ reuse: true })) {
        for (const name in fields) for (let at = 0; at < fields[name].length; at += 64) touched += fields[name][at];
      }
    });
    await dataset.close();
  }
  if (hasPython) seconds[theirs] = pythonSeconds(SCAN_WITH_LMDB, path.join(work, 'python'));
  return seconds;
}

async function lookUpAll() {
  const seconds = {};
  for (const format of LAYOUTS) {
    const dataset = await openDataset(path.join(work, format));
    const keys = [];
    for (let shard = 0; shard < dataset.shards.length; shard++) keys.push(...(await dataset.files.index(shard)).key);
    await dataset.get(keys[0]);
    seconds[format] = await secondsOf(async () => {
      for (let i = 0; i < LOOK_UPS; i++)
        touched += (await dataset.get(keys[(i * 7919) % keys.length], { checksum: false })).label;
    });
    await dataset.close();
  }
  return seconds;
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

/** Runs every contestant once per round, and prints rates and the medians of the ratios within a round. */
async function compare(title, run, count) {
  await run();
  const results = [];
  for (let round = 0; round < rounds; round++) results.push(await run());
  console.log(`\n${title}`);
  for (const name of Object.keys(results[0])) {
    const perSecond = Math.round(count / median(results.map((seconds) => seconds[name])));
    rate(`${title}, ${name}, a second`, perSecond);
    const ratios = ['tar', theirs]
      .filter((other) => results[0][other] !== undefined && other !== name)
      .map((other) => `${median(results.map((seconds) => seconds[other] / seconds[name])).toFixed(2)} of ${other}`);
    console.log(`  ${name.padEnd(14)} ${perSecond.toLocaleString('en').padStart(9)} per second  ${ratios.join(', ')}`);
  }
}

try {
  const { samples, sourceBytes } = await pack(photos, path.join(work, 'plan'), { dryRun: true });
  console.log(
    `${samples} photos, ${Math.round(sourceBytes / samples / 1000)} kB each, ${rounds} rounds, ${os.cpus()[0].model}`,
  );
  await compare('packing, one worker', packAll, samples);
  await compare('streaming, every cache line touched', streamAll, samples);
  await compare('random access by key', lookUpAll, LOOK_UPS);
} finally {
  rmSync(work, { recursive: true, force: true });
}
if (Number.isNaN(touched)) throw new Error('some bytes were not read');
