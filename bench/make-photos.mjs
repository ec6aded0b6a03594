/**
 * Makes the photos that the benchmarks read: JPEGs of 500x375 (375x500 from an upright source), about 50 KB each on
 * average, in class folders, from examples/photos. Every photo is another crop, flip and brightness, so no two are equal;
 * the same arguments give the same bytes.
 *
 *   node bench/make-photos.mjs [--count 6000] [--out FOLDER] [--copies] [--size 1024x768]
 *
 * A larger `--size` tiles such photos, since an enlarged photo has no fine detail. So the number of bytes per pixel is that
 * of the small photos.
 * `--copies` is quick and for benchmarks that do not decode: it makes 600 photos, and the rest are copies that differ in a
 * comment segment. The last line on stdout is the folder's path. A finished folder is used again.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = path.dirname(fileURLToPath(import.meta.url));
const sharp = createRequire(new URL('../packages/writer/package.json', import.meta.url))('sharp');

const SOURCES = path.join(here, '../examples/photos');
const MEAN_BYTES = 50_000;
const SIZE = { width: 500, height: 375 };
/** Distinct photos behind `--copies`. */
const DISTINCT_WITH_COPIES = 600;
/** Number of photos encoded at each quality during the search for the quality that results in MEAN_BYTES. */
const PILOT = 60;

/** { width, height } of "1024x768". */
export function sizeOf(text) {
  const sides = /^(\d+)x(\d+)$/.exec(text);
  if (sides === null) throw new Error(`--size must be WIDTHxHEIGHT, not ${text}`);
  const size = { width: Number(sides[1]), height: Number(sides[2]) };
  return size.width === SIZE.width && size.height === SIZE.height ? SIZE : size;
}

/** Numbers in [0, 1) that depend on `seed` alone: SplitMix32. */
export function randomNumbers(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 0x1_0000_0000;
  };
}

/** Paths of all files in the class folders, in an order that does not depend on the file system. */
export function listPhotos(folder) {
  const classes = fs.readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const names = classes.map(({ name }) => name).sort();
  return names.flatMap((name) =>
    fs
      .readdirSync(path.join(folder, name))
      .sort()
      .map((file) => path.join(folder, name, file)),
  );
}

/** The decoded example photos: [{ folder, pixels, raw }]. */
async function readSources() {
  const sources = [];
  for (const file of listPhotos(SOURCES)) {
    const decoder = sharp(file).toColourspace('srgb').removeAlpha().raw();
    const { data, info } = await decoder.toBuffer({ resolveWithObject: true });
    const raw = { width: info.width, height: info.height, channels: info.channels };
    sources.push({ folder: path.basename(path.dirname(file)), pixels: data, raw });
  }
  return sources;
}

/** The crop, flip and brightness of photo `number`, made from a source of `width` x `height`. */
function planPhoto(number, width, height) {
  const random = randomNumbers(number);
  const target = height > width ? upright(SIZE) : SIZE;
  const fit = Math.min(width / target.width, height / target.height);
  const scale = fit * (0.75 + 0.25 * random());
  const crop = { width: Math.floor(target.width * scale), height: Math.floor(target.height * scale) };
  return {
    target,
    crop: {
      ...crop,
      left: Math.floor(random() * (width - crop.width + 1)),
      top: Math.floor(random() * (height - crop.height + 1)),
    },
    mirrored: random() < 0.5,
    brightness: 0.8 + 0.4 * random(),
  };
}

function upright({ width, height }) {
  return { width: height, height: width };
}

function drawPhoto(sources, number) {
  const { pixels, raw } = sources[number % sources.length];
  const plan = planPhoto(number, raw.width, raw.height);
  const image = sharp(pixels, { raw })
    .extract(plan.crop)
    .resize(plan.target.width, plan.target.height, { fit: 'fill' })
    .linear(plan.brightness, 0);
  return plan.mirrored ? image.flop() : image;
}

/** A larger photo, tiled from photos of SIZE and of SIZE upright with different sources. */
async function drawLargePhoto(sources, number, { width, height }) {
  const tile = height > width ? upright(SIZE) : SIZE;
  const columns = Math.ceil(width / tile.width);
  const rows = Math.ceil(height / tile.height);
  const tiles = [];
  for (let k = 0; k < columns * rows; k++) {
    const { data } = await drawPhoto(sources, number * columns * rows + k)
      .resize(tile.width, tile.height, { fit: 'cover' })
      .raw({ depth: 'uchar' })
      .toBuffer({ resolveWithObject: true });
    tiles.push({
      input: data,
      raw: { ...tile, channels: 3 },
      left: (k % columns) * tile.width,
      top: Math.floor(k / columns) * tile.height,
    });
  }
  const sheet = { width: columns * tile.width, height: rows * tile.height };
  const { data } = await sharp({ create: { ...sheet, channels: 3, background: 'black' } })
    .composite(tiles)
    .removeAlpha()
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  return sharp(data, { raw: { ...sheet, channels: 3 } }).extract({ left: 0, top: 0, width, height });
}

/** Bytes of photo `number` at `quality`. */
async function encodePhoto(sources, number, quality, size) {
  const image = size === SIZE ? drawPhoto(sources, number) : await drawLargePhoto(sources, number, size);
  return image.jpeg({ quality, chromaSubsampling: '4:2:0' }).toBuffer();
}

/** The quality whose mean over the first PILOT photos of SIZE is nearest to MEAN_BYTES. */
async function findQuality(sources) {
  const meanAt = async (quality) => {
    let total = 0;
    for (let number = 0; number < PILOT; number++) total += (await encodePhoto(sources, number, quality, SIZE)).length;
    return total / PILOT;
  };
  let low = 50;
  let high = 100;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((await meanAt(middle)) < MEAN_BYTES) low = middle;
    else high = middle;
  }
  return MEAN_BYTES - (await meanAt(low)) < (await meanAt(high)) - MEAN_BYTES ? low : high;
}

/** `jpeg` with a comment segment (T.81, B.2.4.5) after its start marker: other bytes, the same pixels. */
function withComment(jpeg, text) {
  const segment = Buffer.alloc(4 + text.length);
  segment.writeUInt16BE(0xfffe, 0);
  segment.writeUInt16BE(2 + text.length, 2);
  segment.write(text, 4, 'latin1');
  return Buffer.concat([jpeg.subarray(0, 2), segment, jpeg.subarray(2)]);
}

/** The file next to a folder of photos that marks it as finished, and records what it contains. */
function recordOf(out) {
  return path.join(out, '..', `${path.basename(out)}.json`);
}

/** Removes the record first, so that an interrupted run leaves no folder that looks finished. */
export function removePhotos(out) {
  fs.rmSync(recordOf(out), { force: true });
  fs.rmSync(out, { recursive: true, force: true });
}

/**
 * Fills `out` with `count` photos, unless it has them already. Returns { count, bytes, quality }; the mean size is
 * `bytes / count`.
 */
export async function makePhotos({ count, out, copies = false, size = SIZE, log = () => {} }) {
  const recordPath = recordOf(out);
  if (fs.existsSync(recordPath) && fs.existsSync(out)) {
    const record = JSON.parse(fs.readFileSync(recordPath, 'utf8'));
    const { width = SIZE.width, height = SIZE.height } = record;
    const isSame = record.count === count && record.copies === copies;
    if (isSame && width === size.width && height === size.height && listPhotos(out).length === count) return record;
  }
  removePhotos(out);
  sharp.concurrency(1);
  const sources = await readSources();
  const folderOf = (number) => path.join(out, sources[number % sources.length].folder);
  for (const { folder } of sources) fs.mkdirSync(path.join(out, folder), { recursive: true });

  const quality = await findQuality(sources);
  const distinct = copies ? Math.min(count, DISTINCT_WITH_COPIES) : count;
  const originals = [];
  let bytes = 0;
  const write = (number, jpeg) => {
    fs.writeFileSync(path.join(folderOf(number), `${String(number).padStart(6, '0')}.jpg`), jpeg);
    bytes += jpeg.length;
  };
  let next = 0;
  const encodeRest = async () => {
    while (next < distinct) {
      const number = next++;
      const jpeg = await encodePhoto(sources, number, quality, size);
      write(number, jpeg);
      if (copies) originals[number] = jpeg;
      if (next % 1000 === 0) log(`${next} of ${count} photos`);
    }
  };
  await Promise.all(Array.from({ length: os.availableParallelism() }, encodeRest));
  for (let number = distinct; number < count; number++) {
    write(number, withComment(originals[number % distinct], `copy ${number}`));
  }
  const record = { count, copies, bytes, quality, ...(size !== SIZE && size) };
  fs.writeFileSync(recordPath, `${JSON.stringify(record)}\n`);
  return record;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      count: { type: 'string' },
      out: { type: 'string' },
      size: { type: 'string' },
      copies: { type: 'boolean', default: false },
    },
  });
  const size = values.size === undefined ? SIZE : sizeOf(values.size);
  const count = Number(values.count ?? (values.copies ? 30_000 : 6_000));
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`--count must be a whole number above 0, not ${values.count}`);
  const out = path.resolve(
    values.out ??
      path.join(
        here,
        '.cache',
        `${values.copies ? 'copies' : 'photos'}-${values.size ? `${values.size}-` : ''}${count}`,
      ),
  );
  const record = await makePhotos({
    count,
    out,
    copies: values.copies,
    size,
    log: (line) => process.stderr.write(`${line}\n`),
  });
  process.stderr.write(`${record.count} photos, ${Math.round(record.bytes / record.count)} bytes on average\n`);
  console.log(out);
}
