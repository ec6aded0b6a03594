// The batches of the TypeScript loader: LOCATION, a list of OPTIONS, EPOCHS. A line of JSON for each options: the referee for those seen in Python.
import { crc32 } from 'node:zlib';
import { openDataset } from '@shardtool/reader';

const [location, options, epochs] = process.argv.slice(2);
const dataset = await openDataset(location);
for (const one of JSON.parse(options)) console.log(JSON.stringify(await batchesOf({ workers: 1, ...one })));

async function batchesOf(options) {
  const loader = dataset.loader(options);
  const batches = [];
  for (let epoch = 0; epoch < Number(epochs); epoch++) {
    for await (const batch of loader) {
      const { size, keys, images, list, encoded, shape } = batch;
      const rows = Array.from({ length: size }, (_, row) =>
        crc32(encoded?.[row] ?? list?.[row].pixels ?? rowOf(images, row, size)),
      );
      const { labels, valid, indices: numbers } = batch;
      const plain = { labels: [...labels], valid: [...valid], numbers: [...numbers] };
      batches.push({ epoch: batch.epoch, index: batch.index, keys, ...plain, rows, shape, state: loader.state() });
    }
  }
  await loader.close();
  return batches;
}

function rowOf(images, row, size) {
  const bytes = new Uint8Array(images.buffer, images.byteOffset, images.byteLength);
  const length = bytes.length / size;
  return bytes.subarray(row * length, (row + 1) * length);
}
