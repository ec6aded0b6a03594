// Overlays of 1,000,000 samples (opening, and a loader's rate with one against without, in turns) and a split of 10,000,000.
// Usage: node bench/overlays.mjs [samples] [samples to split]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { addOverlay, openDataset, splitDataset } from '@shardtool/reader';
import { keyOf, makeSparseDataset } from './sparse-dataset.mjs';

const ROUNDS = 7;

if (process.argv[2] === 'split') await split(process.argv[3]);
else if (process.argv[2] === 'open') await open(process.argv[3], process.argv[4]);
else await measure(Number(process.argv[2] ?? 1_000_000), Number(process.argv[3] ?? 10_000_000));

async function measure(samples, splitSamples) {
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-overlays-'));
  process.on('exit', () => rmSync(folder, { recursive: true }));
  await makeSparseDataset(folder, { samples, shardSamples: 10_000, classes: 1000 });
  const each = (first) => Array.from({ length: samples / 100 }, (_, i) => keyOf(i * 100 + first));
  const id = each(7);
  const started = performance.now();
  await addOverlay(folder, {
    name: 'percent',
    excludeKeys: each(3),
    labels: { by: 'key', id, cls: id.map((_, i) => `class ${i % 1000}`), columns: new Map() },
  });
  console.log(`making an overlay of ${2 * id.length} changes: ${((performance.now() - started) / 1000).toFixed(1)} s`);
  await addOverlay(folder, { name: 'half', excludeKeys: Array.from({ length: samples / 2 }, (_, i) => keyOf(i * 2)) });
  for (const overlay of ['', 'percent', 'half']) run('open', folder, overlay);

  const runs = { without: [], with: [] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, overlay] of [
      ['without', undefined],
      ['with', 'percent'],
    ]) {
      runs[name].push(await rateOf(folder, overlay, samples / 2));
    }
  }
  const ratios = (of) => runs.with.map((run, round) => of(run) / of(runs.without[round])).sort((x, y) => x - y);
  const rates = ratios(({ rate }) => rate);
  const costs = ratios(({ cpuUs }) => cpuUs);
  const list = (values) => `${median(values).toFixed(3)} times (${values.map((value) => value.toFixed(2)).join(', ')})`;
  console.log(
    `loader of raw bytes, ${Math.round(median(runs.without.map(({ rate }) => rate)))} samples/s without: with 1 % left out ` +
      `and 1 % relabelled ${list(rates)}; processor time a sample ${list(costs)}`,
  );
  const large = path.join(folder, 'large');
  spawnSync('mkdir', [large]);
  await makeSparseDataset(large, { samples: splitSamples, shardSamples: 20_000, classes: 1000 });
  run('split', large);
}

async function rateOf(folder, overlay, samples) {
  const dataset = await openDataset(folder, { overlay });
  const loader = dataset.loader({
    transform: 'raw',
    batchSize: 256,
    workers: 1,
    fields: [],
    reuse: true,
    samplesPerEpoch: samples,
  });
  let from = 0;
  let cpu;
  let seen = 0;
  for await (const batch of loader) {
    // Without the first batch, which reads the first indexes.
    if (from === 0) {
      from = performance.now();
      cpu = process.cpuUsage();
    } else seen += batch.size;
  }
  const { user, system } = process.cpuUsage(cpu);
  const rate = (seen / (performance.now() - from)) * 1000;
  await loader.close();
  await dataset.close();
  return { rate, cpuUs: (user + system) / seen };
}

async function open(folder, overlay) {
  const before = process.memoryUsage.rss();
  const cpu = process.cpuUsage();
  const from = performance.now();
  const dataset = await openDataset(folder, { overlay: overlay || undefined });
  const took = performance.now() - from;
  const { user, system } = process.cpuUsage(cpu);
  const grown = (process.memoryUsage.rss() - before) / 1e6;
  console.log(
    `opening with ${overlay || 'no overlay'}: ${took.toFixed(0)} ms (${((user + system) / 1000).toFixed(0)} of CPU), ${grown.toFixed(0)} MB, ${dataset.size} samples`,
  );
}

async function split(folder) {
  for (const [name, options] of [
    ['plain', {}],
    ['by-class', { byClass: true }],
  ]) {
    const from = performance.now();
    const cpu = process.cpuUsage();
    const { splits } = await splitDataset(folder, { name, shares: new Map([['val', 0.1]]), ...options });
    const seconds = (performance.now() - from) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    console.log(
      `splitting, ${name}: ${seconds.toFixed(1)} s (${((user + system) / 1e6).toFixed(1)} of CPU); ${splits.map((part) => `${part.name} ${part.samples}`).join(', ')}`,
    );
  }
  console.log(`memory at the peak: ${Math.round(process.resourceUsage().maxRSS / 1000)} MB`);
}

function run(...given) {
  spawnSync(process.execPath, [process.argv[1], ...given], { stdio: 'inherit' });
}

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}
