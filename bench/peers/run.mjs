/**
 * Compares shardtool with other loaders, on the same photos and the same cores, in one run.
 *
 *   node bench/peers/run.mjs [--photos FOLDER] [--count 6144] [--size 1024x768] [--rounds 5] [--epochs 3] [--workers 2] [--batch 256]
 *                            [--only id,id,...] [--out FILE] [--no-warm-up] [--publish]
 *
 * First, each contestant runs once without being timed. This fills the page cache and measures memory, which takes time. Later
 * runs measure memory until the end of the first epoch, which does not count. Then all take turns, each round in another order,
 * so that a slow period of the machine affects all of them. The table goes to stdout, and all other data about the run to --out
 * (bench/.cache/peers.json). --publish writes the rates to bench/peers/results.json and draws README's chart of them.
 *
 * A long comparison can be made in pieces: --rounds 0 only warms up and measures memory, and --no-warm-up only times. Include
 * shardtool in each piece, and merge the files with merge.mjs. Each ratio is then of runs in the same round of the same piece.
 */
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CONTESTANTS } from './contestants.mjs';
import { prepareFormat, prepareNpyShards, preparePhotos, prepareShards } from './data.mjs';
import { prepareEnvironment, reasonOf } from './environments.mjs';
import { WARM } from './measure.mjs';
import { cpuSecondsSoFar, watchMemory } from './process-tree.mjs';
import { describeMachine, publish, summarise, toMarkdown } from './report.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(here, '../.cache');
/** A run that takes longer has hung. */
const RUN_TIMEOUT_MS = 20 * 60_000;

const log = (line) => process.stderr.write(`${line}\n`);
const settings = readSettings();
fs.mkdirSync(cache, { recursive: true });

const photos = await preparePhotos({ ...settings, cache, log });
if (photos.count < settings.batch) throw new Error(`${photos.folder} has ${photos.count} photos, less than one batch.`);

const missing = [];
const ready = [];
const runs = [];
const ids = settings.only ?? CONTESTANTS.map(({ id }) => id);
for (const id of ids) {
  const contestant = CONTESTANTS.find((entry) => entry.id === id);
  const prepared = prepare(contestant);
  if (prepared.missing === undefined) ready.push({ ...contestant, ...prepared });
  else missing.push({ id: contestant.id, reason: prepared.missing });
}

for (const contestant of settings.warmUp ? ready : []) {
  const outcome = await attempt(contestant, { watchedToEnd: true });
  log(`warming up: ${contestant.id}${outcome === null ? ' failed' : ''}`);
  writeReport();
}
let running = ready;
for (let round = 0; round < settings.rounds; round++) {
  running = running.filter(({ failed }) => !failed);
  const first = Math.floor((round * running.length) / settings.rounds);
  for (const contestant of [...running.slice(first), ...running.slice(0, first)]) {
    const result = await attempt(contestant, { watchedToEnd: false });
    if (result !== null) runs.push({ id: contestant.id, round, result });
    log(
      `round ${round + 1} of ${settings.rounds}: ${contestant.id} ${result?.imagesPerSecond ?? 'failed'}, others ${result?.othersCpuShare}`,
    );
    writeReport();
  }
}

const report = writeReport();
const table = { ...report, rows: summarise(report) };
console.log(toMarkdown(table));
if (settings.publish) publish(table);

/** The results so far, so that a long comparison that is ended early keeps its runs. */
function writeReport() {
  const report = {
    machine: describeMachine(),
    photos: { count: photos.count, bytes: photos.bytes, pixels: photos.pixels },
    settings,
    memory: ready.map(({ id, peakMemoryBytes }) => ({ id, peakMemoryBytes: peakMemoryBytes || null })),
    missing,
    runs,
  };
  fs.writeFileSync(settings.out ?? path.join(cache, 'peers.json'), `${JSON.stringify(report, null, 2)}\n`);
  return report;
}

function readSettings() {
  const { values } = parseArgs({
    options: {
      photos: { type: 'string' },
      count: { type: 'string', default: '6144' },
      size: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      epochs: { type: 'string', default: '3' },
      workers: { type: 'string', default: '2' },
      batch: { type: 'string', default: '256' },
      only: { type: 'string' },
      out: { type: 'string' },
      'no-warm-up': { type: 'boolean', default: false },
      publish: { type: 'boolean', default: false },
    },
  });
  const number = (name, least) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < least)
      throw new Error(`--${name} must be a whole number of at least ${least}.`);
    return value;
  };
  const only = values.only?.split(',') ?? null;
  const unknown = only?.find((id) => !CONTESTANTS.some((contestant) => contestant.id === id));
  if (unknown !== undefined) {
    throw new Error(
      `--only: there is no contestant "${unknown}". Contestants: ${CONTESTANTS.map(({ id }) => id).join(', ')}.`,
    );
  }
  return {
    photos: values.photos,
    count: number('count', 1),
    size: values.size,
    rounds: number('rounds', 0),
    epochs: number('epochs', 2),
    workers: number('workers', 1),
    batch: number('batch', 1),
    only,
    out: values.out,
    warmUp: !values['no-warm-up'],
    publish: values.publish,
  };
}

/** { command, args } of a contestant that can run, or { missing: the reason }. */
function prepare(contestant) {
  const { script, variant = '', environment } = contestant;
  const { python, missing: noPython } = environment === undefined ? {} : prepareEnvironment(environment, cache, log);
  if (noPython !== undefined) return { missing: noPython };
  const data = findData(contestant, python);
  if (data.missing !== undefined) return data;
  const { workers, batch, epochs } = settings;
  const own = [path.join(here, script), `--${data.option}`, data.path, '--variant', variant];
  const args = [...own, '--workers', workers, '--batch', batch, '--epochs', epochs].map(String);
  return onSameCores(python ?? process.execPath, args);
}

/** { option, path } of the data of a contestant, which is made if it does not exist, or { missing: the reason }. */
function findData(contestant, python) {
  if (contestant.reads === 'photos') return { option: 'photos', path: photos.folder };
  if (contestant.reads === 'shards') return { option: 'shards', ...prepareShards(photos, settings.workers, log) };
  if (contestant.reads === 'crop-shards') {
    return { option: 'shards', ...prepareShards(photos, settings.workers, log, true) };
  }
  if (contestant.reads === 'npy-shards') {
    return { option: 'shards', ...prepareNpyShards(photos, settings.workers, log) };
  }
  return { option: 'prepared', ...prepareFormat(photos, contestant, python, log) };
}

/** With more cores than workers, all contestants run on the same first cores. */
function onSameCores(command, args) {
  const { workers } = settings;
  if (os.availableParallelism() <= workers || spawnSync('taskset', ['--version']).status !== 0)
    return { command, args };
  return { command: 'taskset', args: ['-c', `0-${workers - 1}`, command, ...args] };
}

/** Share of the cores' time since `before` that programs other than the contestants took. */
function othersSince(before) {
  const { all, own } = cpuSecondsSoFar();
  const seconds = ((performance.now() - before.at) / 1000) * os.availableParallelism();
  return Math.max(0, Math.round(((all - before.all - (own - before.own)) / seconds) * 1000) / 1000);
}

/** The result of one run, or null if the contestant failed. It is then listed as missing. */
async function attempt(contestant, { watchedToEnd }) {
  if (contestant.failed) return null;
  const child = spawn(contestant.command, contestant.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_TIMEOUT_MS,
  });
  const before = { ...cpuSecondsSoFar(), at: performance.now() };
  const memory = watchMemory(child.pid);
  const keepPeak = () => {
    contestant.peakMemoryBytes = Math.max(contestant.peakMemoryBytes ?? 0, memory.stop() ?? 0);
  };
  let watching = true;
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    if (!watching || watchedToEnd || !stderr.includes(WARM)) return;
    watching = false;
    keepPeak();
  });
  const { status, signal } = await new Promise((resolve) => {
    child.on('close', (status, signal) => resolve({ status, signal }));
  });
  if (watching) keepPeak();
  const line = stdout.trim().split('\n').at(-1);
  if (status === 0 && line.startsWith('{')) return { ...JSON.parse(line), othersCpuShare: othersSince(before) };
  contestant.failed = true;
  missing.push({ id: contestant.id, reason: `its run ended with ${signal ?? status}: ${reasonOf(stderr)}` });
  return null;
}
