/** The data of the contestants: photos, shards packed from them, and the formats of other loaders. Made once, then kept. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { listPhotos, makePhotos, sizeOf } from '../make-photos.mjs';
import { reasonOf } from './environments.mjs';

const sharp = createRequire(new URL('../../packages/writer/package.json', import.meta.url))('sharp');
const here = path.dirname(fileURLToPath(import.meta.url));
const CLI = path.join(here, '../../packages/cli/lib/main.js');
/** Shards that each of webdataset's workers gets, the same number for all. */
const SHARDS_PER_WORKER = 6;
/** A program that takes longer to write its data has hung. */
const TIMEOUT_MS = 20 * 60_000;

/** The photos: { folder, count, bytes, pixels, derived }, with sums of bytes and pixels. `derived` is the folder for data made from them. */
export async function preparePhotos({ photos, count, size, cache, log }) {
  const name = size === undefined ? `photos-${count}` : `photos-${size}-${count}`;
  const folder = path.resolve(photos ?? path.join(cache, name));
  if (photos === undefined) await makePhotos({ count, out: folder, log, ...(size && { size: sizeOf(size) }) });
  const digest = createHash('sha256');
  let bytes = 0;
  let files = 0;
  for (const file of listPhotos(folder)) {
    const { size } = fs.statSync(file);
    digest.update(`${file} ${size}\n`);
    bytes += size;
    files++;
  }
  const derived = path.join(cache, 'derived', digest.digest('hex').slice(0, 16));
  fs.mkdirSync(derived, { recursive: true });
  return { folder, count: files, bytes, pixels: await pixelsOf(folder, derived), derived };
}

/** Sum of the pixels of all photos, from their headers. Cached next to the data made from the photos. */
async function pixelsOf(folder, derived) {
  const kept = path.join(derived, 'pixels.json');
  if (fs.existsSync(kept)) return JSON.parse(fs.readFileSync(kept, 'utf8'));
  let pixels = 0;
  for (const file of listPhotos(folder)) {
    const { width, height } = await sharp(file).metadata();
    pixels += width * height;
  }
  fs.writeFileSync(kept, JSON.stringify(pixels));
  return pixels;
}

/** { path } of the shards, or { missing: why }. `crops`: with crop indexes. */
export function prepareShards(photos, workers, log, crops = false) {
  const out = path.join(photos.derived, `${crops ? 'crop-' : ''}shards-${workers}`);
  const samples = Math.ceil(photos.count / (SHARDS_PER_WORKER * workers));
  return makeOnce(
    out,
    process.execPath,
    (target) => {
      const args = [CLI, 'pack', photos.folder, target, '--max-shard-samples', samples];
      return crops ? [...args, '--index', 'crops'] : args;
    },
    log,
  );
}

/**
 * The same photos uncompressed. Photos of 500 x 375 pixels are resized to 256 x 192, like FFCV's with a longer side of 256.
 * Both loaders then read the same number of pixels.
 */
export function prepareNpyShards(photos, workers, log) {
  const out = path.join(photos.derived, `npy-shards-${workers}`);
  const samples = Math.ceil(photos.count / (SHARDS_PER_WORKER * workers));
  const flags = ['--max-shard-samples', samples, '--resize', 192, '--image-format', 'npy'];
  return makeOnce(out, process.execPath, (target) => [CLI, 'pack', photos.folder, target, ...flags], log);
}

/** { path } of the photos in the format `contestant.reads`, written by the contestant's own script, or { missing: why }. */
export function prepareFormat(photos, contestant, python, log) {
  const script = path.join(here, contestant.script);
  const args = ['--prepare', '--photos', photos.folder, '--variant', contestant.variant ?? ''];
  const out = path.join(photos.derived, contestant.reads);
  return makeOnce(out, python, (target) => [script, ...args, '--prepared', target], log);
}

function makeOnce(out, program, argsFor, log) {
  if (fs.existsSync(out)) return { path: out };
  log(`writing ${out}`);
  const unfinished = `${out}.unfinished`;
  fs.rmSync(unfinished, { recursive: true, force: true });
  const args = argsFor(unfinished).map(String);
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 28, timeout: TIMEOUT_MS });
  if (status !== 0) return { missing: `${path.basename(out)} could not be written (${reasonOf(stderr)})` };
  fs.renameSync(unfinished, out);
  return { path: out };
}
