/**
 * Compares shardtool with PyTorch's DataLoader and torchvision v2 on tensors, in turns and with the same number of workers:
 * torchvision's large-scale jitter preset for detection (ScaleJitter, RandomCrop with padding, RandomHorizontalFlip, to float),
 * from JPEG files and COCO's annotations to batches of floats and boxes.
 *
 *   node bench/detection.mjs --python PYTHON [--width 640] [--height 480] [--count 256] [--side 1024] [--rounds 3] [--workers 2]
 *                            [--batch 8]
 *
 * PYTHON has torch, torchvision 0.22 or newer, numpy and Pillow.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: flags } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    width: { type: 'string', default: '640' },
    height: { type: 'string', default: '480' },
    count: { type: 'string', default: '256' },
    side: { type: 'string', default: '1024' },
    rounds: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    batch: { type: 'string', default: '8' },
  },
});
const { width, height, count, workers, batch } = flags;
const side = Number(flags.side);
const folder = path.join(here, '.cache', `detection-${width}x${height}-${count}`);

function python(...args) {
  const given = [path.join(here, 'detection_torchvision.py'), ...args];
  const { status, stdout, stderr } = spawnSync(flags.python, given, { encoding: 'utf8', timeout: 20 * 60_000 });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

async function ownRate(shards) {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({
    reuse: true,
    transform: [
      { name: 'scaleJitter', targetSize: side },
      { name: 'randomCrop', size: side, padIfNeeded: true },
      { name: 'randomHorizontalFlip' },
      { name: 'sanitizeBoundingBoxes' },
      { name: 'toDtype', dtype: 'float32', scale: true },
    ],
    annotations: { boxes: { field: 'json', path: 'boxes' }, labels: { field: 'json', path: 'labels' } },
    batchSize: Number(batch),
    workers: Number(workers),
    checksum: 'always',
  });
  let rate = 0;
  for (let epoch = 0; epoch < 2; epoch++) {
    const start = performance.now();
    let images = 0;
    for await (const { size } of loader) images += size;
    rate = (images / (performance.now() - start)) * 1000;
  }
  await loader.close();
  await dataset.close();
  return rate;
}

if (!existsSync(path.join(folder, 'annotations.json'))) python('make', folder, width, height, count);
const shards = path.join(folder, 'shards');
await pack(path.join(folder, 'images'), shards, { coco: path.join(folder, 'annotations.json'), overwrite: true });
const ratios = [];
const rates = { own: [], torchvision: [] };
for (let round = 0; round < Number(flags.rounds); round++) {
  const own = await ownRate(shards);
  const other = Number(python('rate', folder, flags.side, workers, batch));
  rates.own.push(own);
  rates.torchvision.push(other);
  ratios.push(own / other);
  process.stderr.write(`round ${round + 1}: shardtool ${own.toFixed(1)}, torchvision ${other.toFixed(1)}\n`);
}
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
console.log(
  `${width}x${height} to ${side}x${side}, ${workers} workers: shardtool ${median(rates.own).toFixed(0)} images/s, torchvision v2 ` +
    `${median(rates.torchvision).toFixed(0)}; ${median(ratios).toFixed(2)} times (${ratios.map((r) => r.toFixed(2)).join(', ')})`,
);
