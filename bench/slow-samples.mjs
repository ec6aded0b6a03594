/**
 * Do a few slow images keep workers from the others? Photos of 500x375, of which 1 % are photos of 24 megapixels, at the
 * loader's defaults, with as many workers as are given. PNGs are not measured: sharp decodes them in threads of its own.
 *
 *   node bench/slow-samples.mjs [--count 3000] [--workers 2,8] [--rounds 3] [--prefetch 4]
 *
 * `at work` is the share of the time in which the decode workers had work: they ran, or waited for a core. Linux counts both for
 * each thread, so the figure does not depend on what else the machine does, and more workers than cores stand for a machine with
 * more cores that are slower. It is the loader's rate by the rate that the sum of the workers' time allows.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
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

/** A photo of this size. */
async function slow(width, height) {
  const file = path.join(folder, 'slow.jpg');
  await sharp(small[0])
    .resize(width, height, { fit: 'fill' })

    .toFile(file);
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

/** Milliseconds that each thread of this process ran, and that it ran or waited for a core. */
function threads() {
  return new Map(
    readdirSync('/proc/self/task').map((id) => {
      const [ran, waited] = readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ').map(Number);
      return [id, { ran: ran / 1e6, busy: (ran + waited) / 1e6 }];
    }),
  );
}

/** The share of an epoch in which workers had work, and the waits for its batches. */
async function epoch(shards, count) {
  const dataset = await openDataset(shards);
  const options = { transform: 'train224', workers: count, prefetchBatches: Number(prefetch), reuse: true };
  const loader = dataset.loader({ ...options, epochsPerLoop: 2 });
  let before;
  let begun;
  let at;
  const waits = [];
  for await (const batch of loader) {
    const now = performance.now();
    if (batch.epoch === 1 && before === undefined) [before, begun] = [threads(), now];
    else if (before !== undefined) waits.push(now - at);
    at = performance.now();
  }
  const elapsed = at - begun;
  const others = [...threads()].filter(([id]) => id !== String(process.pid));
  const work = others.map(([id, { ran, busy }]) => {
    const then = before.get(id) ?? { ran: 0, busy: 0 };
    return { ran: ran - then.ran, busy: busy - then.busy };
  });
  // Of the threads other than the main one, those that ran longest are the workers.
  const used = work.sort((a, b) => b.ran - a.ran).slice(0, count);
  await loader.close();
  await dataset.close();
  waits.sort((a, b) => a - b);
  const share = used.reduce((sum, { busy }) => sum + busy, 0) / elapsed / count;
  return { share, p50: waits[waits.length >> 1], p99: waits[Math.floor(waits.length * 0.99)] };
}

try {
  const datasets = [
    ['photos alone', pack('alone', null)],
    ['1 % of 24 megapixels', pack('large', await slow(6000, 4000))],
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
