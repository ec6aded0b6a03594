// `npm start`: packs the example photos, and streams shuffled, decoded batches from the shards.
import { openDataset, pack } from 'shardtool';

const source = 'examples/photos';
const output = 'demo-shards';
const seconds = 3;

const packed = await pack(source, output, { maxShardBytes: 2 ** 20, overwrite: true });
console.log(`Packed ${packed.files} files of ${source} into ${packed.shards} shards in ${output}/.`);

const dataset = await openDataset(output);
const loader = dataset.loader({ transform: 'train224', batchSize: 16, seed: 42, epochsPerLoop: Infinity });
const waits = [];
const start = performance.now();
let images = 0;
let epochs = 0;
let asked = start;
for await (const batch of loader) {
  const now = performance.now();
  waits.push(now - asked);
  images += batch.size;
  epochs = batch.epoch + 1;
  if (now - start > seconds * 1000) break;
  asked = performance.now();
}
const rate = (images / (performance.now() - start)) * 1000;
await loader.close();
await dataset.close();
const [first, ...rest] = waits;
rest.sort((a, b) => a - b);

console.log(
  `Streamed ${images} shuffled, decoded images of 224x224 (${epochs} epochs, batches of 16): ` +
    `${Math.round(rate)} images/s, first batch after ${first.toFixed(0)} ms, then ` +
    `${rest[rest.length >> 1].toFixed(1)} ms of waiting per batch (99th percentile ${rest[Math.floor(rest.length * 0.99)].toFixed(1)} ms).`,
);
console.log(`
Next:
  npx shardtool ls ${output} --samples       what is inside
  npx shardtool verify ${output} --check decode    is every byte still right?
  npx shardtool bench ${output}              how fast is it here?
  npx shardtool pack PHOTOS SHARDS             your own photos, a folder for each class`);
