/**
 * Do a few slow images delay the others? Photos of 500x375, of which 1 % are photos of 24 megapixels or PNGs of 6 or 24
 * megapixels, with the loader's defaults and the given numbers of workers.
 *
 *   node bench/slow-samples.mjs [--count 3000] [--workers 2,8] [--rounds 3] [--prefetch 4]
 *
 * `at work` is the share of the workers' time in which a thread could run. Another process samples the threads 250 times per
 * second: of W workers, r / W are at work if r < W threads run or wait for a core. So the figure does not depend on other
 * programs, and more workers than cores simulate a machine with more cores that are slower. It equals the loader's rate divided by
 * the rate that the sum of the CPU time allows. sharp decodes PNGs in its own threads, so these count. The main thread does not.
 */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '../packages/reader/lib/index.js';
import { rate } from './figures.mjs';

const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');
const root = fileURLToPath(new URL('..', import.meta.url));
const { count, workers, rounds, prefetch } = parseArgs({
  options: {
    count: { type: 'string', default: '3000' },
    workers: { type: 'string', default: '2,8' },
    rounds: { type: 'string', default: '3' },
    prefetch: { type: 'string', default: '4' },
  },
}).values;
const folder = mkdtempSync(path.join(os.tmpdir(), 'shardtool-slow-'));
const photos = path.join(root, 'examples/photos');
const small = readdirSync(photos, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.jpg'))
  .sort()
  .map((name) => path.join(photos, name));

/** A photo of this size, in a file with this extension. */
async function slow(width, height, extension) {
  const file = path.join(folder, `slow-${width}.${extension}`);
  await sharp(small[0]).resize(width, height, { fit: 'fill' }).toFile(file);
  return file;
}

/** A dataset of `count` photos; each hundredth is `other`. */
function pack(name, other) {
  const images = path.join(folder, name);
  mkdirSync(path.join(images, 'a'), { recursive: true });
  // Links do not reach into another file system.
  const copies = small.map((file, i) => {
    const copy = path.join(folder, `small-${i}.jpg`);
    copyFileSync(file, copy);
    return copy;
  });
  for (let i = 0; i < Number(count); i++) {
    const file = other !== null && i % 100 === 50 ? other : copies[i % copies.length];
    linkSync(file, path.join(images, 'a', `${String(i).padStart(6, '0')}${path.extname(file)}`));
  }
  const shards = path.join(folder, `${name}-shards`);
  execFileSync(process.execPath, [path.join(root, 'packages/cli/lib/main.js'), 'pack', images, shards, '--quiet']);
  return shards;
}

/** Counts how many threads of a process could run, except the main thread. Prints how often it saw each number when it is stopped. */
const SAMPLER = `
  const fs = require('node:fs');
  const [pid] = process.argv.slice(1);
  const seen = [];
  const look = () => {
    let running = 0;
    for (const id of fs.readdirSync('/proc/' + pid + '/task')) {
      if (id === pid) continue;
      try {
        const text = fs.readFileSync('/proc/' + pid + '/task/' + id + '/stat', 'latin1');
        if (/^[RD]/.test(text.slice(text.lastIndexOf(')') + 2))) running++;
      } catch {
        // The thread has ended.
      }
    }
    seen[running] = (seen[running] ?? 0) + 1;
  };
  const timer = setInterval(look, 4);
  process.on('SIGTERM', () => {
    clearInterval(timer);
    console.log(JSON.stringify(Array.from(seen, (count) => count ?? 0)));
  });`;

/** Starts to sample the threads of this process. The returned function stops it, and returns the share of the time in which `workers` were at work. */
function watchThreads(workers) {
  const sampler = spawn(process.execPath, ['-e', SAMPLER, String(process.pid)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  sampler.stdout.on('data', (more) => {
    text += more;
  });
  return async () => {
    const ended = new Promise((resolve) => sampler.on('close', resolve));
    sampler.kill();
    await ended;
    const seen = JSON.parse(text);
    const looks = seen.reduce((sum, count) => sum + count, 0);
    return seen.reduce((sum, count, running) => sum + count * Math.min(running, workers), 0) / looks / workers;
  };
}

/** The share of an epoch in which workers had work, and the waits for its batches. */
async function epoch(shards, count) {
  const dataset = await openDataset(shards);
  const options = { transform: 'train224', workers: count, prefetchBatches: Number(prefetch), reuse: true };
  const loader = dataset.loader({ ...options, epochsPerLoop: 2 });
  let watched;
  let at;
  const waits = [];
  for await (const batch of loader) {
    const now = performance.now();
    if (watched !== undefined) waits.push(now - at);
    else if (batch.epoch === 1) watched = watchThreads(count);
    at = performance.now();
  }
  const share = await watched();
  await loader.close();
  await dataset.close();
  waits.sort((a, b) => a - b);
  return { share, p50: waits[waits.length >> 1], p99: waits[Math.floor(waits.length * 0.99)] };
}

try {
  const datasets = [
    ['photos alone', pack('alone', null)],
    ['1 % of 24 megapixels', pack('large', await slow(6000, 4000, 'jpg'))],
    ['1 % PNGs of 6 megapixels', pack('png6', await slow(3000, 2000, 'png'))],
    ['1 % PNGs of 24 megapixels', pack('png24', await slow(6000, 4000, 'png'))],
  ];
  for (const each of workers.split(',').map(Number)) {
    const found = datasets.map(() => []);
    for (let round = 0; round < Number(rounds); round++) {
      for (const [i, [, shards]] of datasets.entries()) found[i].push(await epoch(shards, each));
    }
    for (const [i, [name]] of datasets.entries()) {
      const median = (key) => found[i].map((one) => one[key]).sort((a, b) => a - b)[found[i].length >> 1];
      console.log(
        `${each} workers, ${name}: ${median('share').toFixed(3)} at work, waits of ${median('p50').toFixed(0)} ms (p50) and ` +
          `${median('p99').toFixed(0)} ms (p99)`,
      );
      rate(`slow samples: ${each} workers, ${name}`, median('share'));
    }
  }
} finally {
  rmSync(folder, { recursive: true });
}
