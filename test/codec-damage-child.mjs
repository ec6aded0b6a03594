// Decodes damaged JPEGs, numbers FIRST to FIRST + COUNT - 1, into a guarded row. It writes the number of each to the file
// PROGRESS before decoding it, so that the cause of a crash or a hang is known. At the end, it prints the results as a line of JSON.
import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { SampleDecodeError } from '@shardtool/base';
import { createDecoder } from '#reader/decode/decoder';
import { scratchBytesFor } from '#reader/decode/scratch-size';
import { compileTransform } from '#reader/transform/transform';

const [first, count, progress] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]];
const folder = new URL('./fixtures/codec/', import.meta.url);
const sound = readdirSync(folder)
  .filter((name) => name.endsWith('.jpg'))
  .map((name) => readFileSync(new URL(name, folder)));

const PAGE = 65_536;
const GUARD = Buffer.alloc(4096, 0xa5);
const transform = compileTransform([{ name: 'randomResizedCrop', size: [12, 17] }, { name: 'randomHorizontalFlip' }]);
const rowBytes = 12 * 17 * 3;
const scratch = { offset: PAGE, bytes: scratchBytesFor({ transform }, 4_000_000) };
const target = PAGE + scratch.bytes + PAGE;
const pages = Math.ceil(target / PAGE) + 2;
const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
const bytes = new Uint8Array(memory.buffer);
const guards = [PAGE - GUARD.length, PAGE + scratch.bytes, target - GUARD.length, target + rowBytes];
for (const guard of guards) bytes.set(GUARD, guard);

const decoder = await createDecoder({
  memory,
  scratch,
  transform,
  seeds: [1],
  maxPixels: 4_000_000,
  applyExifOrientation: true,
});
const file = openSync(progress, 'r+');
const outcome = { pixels: 0, warnings: 0, errors: 0, foreign: [], spoiled: [] };

for (let number = first; number < first + count; number++) {
  writeSync(file, String(number).padEnd(12), 0);
  const image = damaged(sound[number % sound.length], number);
  try {
    await decoder.decode(image, { epoch: 0, source: 0, number, occurrence: 0, orientation: 1 + (number % 8) }, target);
    outcome.pixels++;
  } catch (error) {
    if (error instanceof SampleDecodeError) outcome.errors++;
    else outcome.foreign.push(`${number}: ${error.stack}`);
  }
  for (const guard of guards) {
    if (Buffer.compare(bytes.subarray(guard, guard + GUARD.length), GUARD) !== 0) outcome.spoiled.push(number);
  }
}
outcome.warnings = decoder.takeWarnings();
decoder.close();
console.log(JSON.stringify(outcome));

/** The bytes, in shared memory, with one to three damages. A number always results in the same damage. */
function damaged(jpeg, number) {
  let state = (Math.imul(number, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
  const below = (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  let result = Buffer.from(jpeg);
  for (let mishaps = 1 + below(3); mishaps > 0; mishaps--) result = mishap(result, below);
  const shared = new Uint8Array(new SharedArrayBuffer(result.length));
  shared.set(result);
  return shared;
}

function mishap(jpeg, below) {
  const from = below(jpeg.length);
  const to = Math.min(jpeg.length, from + 1 + below(below(2) === 0 ? 20 : 2000));
  switch (below(7)) {
    case 0:
      return jpeg.subarray(0, from);
    case 1:
      return Buffer.concat([jpeg.subarray(0, from), jpeg.subarray(to)]);
    case 2:
      return Buffer.concat([jpeg.subarray(0, to), jpeg.subarray(from)]);
    case 3:
      return Buffer.concat([jpeg.subarray(0, below(jpeg.length)), jpeg.subarray(from)]);
    case 4: {
      // Markers and their lengths, where one bit does most.
      const marker = jpeg.indexOf(0xff, below(Math.min(jpeg.length, 700)));
      if (marker >= 0 && marker + 4 < jpeg.length) jpeg[marker + 1 + below(12)] ^= 1 << below(8);
      return jpeg;
    }
    case 5:
      return Buffer.from(jpeg.fill(below(256), from, to));
    default:
      for (let flips = 1 + below(20); flips > 0; flips--) {
        if (jpeg.length > 0) jpeg[below(jpeg.length)] ^= 1 << below(8);
      }
      return jpeg;
  }
}
