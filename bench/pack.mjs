/**
 * Compares packing with GNU tar, in turn, on tmpfs and on disk with `sync`: `tar cf` writes the photos to one archive, and
 * shardtool writes them to shards (including process start, scan, plan, checksums of fields and files, dimensions and index).
 * Then packs a million tiny files, and measures rate and peak memory.
 *
 *   node bench/pack.mjs [--count 30000] [--rounds 5] [--workers 2] [--tmpfs /dev/shm] [--disk FOLDER] [--tiny 1000000]
 *
 * `--tiny 0` skips the tiny files, `--count 0` the photos, and `--disk ''` the disk. Needs a build (`npm run build`) and
 * GNU tar.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { rate } from './figures.mjs';
import { removePhotos } from './make-photos.mjs';
import { makeTinyFiles, TINY_BYTES } from './tiny-files.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const writer = pathToFileURL(path.join(here, '../packages/writer/lib/index.js')).href;

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '30000' },
    rounds: { type: 'string', default: '5' },
    workers: { type: 'string', default: '2' },
    tmpfs: { type: 'string', default: '/dev/shm' },
    disk: { type: 'string', default: os.tmpdir() },
    tiny: { type: 'string', default: '1000000' },
  },
});
const [count, rounds, workers, tiny] = [values.count, values.rounds, values.workers, values.tiny].map(Number);

/** Node reads the file of NODE_EXTRA_CA_CERTS at every start. That takes 0.14 s, which is not part of packing. */
const { NODE_EXTRA_CA_CERTS, ...environment } = process.env;

/** Enough shards that no worker idles at the end while another writes the last shard. */
const SHARDS = 16;

/** Runs shardtool's pack in a separate process. Its peak memory is the kernel's ru_maxrss. */
function packOnce(source, output, maxShardSamples) {
  const program = `
    import { pack } from ${JSON.stringify(writer)};
    const report = await pack(${JSON.stringify(source)}, ${JSON.stringify(output)}, {
      workers: ${workers},
      maxShardSamples: ${maxShardSamples},
    });
    console.log(JSON.stringify({ ...report, peakBytes: process.resourceUsage().maxRSS * 1024 }));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: environment,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

function packShards(source, output) {
  return packOnce(source, output, Math.ceil(count / SHARDS));
}

function tarOnce(source, output) {
  fs.mkdirSync(output, { recursive: true });
  execFileSync('tar', ['cf', path.join(output, 'all.tar'), '-C', source, '.']);
}

/** Seconds of one run into an empty folder, and its return value. */
function time(run, source, output, sync) {
  fs.rmSync(output, { recursive: true, force: true });
  if (sync) execFileSync('sync');
  const start = performance.now();
  const result = run(source, output);
  if (sync) execFileSync('sync');
  const seconds = (performance.now() - start) / 1000;
  fs.rmSync(output, { recursive: true, force: true });
  return { seconds, result };
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

function compare(label, source, folder, files, sync) {
  const output = path.join(folder, 'shardtool-bench-pack');
  const seconds = { tar: [], shardtool: [] };
  for (let round = 0; round < rounds; round++) {
    seconds.tar.push(time(tarOnce, source, output, sync).seconds);
    seconds.shardtool.push(time(packShards, source, output, sync).seconds);
    const [tar, ours] = [seconds.tar.at(-1), seconds.shardtool.at(-1)];
    console.error(
      `  ${label}, round ${round + 1}: tar ${tar.toFixed(2)} s, shardtool ${ours.toFixed(2)} s, ratio ${(tar / ours).toFixed(2)}`,
    );
  }
  const rateOf = (run) => Math.round(files / median(seconds[run]));
  rate(`${label}, files/s`, rateOf('shardtool'));
  const ratio = median(seconds.tar.map((tar, round) => tar / seconds.shardtool[round]));
  console.log(
    `| ${label} | ${rateOf('tar').toLocaleString('en')} | ${rateOf('shardtool').toLocaleString('en')} | ${ratio.toFixed(2)} |`,
  );
}

function main() {
  console.log(
    `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}, ${workers} workers\n`,
  );
  if (count > 0) measurePhotos();
  if (tiny > 0) measureTiny();
}

function measurePhotos() {
  const photos = path.join(values.tmpfs, 'shardtool-bench-photos');
  const make = [path.join(here, 'make-photos.mjs'), '--count', String(count), '--out', photos, '--copies'];
  try {
    execFileSync(process.execPath, make, { stdio: ['ignore', 'ignore', 'inherit'] });
    comparePhotos(photos);
  } finally {
    removePhotos(photos);
  }
}

function comparePhotos(photos) {
  console.log(
    `${count.toLocaleString('en')} photos, files per second (medians of ${rounds} rounds; the ratio is the median of the ratios per round)\n`,
  );
  console.log('| where | `tar cf` | shardtool | ratio |\n|---|---|---|---|');
  compare('tmpfs to tmpfs', photos, values.tmpfs, count, false);
  if (values.disk !== '') compare('tmpfs to disk, synced', photos, values.disk, count, true);
}

function measureTiny() {
  const folder = path.join(values.tmpfs, 'shardtool-bench-tiny');
  makeTinyFiles(folder, tiny);
  const { seconds, result } = time(packOnce, folder, path.join(values.tmpfs, 'shardtool-bench-pack'), false);
  fs.rmSync(folder, { recursive: true, force: true });
  rate('tiny files, files/s', tiny / seconds);
  const perSecond = Math.round(tiny / seconds).toLocaleString('en');
  const peak = Math.round(result.peakBytes / 1e6);
  console.log(
    `\n${tiny.toLocaleString('en')} files of ${TINY_BYTES} bytes: ${seconds.toFixed(1)} s, ${perSecond} files per second, ` +
      `${result.shards} shards, peak memory ${peak} MB`,
  );
}

main();
