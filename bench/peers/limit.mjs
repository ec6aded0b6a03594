/**
 * The limit: libjpeg-turbo's region decode alone, on photos in memory, in as many threads as the other contestants have
 * workers. Each image is decoded from the block column left of its random crop to the crop's right edge. Nothing is
 * resized, and no pixel is kept.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { isMainThread, threadId, Worker, workerData } from 'node:worker_threads';
import { listPhotos } from '../make-photos.mjs';
import { measure, parseArguments } from './measure.mjs';

const require = createRequire(new URL('../../packages/reader/package.json', import.meta.url));

const SCALE = [0.08, 1];
const RATIO = [3 / 4, 4 / 3];
/** Words of the shared control block. After them, there is a counter of decoded images for each batch. */
const ISSUED = 0;
const TAKEN = 1;
const DONE = 16;

/** TurboJPEG 3 (turbojpeg.h): TJINIT, TJPARAM and TJPF values, and block widths by TJSAMP. */
const TJINIT_DECOMPRESS = 1;
const TJPARAM_SUBSAMP = 4;
const TJPARAM_JPEGWIDTH = 5;
const TJPARAM_JPEGHEIGHT = 6;
const TJPF_RGB = 0;
const BLOCK_WIDTH = [8, 16, 16, 8, 8, 32, 8];

if (isMainThread) {
  const given = parseArguments();
  await measure({
    name: 'limit: region decode alone',
    version: `libjpeg-turbo of @julusian/jpeg-turbo ${require('@julusian/jpeg-turbo/package.json').version}`,
    build: ({ photos, batch, workers }) => startWorkers(readPhotos(photos), batch, workers),
    given,
    notes: () => 'no reading, no resize, no batch',
  });
} else {
  decodeForever(workerData);
}

/** All photos in one block of shared memory: { bytes, offsets }, photo i from offsets[i] to offsets[i + 1]. */
function readPhotos(folder) {
  const files = listPhotos(folder);
  const offsets = new Float64Array(new SharedArrayBuffer(8 * (files.length + 1)));
  files.forEach((file, i) => {
    offsets[i + 1] = offsets[i] + fs.statSync(file).size;
  });
  const bytes = new Uint8Array(new SharedArrayBuffer(offsets[files.length]));
  files.forEach((file, i) => {
    bytes.set(fs.readFileSync(file), offsets[i]);
  });
  return { bytes, offsets };
}

function startWorkers({ bytes, offsets }, batch, workers) {
  const batches = Math.floor((offsets.length - 1) / batch);
  const control = new Int32Array(new SharedArrayBuffer(4 * (DONE + batches)));
  const threads = Array.from(
    { length: workers },
    () =>
      new Worker(new URL(import.meta.url), { workerData: { bytes, offsets, control, batch, images: batches * batch } }),
  );
  async function* startEpoch() {
    control.fill(0, DONE);
    Atomics.store(control, TAKEN, 0);
    Atomics.store(control, ISSUED, batches * batch);
    Atomics.notify(control, ISSUED);
    for (let b = 0; b < batches; b++) {
      for (;;) {
        const done = Atomics.load(control, DONE + b);
        if (done === batch) break;
        const wait = Atomics.waitAsync(control, DONE + b, done);
        if (wait.async) await wait.value;
      }
      yield { size: batch, images: bytes };
    }
    Atomics.store(control, ISSUED, 0);
  }
  return { startEpoch, close: () => Promise.all(threads.map((thread) => thread.terminate())) };
}

/** A worker takes the next image of the epoch, decodes its region into scratch memory, and counts it. */
function decodeForever({ bytes, offsets, control, batch, images }) {
  const decode = openDecoder(bytes);
  const random = randomNumbers(threadId);
  for (;;) {
    if (Atomics.load(control, ISSUED) === 0) Atomics.wait(control, ISSUED, 0);
    const image = Atomics.add(control, TAKEN, 1);
    if (image >= images) {
      Atomics.wait(control, ISSUED, images, 1);
      continue;
    }
    decode(offsets[image], offsets[image + 1], random);
    const word = DONE + Math.floor(image / batch);
    if (Atomics.add(control, word, 1) === batch - 1) Atomics.notify(control, word);
  }
}

function openDecoder(bytes) {
  const koffi = require('koffi');
  const folder = path.dirname(require.resolve('@julusian/jpeg-turbo/package.json'));
  const library = koffi.load(path.join(folder, `prebuilds/jpeg-turbo-linux-${process.arch}/libturbojpeg.so.0`));
  const region = koffi.struct({ x: 'int', y: 'int', w: 'int', h: 'int' });
  const init = library.func('tj3Init', 'void *', ['int']);
  const header = library.func('tj3DecompressHeader', 'int', ['void *', 'const uint8_t *', 'size_t']);
  const get = library.func('tj3Get', 'int', ['void *', 'int']);
  const crop = library.func('tj3SetCroppingRegion', 'int', ['void *', region]);
  const decompress = library.func('tj3Decompress8', 'int', [
    'void *',
    'const uint8_t *',
    'size_t',
    'uint8_t *',
    'int',
    'int',
  ]);
  const message = library.func('tj3GetErrorStr', 'const char *', ['void *']);
  const handle = init(TJINIT_DECOMPRESS);
  const check = (result) => {
    if (result < 0) throw new Error(message(handle));
  };
  const target = targetBuffer(64 * 2 ** 20, koffi);

  return (start, end, random) => {
    const jpeg = bytes.subarray(start, end);
    check(crop(handle, { x: 0, y: 0, w: 0, h: 0 }));
    check(header(handle, jpeg, jpeg.length));
    const width = get(handle, TJPARAM_JPEGWIDTH);
    const height = get(handle, TJPARAM_JPEGHEIGHT);
    const { x, y, w, h } = randomCrop(width, height, random);
    const left = x - (x % BLOCK_WIDTH[get(handle, TJPARAM_SUBSAMP)]);
    check(crop(handle, { x: left, y, w: x + w - left, h }));
    const stride = ((x + w - left) * 3 + 31) & ~31;
    check(decompress(handle, jpeg, jpeg.length, target, stride, TJPF_RGB));
  };
}

/** Memory at an address that is 16 modulo 32, where the decode is fastest: its stores then go through the cache. */
function targetBuffer(length, koffi) {
  const memory = new Uint8Array(new SharedArrayBuffer(length + 64));
  const remainder = Number(koffi.address(memory) % 32n);
  const offset = (16 - remainder + 32) % 32;
  return memory.subarray(offset, offset + length);
}

/** torchvision's RandomResizedCrop.get_params: ten tries, then the largest centred crop of an allowed shape. */
function randomCrop(width, height, random) {
  for (let attempt = 0; attempt < 10; attempt++) {
    const area = width * height * (SCALE[0] + (SCALE[1] - SCALE[0]) * random());
    const ratio = Math.exp(Math.log(RATIO[0]) + (Math.log(RATIO[1]) - Math.log(RATIO[0])) * random());
    const w = Math.round(Math.sqrt(area * ratio));
    const h = Math.round(Math.sqrt(area / ratio));
    if (w > width || h > height) continue;
    return { x: Math.floor(random() * (width - w + 1)), y: Math.floor(random() * (height - h + 1)), w, h };
  }
  const w = Math.min(width, Math.round(height * RATIO[1]));
  const h = Math.min(height, Math.round(width / RATIO[0]));
  return { x: (width - w) >> 1, y: (height - h) >> 1, w, h };
}

/** Numbers in [0, 1): xorshift32. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
}
