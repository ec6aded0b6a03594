/**
 * What a mixture costs: how soon a mixture of 8 datasets of 50 million samples each has its first batch planned, and how fast
 * batches come out of two datasets, against one that has the samples of both.
 *
 *   node bench/mixture.mjs [--photos FOLDER] [--count 3000] [--rounds 7] [--workers 2] [--epochs 3]
 *
 * Needs a build (npm run build). The contestants take turns, and what is quoted is the median of the rounds' ratios.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset, openMixture } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { planMixture } from '#reader/plan-mixture';
import { rate as asRate, cost } from './figures.mjs';
import { listPhotos, makePhotos } from './make-photos.mjs';
import { median } from './peers/measure.mjs';

const { values } = parseArgs({
  options: {
    photos: { type: 'string' },
    count: { type: 'string', default: '3000' },
    rounds: { type: 'string', default: '7' },
    workers: { type: 'string', default: '2' },
    epochs: { type: 'string', default: '3' },
    'first-batch': { type: 'string' },
  },
});

/** 8 datasets of 50 million samples in 5,000 shards each, weighed 8 to 1. */
function hugeMixture(position) {
  const samples = Array.from({ length: 8 }, (_, d) => Math.round((50e6 * (8 - d)) / 8));
  return {
    sources: samples.map((count) => ({
      counts: new Float64Array(5_000).fill(10_000),
      streams: 16 * Math.max(1, Math.ceil((192 * count) / 225e6 / 16)),
      blockSamples: 32,
    })),
    samples,
    seed: 42,
    epoch: 0,
    group: 16,
    window: 16,
    globalBatch: 256,
    position,
  };
}

function firstBatch(position) {
  const began = process.cpuUsage();
  const plan = planMixture(hugeMixture(position));
  const blocks = plan.blocks();
  const { block } = plan.rows().next().value;
  for (let ordinal = 0; ordinal <= Math.max(...block); ordinal++) blocks.next();
  const sinceStartMs = performance.now();
  const { user, system } = process.cpuUsage(began);
  return { sinceStartMs, planCpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss() };
}

if (values['first-batch'] !== undefined) {
  process.stdout.write(JSON.stringify(firstBatch(Number(values['first-batch']))));
  process.exit(0);
}

for (const [name, position] of [
  ['from the start', 0],
  ['from 90 % of the epoch', 202_500_000],
]) {
  const script = fileURLToPath(import.meta.url);
  const runs = Array.from({ length: 5 }, () =>
    JSON.parse(execFileSync(process.execPath, [script, '--first-batch', String(position)], { encoding: 'utf8' })),
  );
  const ms = median(runs.map((run) => run.sinceStartMs));
  const planMs = median(runs.map((run) => run.planCpuMs));
  const bytes = median(runs.map((run) => run.rssBytes));
  console.log(
    `8 datasets of 50 million samples, ${name}: first batch planned in ${planMs.toFixed(0)} ms of processor time, ${ms.toFixed(0)} ms after the process began, ${(bytes / 1e6).toFixed(0)} MB`,
  );
  cost(`first batch planned, ${name}, ms`, planMs);
}

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-mixture-'));
try {
  const photos = values.photos ?? path.join(folder, 'photos');
  if (values.photos === undefined) await makePhotos({ count: Number(values.count), out: photos, log: () => {} });
  const files = listPhotos(photos);
  for (const [i, file] of files.entries()) {
    const half = path.join(folder, i % 2 === 0 ? 'a' : 'b', path.basename(path.dirname(file)));
    mkdirSync(half, { recursive: true });
    cpSync(file, path.join(half, path.basename(file)));
  }
  const place = (name) => path.join(folder, `${name}-shards`);
  for (const name of ['a', 'b']) await pack(path.join(folder, name), place(name), { maxShardSamples: 200 });
  await pack(photos, place('all'), { maxShardSamples: 200 });
  const options = {
    transform: 'train224',
    batchSize: 256,
    seed: 1,
    workers: Number(values.workers),
    epochsPerLoop: Number(values.epochs),
  };
  const contestants = {
    one: () => openDataset(place('all')),
    mixture: () => openMixture([{ dataset: place('a') }, { dataset: place('b') }]),
  };
  const rates = { one: [], mixture: [] };
  for (let round = -1; round < Number(values.rounds); round++) {
    const names = round % 2 === 0 ? ['one', 'mixture'] : ['mixture', 'one'];
    for (const name of names) {
      const dataset = await contestants[name]();
      const loader = dataset.loader({ ...options, shuffleUnit: 'chunk', reuse: true });
      let samples = 0;
      let started = 0;
      for await (const batch of loader) {
        // The first batch waits for the workers to start.
        if (started === 0) started = performance.now();
        else samples += batch.size;
      }
      const seconds = (performance.now() - started) / 1000;
      await loader.close();
      await dataset.close();
      if (round >= 0) rates[name].push(samples / seconds);
    }
  }
  const ratio = median(rates.mixture.map((value, i) => value / rates.one[i]));
  console.log(
    `${files.length} photos, ${values.workers} workers: one dataset ${median(rates.one).toFixed(0)} images/s, a mixture of two ` +
      `${median(rates.mixture).toFixed(0)}; median of ${values.rounds} ratios ${ratio.toFixed(3)}`,
  );
  asRate('mixture of two datasets against one', ratio);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
