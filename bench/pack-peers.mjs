/**
 * Compares packing with other writers, on the same photos, on tmpfs, in turn: GNU tar, webdataset's ShardWriter, MosaicML's
 * MDSWriter, LitData's optimize, and shardtool with one worker, with two, and with every image decoded. Then four concurrent
 * parts are compared with one pack, and a pack that was killed after half of its shards is resumed.
 *
 *   npm run bench:pack-peers -- [--count 6144] [--photos FOLDER] [--rounds 5] [--tmpfs /dev/shm] [--only tar,shardtool-2]
 *
 * The first run installs the Python packages (`bench/peers/requirements-torch.txt`) below bench/.cache. Every output is checked
 * for all photos. Needs a build (`npm run build`) and GNU tar. A contestant that cannot be installed or run is named with
 * the reason.
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { listPhotos, makePhotos } from './make-photos.mjs';
import { prepareEnvironment, reasonOf } from './peers/environments.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(here, '.cache');
const CLI = path.join(here, '../packages/cli/lib/main.js');
const WRITERS = path.join(here, 'peers/pack_writers.py');
/** Enough shards for four parts, and for a resume after half of them. */
const SHARDS = 16;
const PARTS = 4;
const TIMEOUT_MS = 10 * 60_000;

/** The writers. `checks`: what a writer checks of the photos and of its output. */
const CONTESTANTS = [
  { id: 'tar', checks: 'nothing', workers: 1, command: tar },
  { id: 'webdataset', checks: 'nothing', workers: 1, command: writer('webdataset', 'torch') },
  { id: 'mds', checks: 'xxh64 of each shard', workers: 1, command: writer('mds', 'torch') },
  { id: 'litdata', checks: 'nothing', workers: 2, command: writer('litdata', 'torch') },
  { id: 'shardtool-1', checks: 'headers; crc32 of each field and file', workers: 1, command: shardtool(1) },
  { id: 'shardtool-2', checks: 'headers; crc32 of each field and file', workers: 2, command: shardtool(2) },
  {
    id: 'shardtool-decode',
    checks: 'every image decoded whole; crc32 of each field and file',
    workers: 2,
    command: shardtool(2, '--check', 'decode'),
  },
];

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '6144' },
    photos: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    tmpfs: { type: 'string', default: '/dev/shm' },
    only: { type: 'string' },
  },
});
const rounds = Number(values.rounds);
const work = path.join(values.tmpfs, 'shardtool-pack-peers');
const photos = path.join(work, 'photos');
const out = path.join(work, 'out');
const log = (text) => console.error(text);

function tar() {
  fs.mkdirSync(out);
  return ['tar', ['cf', path.join(out, 'all.tar'), '-C', photos, '.']];
}

function writer(name, environment) {
  return () => {
    const { python, missing } = prepareEnvironment(environment, cache, log);
    return missing ?? [python, [WRITERS, name, '--photos', photos, '--out', out, '--workers', '2']];
  };
}

function shardtool(workers, ...flags) {
  return () => [process.execPath, packArguments(workers, ...flags)];
}

function packArguments(workers, ...flags) {
  const samples = Math.ceil(listPhotos(photos).length / SHARDS);
  return [CLI, 'pack', photos, out, '--workers', workers, '--max-shard-samples', samples, '--json', ...flags].map(
    String,
  );
}

/** { seconds, inner } of one run into an empty folder, including the process start. `inner` is what the program reports. */
function run([program, args]) {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: 2 ** 28,
  });
  const seconds = (performance.now() - start) / 1000;
  if (status !== 0) throw new Error(reasonOf(stderr));
  const line = stdout.trim().split('\n').at(-1);
  const said = line.startsWith('{') ? JSON.parse(line) : null;
  const isOurs = program === process.execPath;
  return { seconds: seconds - (said?.checkSeconds ?? 0), inner: isOurs ? null : said, report: isOurs ? said : null };
}

/** Throws unless every photo is in the output. The Python writers check this themselves, outside of their measured time. */
function checkComplete(id, { report }, files) {
  if (id === 'tar') {
    const { stdout } = spawnSync('tar', ['tf', path.join(out, 'all.tar')], { encoding: 'utf8', maxBuffer: 2 ** 28 });
    const found = stdout.split('\n').filter((name) => name !== '' && !name.endsWith('/')).length;
    if (found < files) throw new Error(`${found} of ${files} photos are in the archive`);
  } else if (report !== null && (report.samples !== files || !report.isCommitted)) {
    throw new Error(`${report.samples} of ${files} photos were packed`);
  }
}

function clear() {
  fs.rmSync(out, { recursive: true, force: true });
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** Rates of all contestants, in turns. A contestant that fails is excluded from later rounds. */
function compareWriters(files) {
  const only = values.only?.split(',');
  const seconds = new Map();
  const inner = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const { id, command } of CONTESTANTS) {
      if ((only && !only.includes(id)) || seconds.get(id) === null) continue;
      clear();
      try {
        const ready = command();
        if (typeof ready === 'string') throw new Error(ready);
        const result = run(ready);
        checkComplete(id, result, files);
        seconds.set(id, [...(seconds.get(id) ?? []), result.seconds]);
        if (result.inner !== null) inner.set(id, [...(inner.get(id) ?? []), result.inner]);
        log(`round ${round + 1}: ${id} ${result.seconds.toFixed(2)} s`);
      } catch (error) {
        seconds.set(id, null);
        console.log(`${id} is excluded: ${error.message}`);
      }
    }
  }
  console.log(
    '\n| writer | checks | workers | files/s | files/s without imports | versions |\n| --- | --- | ---: | ---: | ---: | --- |',
  );
  const rate = (times) => Math.round(files / median(times)).toLocaleString('en');
  for (const { id, checks, workers } of CONTESTANTS) {
    const times = seconds.get(id);
    if (!times) continue;
    const own = inner.get(id);
    console.log(
      `| ${id} | ${checks} | ${workers} | ${rate(times)} | ${own ? rate(own.map((one) => one.seconds)) : ''} | ${own?.[0].versions ?? ''} |`,
    );
  }
}

/** Four parts at once with one worker each, and one pack with four. */
async function compareParts(files) {
  const whole = [];
  const parts = [];
  for (let round = 0; round < rounds; round++) {
    clear();
    whole.push(run([process.execPath, packArguments(PARTS)]).seconds);
    clear();
    const start = performance.now();
    const ends = Array.from({ length: PARTS }, (_, part) => {
      const child = spawn(process.execPath, packArguments(1, '--part', `${part + 1}/${PARTS}`), { stdio: 'ignore' });
      return new Promise((resolve) => child.on('close', resolve));
    });
    const codes = await Promise.all(ends);
    if (codes.some((code) => code !== 0)) throw new Error(`a part ended with ${codes.join(', ')}`);
    parts.push((performance.now() - start) / 1000);
  }
  console.log(
    `\n${PARTS} parts at once: ${median(parts).toFixed(2)} s; one pack with ${PARTS} workers: ${median(whole).toFixed(2)} s (${files} files)`,
  );
}

/** Kills a pack when half of its shards are finished, and resumes it. */
async function measureResume() {
  const whole = [];
  const rest = [];
  for (let round = 0; round < rounds; round++) {
    clear();
    whole.push(run([process.execPath, packArguments(2)]).seconds);
    clear();
    const child = spawn(process.execPath, packArguments(2), { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.on('close', resolve));
    const watch = setInterval(() => {
      const shards = fs.existsSync(out) ? fs.readdirSync(out).filter((name) => name.endsWith('.tar')).length : 0;
      if (shards >= SHARDS / 2) child.kill('SIGKILL');
    }, 2);
    await ended;
    clearInterval(watch);
    rest.push(run([process.execPath, packArguments(2)]).seconds);
  }
  const [all, half] = [median(whole), median(rest)];
  console.log(`\nAfter half of the shards: ${half.toFixed(2)} s of the ${all.toFixed(2)} s of a whole pack`);
}

async function main() {
  const files = Number(values.count);
  fs.rmSync(work, { recursive: true, force: true });
  fs.mkdirSync(work, { recursive: true });
  try {
    const source = values.photos ?? path.join(cache, `photos-${files}`);
    if (values.photos === undefined) await makePhotos({ count: files, out: source, log });
    fs.cpSync(source, photos, { recursive: true });
    const count = listPhotos(photos).length;
    console.log(
      `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}, ${count} photos on tmpfs`,
    );
    compareWriters(count);
    if (values.only !== undefined) return;
    await compareParts(count);
    await measureResume();
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

await main();
