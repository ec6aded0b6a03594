/**
 * Measures the cost of transforms.
 *
 *   node bench/transforms.mjs [--photos FOLDER] [--count 2048] [--rounds 3] [--workers 2] [--batch 64]
 *
 * First each step alone: microseconds at 224 x 224 pixels, the fastest of many runs. Then the classical list (Resize 256,
 * CenterCrop 224, RandomHorizontalFlip, RandomRotation 15, GaussianBlur 5, to float, Normalize), from JPEG files to batches:
 * shardtool, and PyTorch's DataLoader with torchvision v2 on Pillow images and on tensors, in turns, with the same workers.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { Scratch } from '#reader/codec/scratch';
import { allocatePicture, runEffects } from '#reader/decode/run-effects';
import { EffectKernels } from '#reader/kernels/effects';
import { rotationOf } from '#reader/transform/rotation';
import { preparePhotos, prepareShards } from './peers/data.mjs';
import { prepareEnvironment, reasonOf } from './peers/environments.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(here, '.cache');
const log = (line) => process.stderr.write(`${line}\n`);
const SIDE = 224;
const ROUNDS = 400;

const CLASSICAL = [
  { name: 'resize', size: 256 },
  { name: 'centerCrop', size: SIDE },
  { name: 'randomHorizontalFlip' },
  { name: 'randomRotation', degrees: 15 },
  { name: 'gaussianBlur', kernelSize: 5 },
  { name: 'toDtype', dtype: 'float32', scale: true },
  { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
];

const { values: flags } = parseArgs({
  options: {
    photos: { type: 'string' },
    count: { type: 'string', default: '2048' },
    rounds: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    batch: { type: 'string', default: '64' },
  },
});

printSteps();
await printList();

/** The cost of each step on decoded pixels. */
function printSteps() {
  const memory = new WebAssembly.Memory({ initial: 256, maximum: 256, shared: true });
  const scratch = new Scratch(memory, { offset: 65_536, bytes: 255 * 65_536 });
  const tools = { effects: new EffectKernels(memory), scratch };
  const size = { width: SIDE, height: SIDE };
  const rotation = { kind: 'rotate', matrix: rotationOf(11, [0, 0]), size, fill: [0, 0, 0], maskFill: 0 };
  const steps = {
    'randomRotation, nearest': { ...rotation, interpolation: 'nearest' },
    'randomRotation, bilinear': { ...rotation, interpolation: 'bilinear' },
    'gaussianBlur 3': { kind: 'blur', kernel: [3, 3], sigma: 1 },
    'gaussianBlur 5': { kind: 'blur', kernel: [5, 5], sigma: 1 },
    'gaussianBlur 23': { kind: 'blur', kernel: [23, 23], sigma: 2 },
    'colorJitter, brightness': { kind: 'brightness', factor: 1.2 },
    'colorJitter, contrast': { kind: 'contrast', factor: 1.2 },
    'colorJitter, saturation': { kind: 'saturation', factor: 1.2 },
    'colorJitter, hue': { kind: 'hue', turn: 0.05 },
    grayscale: { kind: 'saturation', factor: 0 },
    randomErasing: { kind: 'erase', rect: { x: 50, y: 60, width: 80, height: 80 }, value: [1, 2, 3] },
  };
  console.log(`Microseconds at ${SIDE}x${SIDE}\n`);
  console.log('| step | microseconds |\n|---|---|');
  for (const [name, effect] of Object.entries(steps)) {
    let fastest = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round++) {
      scratch.reset();
      const picture = allocatePicture(scratch, size);
      if (round === 0) for (let i = 0; i < SIDE * SIDE * 3; i++) scratch.memory[picture.address + i] = (i * 37) & 255;
      const start = performance.now();
      runEffects(picture, [effect], tools);
      fastest = Math.min(fastest, (performance.now() - start) * 1000);
    }
    console.log(`| ${name} | ${fastest.toFixed(0)} |`);
  }
}

async function printList() {
  const photos = await preparePhotos({ photos: flags.photos, count: Number(flags.count), cache, log });
  const shards = prepareShards(photos, Number(flags.workers), log);
  const { python, missing } = prepareEnvironment('torch', cache, log);
  if (shards.missing ?? missing) throw new Error(shards.missing ?? missing);
  const contestants = {
    shardtool: () => shardtoolRate(shards.path),
    'torchvision v2, Pillow': () => torchvisionRate(python, photos.folder, 'pillow'),
    'torchvision v2, tensors': () => torchvisionRate(python, photos.folder, 'tensor'),
  };
  const rates = new Map(Object.keys(contestants).map((name) => [name, []]));
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const [name, run] of Object.entries(contestants)) {
      const rate = await run();
      rates.get(name).push(rate);
      log(`round ${round + 1}: ${name} ${rate.toFixed(0)}`);
    }
  }
  const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
  const own = median(rates.get('shardtool'));
  console.log(`\nThe classical list, ${flags.workers} workers, images per second (median of ${flags.rounds})\n`);
  console.log('| | images/s | rate of shardtool divided by this |\n|---|---|---|');
  for (const [name, list] of rates) {
    console.log(`| ${name} | ${median(list).toFixed(0)} | ${(own / median(list)).toFixed(1)} |`);
  }
}

/** Images per second of the second epoch. The first one warms up. */
async function shardtoolRate(location) {
  const dataset = await openDataset(location);
  const loader = dataset.loader({
    reuse: true,
    transform: CLASSICAL,
    batchSize: Number(flags.batch),
    workers: Number(flags.workers),
    checksum: 'always',
  });
  let rate = 0;
  for (let epoch = 0; epoch < 2; epoch++) {
    const start = performance.now();
    let images = 0;
    for await (const batch of loader) images += batch.size;
    rate = (images / (performance.now() - start)) * 1000;
  }
  await loader.close();
  await dataset.close();
  return rate;
}

function torchvisionRate(python, folder, variant) {
  const script = path.join(here, 'transforms_torchvision.py');
  const args = [script, folder, variant, flags.workers, flags.batch];
  const { status, stdout, stderr } = spawnSync(python, args, { encoding: 'utf8', timeout: 20 * 60_000 });
  if (status !== 0) throw new Error(`torchvision with ${variant} failed: ${reasonOf(stderr)}`);
  return Number(stdout.trim().split('\n').at(-1));
}
