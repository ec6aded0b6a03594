/**
 * Measures the cost of checking every delivered field: CPU time per sample and rate of whole epochs with `checksum: 'always'` and
 * with `'never'`, in turns. Each photo has a class, json, text and bytes. One run delivers these fields, another does not.
 *
 *   node bench/checksums.mjs [--count 600] [--rounds 9] [--workers 1] [--transform train224]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { Writer } from '@shardtool/writer';
import { cost, rate } from './figures.mjs';
import { makePhotos } from './make-photos.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: {
    count: { type: 'string', default: '600' },
    rounds: { type: 'string', default: '9' },
    workers: { type: 'string', default: '1' },
    transform: { type: 'string', default: 'train224' },
  },
});
const count = Number(options.count);
const photos = path.join(here, `.cache/photos-500x375-${count}`);
await makePhotos({ count, out: photos, log: console.error });
const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-bench-'));
try {
  await write();
  const dataset = await openDataset(folder);
  const KINDS = ['always, fields', 'never, fields', 'always', 'never'];
  const found = Object.fromEntries(KINDS.map((kind) => [kind, []]));
  // The first turn fills the page cache, and V8 compiles the code.
  for (let round = -1; round < Number(options.rounds); round++) {
    for (const turn of KINDS.keys()) {
      const kind = KINDS[(turn + round + KINDS.length) % KINDS.length];
      const figures = await epoch(dataset, kind, round + 1);
      if (round >= 0) found[kind].push(figures);
    }
  }
  await dataset.close();
  for (const [kind, rounds] of Object.entries(found)) {
    const [cpu, images] = [median(rounds.map((one) => one.cpu)), median(rounds.map((one) => one.rate))];
    console.log(`checksum ${kind}: ${cpu.toFixed(0)} microseconds of CPU per sample, ${images.toFixed(0)} images/s`);
    cost(`CPU a sample, ${kind}`, cpu);
    rate(`images/s, ${kind}`, images);
  }
  for (const which of ['', ', fields']) {
    const ratios = found[`always${which}`].map(({ cpu }, round) => cpu / found[`never${which}`][round].cpu);
    const [low, , high] = [0.25, 0.5, 0.75].map(
      (share) => ratios.toSorted((x, y) => x - y)[Math.floor(share * ratios.length)],
    );
    const spread = `${low.toFixed(3)} to ${high.toFixed(3)} (half of the rounds)`;
    console.log(`CPU time with checks${which}: ${median(ratios).toFixed(3)} times that without, ${spread}`);
  }
} finally {
  rmSync(folder, { recursive: true });
}

async function write() {
  const writer = new Writer(folder, { maxShardSamples: 200, overwrite: true });
  const files = readdirSync(photos, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.jpg'));
  for (const [i, file] of files.sort().entries()) {
    const caption = `A photo, number ${i}: ${'word '.repeat(40)}`;
    await writer.add({
      ...{ key: `photo/${i}`, jpg: readFileSync(path.join(photos, file)), label: i % 10, txt: caption },
      ...{
        json: { id: i, boxes: Array.from({ length: 12 }, (_, k) => [k, i, k + 9, i + 9]) },
        bin: new Uint8Array(2048).fill(i),
      },
    });
  }
  await writer.close();
}

/** Microseconds of CPU per sample, over all threads, and images per second. */
async function epoch(dataset, kind, number) {
  const checksum = kind.split(',')[0];
  const fields = kind.endsWith('fields') ? ['json', 'txt', 'cls', 'bin'] : [];
  const loading = { transform: options.transform, batchSize: 50, workers: Number(options.workers), seed: 1 };
  const loader = dataset.loader({ ...loading, fields, checksum, reuse: true });
  loader.setEpoch(number);
  let samples = 0;
  const before = { cpu: process.cpuUsage(), time: performance.now() };
  for await (const batch of loader) samples += batch.labels.length;
  const { user, system } = process.cpuUsage(before.cpu);
  const seconds = (performance.now() - before.time) / 1000;
  await loader.close();
  return { cpu: (user + system) / samples, rate: samples / seconds };
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1];
}
