// Images a second of one thread's CPU time: header, region decode alone, and decode with the resize kernel, over the example
// photos or those below --photos FOLDER. Ratios are to the region decode above, the limit of what comes after it.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openCodecs, openImage } from '#reader/codec-select';
import { createDecoder } from '#reader/decoder';
import { inputOf } from '#reader/passes';
import { SampleRandom } from '#reader/random';
import { Scratch } from '#reader/scratch';
import { compileTransform } from '#reader/transform';
import { planSample } from '#reader/transform-plan';
import { rate } from './figures.mjs';

const { values: options } = parseArgs({
  options: {
    photos: { type: 'string', default: fileURLToPath(new URL('../examples/photos', import.meta.url)) },
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
  },
});

const MAX_PIXELS = 178_956_970;
const SEED = 1;
const MIB = 2 ** 20;

const photos = readdirSync(options.photos, { recursive: true })
  .map((name) => join(options.photos, name))
  .filter((path) => /\.jpe?g$/i.test(path) && statSync(path).isFile())
  .slice(0, 2000)
  .map(readShared);
if (photos.length === 0) throw new Error(`There is no JPEG below ${options.photos}.`);

const memory = new WebAssembly.Memory({ initial: 16_384, maximum: 16_384, shared: true });
const target = 16_384 * 65_536 - 8 * MIB;
const codecs = await openCodecs({ maxPixels: MAX_PIXELS });
const random = new SampleRandom(SEED);
const SCRATCH_BYTES = 160 * MIB;
let regions = 0;
const scratch = new Scratch(memory, nextRegion());

const normalize = { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
const flip = { name: 'randomHorizontalFlip' };
const crop = { name: 'randomResizedCrop', size: 224 };
const measures = {
  header: (bytes) => openImage(codecs, bytes, MAX_PIXELS),
  'region decode': regionDecode('train224'),
  'decode + train224': await decodeWith('train224'),
  'decode + train224, nchw': await decodeWith([crop, flip, { name: 'layout', layout: 'nchw' }]),
  'decode + train224, float32': await decodeWith([crop, flip, normalize]),
  'region decode of eval224': regionDecode('eval224'),
  'decode + eval224': await decodeWith('eval224'),
};

console.log(`${photos.length} photos, codec ${codecs.choice.name}: ${codecs.choice.reason}`);
const rates = Object.fromEntries(Object.keys(measures).map((name) => [name, []]));
// In turns, so that what else the machine does hits all of them alike.
for (let round = 0; round < Number(options.rounds); round++) {
  for (const [name, decode] of Object.entries(measures)) rates[name].push(await rateOf(decode));
}
let limit = 0;
for (const [name, all] of Object.entries(rates)) {
  const here = median(all);
  rate(`${name}, images/s`, here);
  if (name.startsWith('region decode')) limit = here;
  console.log(
    `${name.padEnd(28)} ${here.toFixed(0).padStart(8)} images/s  ${limit > 0 ? (here / limit).toFixed(2) : ''}`,
  );
}

function readShared(path) {
  const bytes = readFileSync(path);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  return shared;
}

/** A decoder's tables stay in its scratch, so that no two can share one. */
function nextRegion() {
  return { offset: SCRATCH_BYTES * regions++, bytes: SCRATCH_BYTES };
}

/** The region that a transform needs of a sample, and nothing more. */
function regionDecode(preset) {
  const transform = compileTransform(preset);
  return (bytes, number) => {
    scratch.reset();
    const { codec, header } = openImage(codecs, bytes, MAX_PIXELS);
    const plan = planSample(transform, header.width, header.height, random.start(0, number, 0));
    return codec.decodeRegion(bytes, inputOf(plan.passes[0]), 1, scratch);
  };
}

async function decodeWith(transform) {
  const compiled = compileTransform(transform);
  const shared = { memory, scratch: nextRegion(), transform: compiled, seeds: [SEED], maxPixels: MAX_PIXELS };
  const decoder = await createDecoder({ ...shared, applyExifOrientation: false });
  return (image, number) =>
    decoder.decode(image, { epoch: 0, source: 0, number, occurrence: 0, orientation: 1 }, target);
}

async function rateOf(decode) {
  const seconds = Number(options.seconds) / Object.keys(measures).length;
  const start = performance.now();
  const cpu = process.cpuUsage();
  let images = 0;
  let elapsed = 0;
  while (elapsed < seconds * 1000) {
    const pending = decode(photos[images % photos.length], images);
    if (pending instanceof Promise) await pending;
    images++;
    elapsed = performance.now() - start;
  }
  const { user, system } = process.cpuUsage(cpu);
  return (images / (user + system)) * 1e6;
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}
