/**
 * Measures the cost of batches of several sizes: the time to the first batch of 10 million samples, and the rate of batches of
 * large and of small photos, compared with a plain bucket sampler with PyTorch's DataLoader and torchvision.
 *
 *   node bench/buckets.mjs [--rounds 3] [--workers 2] [--large 240] [--small 2400] [--samples 10000000] [--python python3]
 *
 * Needs a build (npm run build). The contestants take turns. The median of the ratios of all rounds is printed.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { rate as asRate, cost } from './figures.mjs';
import { listPhotos, makePhotos } from './make-photos.mjs';
import { median } from './peers/measure.mjs';
import { makeSparseDataset } from './sparse-dataset.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    large: { type: 'string', default: '240' },
    small: { type: 'string', default: '2400' },
    samples: { type: 'string', default: '10000000' },
    python: { type: 'string', default: 'python3' },
    'first-batch': { type: 'string' },
  },
});

if (values['first-batch'] !== undefined) {
  const dataset = await openDataset(values['first-batch']);
  const sized = { aspectBuckets: { area: 2 ** 20, step: 64, maxRatio: 2 } };
  const options = process.env.PLAIN ? { transform: 'train224' } : sized;
  const loader = dataset.loader({
    ...options,
    batchSize: 64,
    reuse: true,
    workers: 1,
    prefetchBatches: 2,
    onBad: 'skip',
  });
  const cpuMs = () => process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;
  const atFirst = cpuMs();
  await loader.info();
  const plannedCpuMs = cpuMs() - atFirst;
  for await (const _ of loader) break;
  const firstCpuMs = cpuMs() - atFirst;
  process.stdout.write(JSON.stringify({ plannedCpuMs, firstCpuMs, rssBytes: process.resourceUsage().maxRSS * 1024 }));
  process.exit(0);
}

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-buckets-'));
process.env.SHARDTOOL_SIDECARS = path.join(folder, 'beside');
try {
  await firstBatches();
  if (values.large !== '0') await against('2048x1536', Number(values.large), 1024, 8);
  if (values.small !== '0') await against('500x375', Number(values.small), 512, 32);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** 10 million samples: the first time, and again when the counts are cached. */
async function firstBatches() {
  const samples = Number(values.samples);
  if (samples === 0) return;
  const place = path.join(folder, 'many');
  mkdirSync(place);
  const shapes = [
    [1024, 768],
    [768, 1024],
    [1000, 1000],
    [1500, 1000],
    [900, 1200],
    [1600, 900],
  ];
  await makeSparseDataset(place, { samples, shardSamples: 10_000, sizeOf: (number) => shapes[number % shapes.length] });
  const run = (env) =>
    JSON.parse(
      execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--first-batch', place], {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      }),
    );
  for (const what of ['without buckets', 'sizes counted', 'sizes kept']) {
    const { plannedCpuMs, firstCpuMs, rssBytes } = run(what === 'without buckets' ? { PLAIN: '1' } : {});
    console.log(
      `${samples} samples, ${what}: planned in ${plannedCpuMs.toFixed(0)} ms of CPU time, first batch ${firstCpuMs.toFixed(0)} ms, ` +
        `at most ${(rssBytes / 1e6).toFixed(0)} MB`,
    );
    cost(`first batch, ${what}, ms`, firstCpuMs);
  }
  rmSync(place, { recursive: true });
}

/** Photos of about this size, in the usual aspect ratios of cameras and crops. */
async function photosOf(size, count) {
  const made = path.join(folder, `made-${size}`);
  await makePhotos({ count, size: parsed(size), out: made, log: () => {} });
  const out = path.join(folder, `photos-${size}`);
  mkdirSync(path.join(out, 'a'), { recursive: true });
  const files = [];
  const ratios = [4 / 3, 3 / 4, 3 / 2, 2 / 3, 16 / 9, 1];
  for (const [i, file] of listPhotos(made).entries()) {
    const { width, height } = await sharp(file).metadata();
    const ratio = ratios[i % ratios.length];
    const part = {
      width: Math.min(width, Math.round(height * ratio)),
      height: Math.min(height, Math.round(width / ratio)),
    };
    const target = path.join(out, 'a', `${String(i).padStart(5, '0')}.jpg`);
    await sharp(file)
      .extract({ left: 0, top: 0, ...part })
      .jpeg({ quality: 90 })
      .toFile(target);
    files.push({ path: target, ...part });
  }
  return { out, files };
}

function parsed(size) {
  const [width, height] = size.split('x').map(Number);
  return { width, height };
}

async function against(size, count, side, batchSize) {
  const { out, files } = await photosOf(size, count);
  const shards = path.join(folder, `shards-${size}`);
  await pack(out, shards, { maxShardSamples: 500 });
  const buckets = { area: side * side, step: 64, maxRatio: 2 };
  const { planAspectBuckets } = await import('@shardtool/reader');
  const dataset = await openDataset(shards);
  const { sizes } = await planAspectBuckets(dataset, { aspectBuckets: buckets, batchSize });
  const nearest = ({ width, height }) => {
    const far = (one) => Math.abs(Math.log((width * one.height) / (height * one.width)));
    return sizes.reduce((best, one, b) => (far(one) < far(sizes[best]) ? b : best), 0);
  };
  const list = path.join(folder, `list-${size}.json`);
  const torchSizes = sizes.map(({ width, height }) => [height, width]);
  writeFileSync(list, JSON.stringify({ sizes: torchSizes, files: files.map((file) => [file.path, nearest(file)]) }));
  const contestants = {
    scaled: () => ours(dataset, { aspectBuckets: buckets, batchSize }),
    exact: () => ours(dataset, { aspectBuckets: buckets, batchSize, decode: 'exact' }),
    torch: () =>
      JSON.parse(
        execFileSync(values.python, [path.join(here, 'buckets_torch.py'), list, values.workers, String(batchSize)], {
          encoding: 'utf8',
        }),
      ).imagesPerSecond,
  };
  const rates = { scaled: [], exact: [], torch: [] };
  for (let round = -1; round < Number(values.rounds); round++) {
    const names = Object.keys(contestants);
    if (round % 2 === 0) names.reverse();
    for (const name of names) {
      const images = await contestants[name]();
      if (round >= 0) rates[name].push(images);
    }
  }
  await dataset.close();
  const shown = Object.entries(rates).map(([name, all]) => `${name} ${median(all).toFixed(1)}`);
  const ratios = ['scaled', 'exact'].map((name) => median(rates[name].map((images, i) => images / rates.torch[i])));
  console.log(
    `${count} photos of about ${size} into ${sizes.length} sizes of ${side}x${side}, ${values.workers} workers, images/s: ${shown.join(', ')}; ` +
      `median of ${values.rounds} ratios to torch: scaled ${ratios[0].toFixed(2)}, exact ${ratios[1].toFixed(2)}`,
  );
  asRate(`buckets of ${side} against torch`, ratios[0]);
}

async function ours(dataset, options) {
  const loader = dataset.loader({
    reuse: true,
    ...options,
    transform: [{ name: 'randomHorizontalFlip' }],
    seed: 1,
    workers: Number(values.workers),
    lastBatch: 'drop',
  });
  let images = 0;
  let began = 0;
  for await (const batch of loader) {
    if (began === 0) began = performance.now();
    else images += batch.size;
  }
  const seconds = (performance.now() - began) / 1000;
  await loader.close();
  return images / seconds;
}
