/**
 * Microseconds per image of the resize kernel alone: random crops (area 0.08 to 1, aspect 3/4 to 4/3, half of them flipped)
 * of photos of WIDTH x HEIGHT, for each output layout and size.
 *
 *     node bench/kernel.mjs [WIDTH HEIGHT]
 *
 * Each crop runs many times, layouts in turn. Its fastest run counts, since other work on the machine can only add time.
 * The pixels are arbitrary: the time does not depend on them.
 */

import { ResizeKernel, scratchBytes } from '#reader/kernels/resize';
import { cost } from './figures.mjs';

const width = Number(process.argv[2] ?? 500);
const height = Number(process.argv[3] ?? 375);
const layouts = ['uint8-nhwc', 'uint8-nchw', 'float32-nchw'];
const sizes = [28, 200, 224, 256, 299, 512];
const crops = randomCrops(24);
const rounds = 60;
const normalization = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

console.log(`random crops of ${width}x${height}: microseconds per image`);
console.log(['output', ...layouts].map((text) => text.padEnd(14)).join(''));
for (const size of sizes) {
  const times = timesOf(size);
  for (const [i, us] of times.entries()) cost(`${size}x${size}, ${layouts[i]}, microseconds`, us);
  const cells = times.map((us) => us.toFixed(1));
  console.log([`${size}x${size}`, ...cells].map((text) => text.padEnd(14)).join(''));
}

/** The mean of the fastest runs of all crops, for each layout. */
function timesOf(size) {
  const scratch = {
    offset: 64,
    bytes: scratchBytes({ sourceColumns: width, sourceRows: height, width: size, height: size }),
  };
  const stride = (width * 3 + 31) & ~31;
  const target = scratch.offset + scratch.bytes;
  // 16 bytes past a multiple of 32, as decoded images are in memory.
  const source = Math.ceil((target + size * size * 12) / 32) * 32 + 16;
  const pages = Math.ceil((source + stride * height + 65536) / 65536);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const kernel = new ResizeKernel(memory, scratch);
  const runs = layouts.map((layout) =>
    crops.map((crop) => {
      const x = { source: crop.width, output: size, first: 0, count: size, flip: crop.flip };
      const y = { source: crop.height, output: size, first: 0, count: size, flip: false };
      return () => kernel.resize({ source, stride, x, y, layout, normalization, target });
    }),
  );
  const fastest = layouts.map(() => crops.map(() => Number.POSITIVE_INFINITY));
  for (let round = 0; round < rounds; round++) {
    for (let crop = 0; crop < crops.length; crop++) {
      for (let layout = 0; layout < layouts.length; layout++) {
        const start = performance.now();
        runs[layout][crop]();
        fastest[layout][crop] = Math.min(fastest[layout][crop], (performance.now() - start) * 1000);
      }
    }
  }
  return fastest.map((times) => times.reduce((sum, us) => sum + us) / times.length);
}

function randomCrops(count) {
  const random = uniform(1);
  const result = [];
  while (result.length < count) {
    const area = width * height * (0.08 + 0.92 * random());
    const aspect = (3 / 4) ** (1 - 2 * random());
    const crop = { width: Math.round(Math.sqrt(area * aspect)), height: Math.round(Math.sqrt(area / aspect)) };
    if (crop.width <= width && crop.height <= height) result.push({ ...crop, flip: random() < 0.5 });
  }
  return result;
}

/** Numbers from 0 up to 1 (Park and Miller, "Random number generators: good ones are hard to find", 1988). */
function uniform(seed) {
  let state = seed;
  return () => {
    state = (state * 48271) % 2147483647;
    return state / 2147483647;
  };
}
