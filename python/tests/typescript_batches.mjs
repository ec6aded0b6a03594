// The batches of the TypeScript loader, a line of JSON each: LOCATION OPTIONS EPOCHS. The referee for those seen in Python.
import { crc32 } from 'node:zlib';
import { openDataset } from '@shardtool/reader';

const [location, options, epochs] = process.argv.slice(2);
const dataset = await openDataset(location);
const loader = dataset.loader({ workers: 1, ...JSON.parse(options) });
for (let epoch = 0; epoch < Number(epochs); epoch++) {
  for await (const batch of loader) {
    const { size, keys, images, list, encoded, shape } = batch;
    const rows = Array.from({ length: size }, (_, row) =>
      crc32(encoded?.[row] ?? list?.[row].pixels ?? rowOf(images, row, size)),
    );
    const { labels, valid, numbers } = batch;
    const plain = { labels: [...labels], valid: [...valid], numbers: [...numbers] };
    console.log(
      JSON.stringify({ epoch: batch.epoch, index: batch.index, keys, ...plain, rows, shape, state: loader.state() }),
    );
  }
}
await loader.close();

function rowOf(images, row, size) {
  const bytes = new Uint8Array(images.buffer, images.byteOffset, images.byteLength);
  const length = bytes.length / size;
  return bytes.subarray(row * length, (row + 1) * length);
}
