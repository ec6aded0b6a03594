/** Shared code of the contestants in JavaScript. measure.py does the same for those in Python. */

import { parseArgs } from 'node:util';
import { rate } from '../figures.mjs';
import { treeCpuSeconds } from './process-tree.mjs';

export function parseArguments() {
  const { values } = parseArgs({
    options: {
      photos: { type: 'string' },
      shards: { type: 'string' },
      prepared: { type: 'string' },
      workers: { type: 'string', default: '2' },
      batch: { type: 'string', default: '256' },
      epochs: { type: 'string', default: '3' },
      variant: { type: 'string', default: '' },
    },
  });
  return { ...values, workers: Number(values.workers), batch: Number(values.batch), epochs: Number(values.epochs) };
}

export function percentile(values, share) {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[Math.max(0, Math.ceil(share * ordered.length) - 1)];
}

export function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const half = ordered.length >> 1;
  return ordered.length % 2 === 1 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
}

/** Fast loaders run more epochs, for at least this time, because a run of a second or two is not accurate. */
const LEAST_MS = 5000;

/** Line on stderr after the warm-up epoch. run.mjs measures memory until then. */
export const WARM = 'measure: the first epoch has ended';

/**
 * Times `build(arguments)`, which returns { startEpoch, close }. `startEpoch()` is an async iterable of { size, images }.
 * The rate is that of whole epochs after the first, including their ends. Waits are those of the same epochs, without the
 * first batch of each. `firstBatchMs` starts when the loader is built, after the imports.
 */
export async function measure({ name, version, build, given, notes }) {
  const started = performance.now();
  const { startEpoch, close } = await build(given);
  const waits = [];
  let firstBatchMs = null;
  let images = 0;
  let milliseconds = 0;
  let cpuSeconds = 0;
  let epochImages = 0;
  for (let epoch = 0; epoch < given.epochs || milliseconds < LEAST_MS; epoch++) {
    const cpuBefore = treeCpuSeconds(process.pid);
    const epochStarted = performance.now();
    let last = epochStarted;
    epochImages = 0;
    for await (const batch of startEpoch()) {
      touch(batch);
      const now = performance.now();
      firstBatchMs ??= now - started;
      if (epoch > 0 && epochImages > 0) waits.push(now - last);
      last = now;
      epochImages += batch.size;
    }
    if (epoch === 0) {
      process.stderr.write(`${WARM}\n`);
      continue;
    }
    images += epochImages;
    milliseconds += performance.now() - epochStarted;
    cpuSeconds += treeCpuSeconds(process.pid) - cpuBefore;
  }
  const result = {
    name,
    version,
    imagesPerSecond: round((images / milliseconds) * 1000),
    cpuSecondsPer1000: Math.round((cpuSeconds / images) * 100_000) / 100,
    batchWaitP50Ms: round(percentile(waits, 0.5)),
    batchWaitP99Ms: round(percentile(waits, 0.99)),
    firstBatchMs: round(firstBatchMs),
    imagesPerEpoch: epochImages,
    notes: notes(),
  };
  await close();
  rate('images/s', result.imagesPerSecond);
  console.log(JSON.stringify(result));
}

/** The only work of the consumer with a batch. */
function touch({ images }) {
  if (!Number.isFinite(images[0])) throw new TypeError('a batch has no pixels');
}

function round(value) {
  return Math.round(value * 10) / 10;
}
