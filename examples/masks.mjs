/**
 * Masks and custom steps: writes a dataset whose images have a mask of their bright pixels, and takes random crops of both, in
 * which all dark pixels become black.
 *
 *   node examples/masks.mjs shards masked
 */
import { openDataset, Writer } from 'shardtool';

const SIZE = 64;
const [shards, output] = process.argv.slice(2);
if (output === undefined) {
  console.error('Usage: node examples/masks.mjs shards masked');
  process.exit(2);
}

const dataset = await openDataset(shards).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const writer = new Writer(output, { classes: dataset.classes });
const images = dataset.loader({ collate: 'list', batchSize: 8, shuffle: false, lastBatch: 'partial', fields: ['jpg'] });
for await (const { keys, labels, list, fields } of images) {
  for (const [row, key] of keys.entries()) {
    await writer.add({ key, jpg: fields.jpg[row], label: labels[row], 'fore.npy': npyOf(maskOf(list[row])) });
  }
}
await writer.close();
await dataset.close();

const masked = await openDataset(output);
const steps = new URL('steps.mjs', import.meta.url).href;
const loader = masked.loader({
  transform: [{ name: 'randomResizedCrop', size: SIZE }, { name: 'randomHorizontalFlip' }],
  batchSize: 20,
  seed: 42,
  masks: ['fore.npy'],
  customSteps: {
    pixels: { module: steps, export: 'brighten', options: { range: 0.2 } },
    batch: { module: steps, export: 'blackBehind' },
  },
});
let [shown, bright, seen] = [0, 0, 0];
for await (const { images, masks } of loader) {
  const mask = masks['fore.npy'];
  for (let i = 0; i < mask.length; i++) {
    seen++;
    bright += mask[i];
    if (images[3 * i] + images[3 * i + 1] + images[3 * i + 2] > 0) shown++;
  }
}
await masked.close();
console.log(
  `${masked.size} images with masks: ${percent(bright)} of their crops are bright, ${percent(shown)} are not black`,
);

function percent(count) {
  return `${((100 * count) / seen).toFixed(1)} %`;
}

/** A mask that is 1 where a pixel is bright: uint8 [height, width]. */
function maskOf({ pixels, height, width }) {
  const data = new Uint8Array(height * width);
  for (let i = 0; i < data.length; i++) {
    data[i] = pixels[3 * i] + pixels[3 * i + 1] + pixels[3 * i + 2] > 3 * 128 ? 1 : 0;
  }
  return { data, height, width };
}

/** A mask in the format of numpy.save. */
function npyOf({ data, height, width }) {
  const facts = `{'descr': '|u1', 'fortran_order': False, 'shape': (${height}, ${width}), }`;
  const header = Buffer.from(`\x93NUMPY\x01\0\0\0${facts.padEnd(117)}\n`, 'latin1');
  header.writeUInt16LE(header.length - 10, 8);
  return Buffer.concat([header, data]);
}
