/**
 * Runs a model on a dataset with ONNX Runtime, prints how many of its classes are right, and writes the results as columns by
 * key. The images of a batch are the tensor. Do not set the loader's option `reuse`: ONNX Runtime does not accept memory that
 * threads share.
 *
 *   (cd examples/inference && npx pnpm install)
 *   node examples/inference/model.mjs shards model.onnx
 *   node examples/inference/infer.mjs shards model.onnx found.csv
 *   npx shardtool overlay add shards found --labels found.csv
 *   npx shardtool ls shards --overlay found --samples --json
 */
import { writeFileSync } from 'node:fs';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { openDataset } from 'shardtool';
import { TRANSFORM } from './transform.mjs';

const [shards, model, output] = process.argv.slice(2);
if (output === undefined) {
  console.error('Usage: node examples/inference/infer.mjs shards model.onnx found.csv');
  process.exit(2);
}
const dataset = await openDataset(shards).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const session = await InferenceSession.create(model);
const loader = dataset.loader({
  transform: TRANSFORM,
  batchSize: 16,
  shuffle: false,
  lastBatch: 'partial',
  fields: [],
});
let right = 0;
const lines = ['key,found,score'];
for await (const { images, shape, keys, labels } of loader) {
  const { scores } = await session.run({ images: new Tensor('float32', images, shape) });
  const classes = scores.dims[1];
  for (const [row, key] of keys.entries()) {
    const own = scores.data.subarray(row * classes, (row + 1) * classes);
    const found = own.indexOf(Math.max(...own));
    if (found === labels[row]) right++;
    lines.push(`${JSON.stringify(key)},${dataset.classes[found]},${own[found].toFixed(4)}`);
  }
}
writeFileSync(output, `${lines.join('\n')}\n`);
console.log(`${right} of ${dataset.size} right`);
await dataset.close();
