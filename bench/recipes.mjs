/**
 * Published recipes, from JPEG files to batches: shardtool, and PyTorch's DataLoader with the transforms of timm, open_clip or
 * torchvision v2, or with YOLO's mosaic and mixup in NumPy and OpenCV, in turns, with the same number of workers.
 *
 *   node bench/recipes.mjs --python PYTHON [--photos FOLDER] [--count 512] [--rounds 3] [--workers 2] [--batch 64] [--only NAME]
 *                          [--profile FOLDER]
 *
 * PYTHON has torch, torchvision 0.22 or newer, timm, open_clip_torch, opencv-python-headless and Pillow. The recipes run on
 * images of Pillow, as published. torchvision's recipes are first tried on uint8 tensors of torchvision.io, which are used if
 * they are faster.
 * Prints the median rate of both and the median of the ratio per round. `--profile FOLDER` only runs shardtool, with one decode
 * worker, and prints which functions take the time of each recipe.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { preparePhotos, prepareShards } from './peers/data.mjs';
import { reasonOf } from './peers/environments.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const cache = path.join(here, '.cache');
const log = (line) => process.stderr.write(`${line}\n`);

/** YOLO's training recipe. As in Ultralytics' trainer, batches are bytes, which the GPU converts to floats. */
const YOLO = {
  transform: [
    { name: 'scaleJitter', targetSize: 640, scaleRange: [0.5, 1.5] },
    { name: 'randomCrop', size: 640, padIfNeeded: true, fill: 114 },
    { name: 'hsvJitter' },
    { name: 'randomHorizontalFlip' },
    { name: 'layout', layout: 'nchw' },
  ],
  annotations: { boxes: { field: 'json', path: 'boxes' }, labels: { field: 'json', path: 'labels' } },
  mix: {
    name: 'sequence',
    mixes: [{ name: 'mosaic' }, { name: 'timmMixup', mixupAlpha: 32, prob: 0.15, mode: 'elem' }],
  },
};

/** Recipes by their name in recipes_torch.py. */
const RECIPES = {
  'timm A1': { transform: 'timm/resnet50-a1' },
  'DeiT III': { transform: 'deit3' },
  open_clip: { transform: 'open_clip' },
  TrivialAugmentWide: { transform: 'torchvision/resnet50-v2' },
  'SimCLR, 2 views': { views: { view: { count: 2, transform: 'simclr' } } },
  'DINOv2, 2 + 8 views': { views: 'dinov2' },
  'YOLO, mosaic and mixup': YOLO,
};

const OF_TORCHVISION = ['TrivialAugmentWide', 'SimCLR, 2 views', 'DINOv2, 2 + 8 views'];

const { values: flags } = parseArgs({
  options: {
    python: { type: 'string', default: 'python3' },
    photos: { type: 'string' },
    count: { type: 'string', default: '512' },
    rounds: { type: 'string', default: '3' },
    workers: { type: 'string', default: '2' },
    batch: { type: 'string', default: '64' },
    only: { type: 'string' },
    profile: { type: 'string' },
    run: { type: 'string' },
  },
});
const recipes = Object.entries(RECIPES).filter(([name]) => flags.only === undefined || name === flags.only);
const photos = await preparePhotos({ photos: flags.photos, count: Number(flags.count), cache, log });
const shards = prepareShards(photos, Number(flags.workers), log);
if (shards.missing) throw new Error(shards.missing);

if (flags.run !== undefined) await ownRate(RECIPES[flags.run], 2);
else if (flags.profile !== undefined) for (const [name] of recipes) printProfile(name, path.resolve(flags.profile));
else await compare();

async function compare() {
  const rows = recipes.map(([name, options]) => rowOf(name, () => ownRate(options)));
  for (let round = 1; round <= Number(flags.rounds); round++) {
    for (const row of rows) {
      const own = await row.rate();
      row.backend ??= fasterBackend(row.name);
      const other = torchRate(photos.folder, row.name, row.backend);
      row.own.push(own);
      row.other.push(other);
      row.ratio.push(own / other);
      log(
        `round ${round}, ${row.name}, ${row.backend}: ${own.toFixed(0)} and ${other.toFixed(0)}, ${(own / other).toFixed(2)} times`,
      );
    }
  }
  console.log(`${flags.workers} workers, ${photos.count} photos, medians of ${flags.rounds} rounds\n`);
  console.log('| recipe | shardtool, images/s | the original, images/s | times |\n|---|---:|---:|---:|');
  for (const { name, own, other, ratio } of rows) {
    console.log(`| ${name} | ${median(own).toFixed(0)} | ${median(other).toFixed(0)} | ${median(ratio).toFixed(1)} |`);
  }
}

function rowOf(name, rate) {
  return { name, rate, backend: undefined, own: [], other: [], ratio: [] };
}

/** `pillow` for images of Pillow, or `tensor` for uint8 tensors if torchvision's steps are faster on them. */
function fasterBackend(name) {
  if (RECIPES[name] === YOLO) return 'opencv';
  if (!OF_TORCHVISION.includes(name)) return 'pillow';
  const [pillow, tensor] = ['pillow', 'tensor'].map((backend) => torchRate(photos.folder, name, backend));
  log(`${name}: ${pillow.toFixed(0)} on Pillow, ${tensor.toFixed(0)} on tensors`);
  return pillow > tensor ? 'pillow' : 'tensor';
}

/** Images per second of the last epoch. The earlier epochs warm up. */
async function ownRate(recipe, epochs = 2) {
  const dataset = await openDataset(recipe.annotations === undefined ? shards.path : await detectionShards());
  const { batch: batchSize, workers } = flags;
  const options = { reuse: true, batchSize: Number(batchSize), workers: Number(workers), checksum: 'always' };
  const loader = dataset.loader({ ...options, ...recipe });
  let rate = 0;
  for (let epoch = 0; epoch < epochs; epoch++) {
    const start = performance.now();
    let images = 0;
    for await (const batch of loader) images += batch.size;
    rate = (images / (performance.now() - start)) * 1000;
  }
  await loader.close();
  await dataset.close();
  return rate;
}

/** The same photos with seven boxes each. */
async function detectionShards() {
  const out = path.join(photos.derived, 'detection-shards');
  const annotations = path.join(photos.derived, 'boxes.json');
  if (!existsSync(annotations)) runPython('boxes', photos.folder, annotations);
  await pack(photos.folder, out, { coco: annotations, maxShardSamples: Math.ceil(photos.count / 12) });
  return out;
}

function runPython(...args) {
  const { status, stdout, stderr } = spawnSync(flags.python, [path.join(here, 'recipes_torch.py'), ...args], {
    encoding: 'utf8',
    timeout: 20 * 60_000,
  });
  if (status !== 0) throw new Error(`${args.join(' ')} failed in Python: ${reasonOf(stderr)}`);
  return stdout;
}

function torchRate(folder, name, backend) {
  const boxes = path.join(photos.derived, 'boxes.json');
  const stdout = runPython('rate', folder, name, flags.workers, flags.batch, backend, boxes);
  return Number(stdout.trim().split('\n').at(-1));
}

/** Runs a recipe in a process with --cpu-prof, and prints the functions of the decode worker that took the most time. */
function printProfile(name, folder) {
  const into = path.join(folder, name.replace(/\W+/g, '-'));
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const own = [
    fileURLToPath(import.meta.url),
    '--python',
    flags.python,
    '--run',
    name,
    '--count',
    flags.count,
    '--workers',
    '1',
    '--batch',
    flags.batch,
  ];
  const photosFlag = flags.photos === undefined ? [] : ['--photos', flags.photos];
  const args = ['--cpu-prof', '--cpu-prof-dir', into, ...own, ...photosFlag];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${name} failed: ${reasonOf(stderr)}`);
  const profiles = readdirSync(into).map((file) => selfTimes(path.join(into, file)));
  // The decode worker is the thread that decodes.
  const decoder = profiles.toSorted((a, b) => decodeTime(b) - decodeTime(a))[0];
  const busy = [...decoder].filter(([key]) => !/^\((idle|program)\)/.test(key));
  const total = busy.reduce((sum, [, us]) => sum + us, 0);
  console.log(`\n${name}: ${(total / 1e6).toFixed(1)} s of CPU in the decode worker`);
  for (const [key, us] of busy.toSorted((a, b) => b[1] - a[1]).slice(0, 10)) {
    console.log(`  ${((100 * us) / total).toFixed(1).padStart(5)} %  ${key}`);
  }
}

function selfTimes(file) {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8'));
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const times = new Map();
  for (const [i, id] of samples.entries()) {
    const { functionName, url } = byId.get(id);
    const key = `${functionName || '(anonymous)'} ${path.basename(url)}`;
    times.set(key, (times.get(key) ?? 0) + timeDeltas[i]);
  }
  return times;
}

function decodeTime(times) {
  return [...times].filter(([key]) => /decompress|decode|wasm/i.test(key)).reduce((sum, [, us]) => sum + us, 0);
}

function median(list) {
  return list.toSorted((a, b) => a - b)[list.length >> 1];
}
