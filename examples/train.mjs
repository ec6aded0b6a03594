/**
 * Trains a softmax regression on small crops, without any library. If it is killed and run again, it resumes after the last
 * batch whose checkpoint it wrote, and ends with the same weights as an uninterrupted run.
 *
 *   node examples/train.mjs shards checkpoint.json
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { openDataset } from 'shardtool';

const SIZE = 8;
const INPUTS = SIZE * SIZE * 3;
const EPOCHS = 5;
const RATE = 0.02;
const [shards, checkpoint] = process.argv.slice(2);
if (checkpoint === undefined) {
  console.error('Usage: node examples/train.mjs shards checkpoint.json');
  process.exit(2);
}

const dataset = await openDataset(shards).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const classes = dataset.classes.length;
const saved = existsSync(checkpoint) ? JSON.parse(readFileSync(checkpoint, 'utf8')) : null;
/** Weights of each class, and its bias. */
const weights = Float64Array.from(saved?.weights ?? new Float64Array(classes * (INPUTS + 1)));
const loader = dataset.loader({
  transform: [
    { name: 'randomResizedCrop', size: SIZE },
    { name: 'randomHorizontalFlip' },
    { name: 'normalize', mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25] },
  ],
  batchSize: 10,
  seed: 42,
  fields: [],
  ...(saved && { state: saved.state }),
});
for (let epoch = saved?.state.epoch ?? 0; epoch < EPOCHS; epoch++) {
  loader.setEpoch(epoch);
  let [loss, batches] = [0, 0];
  for await (const { images, labels } of loader) {
    loss += learn(images, labels);
    batches++;
    // Written by renaming, so that it is complete even if this program is killed.
    writeFileSync(`${checkpoint}.part`, JSON.stringify({ state: loader.state(), weights: Array.from(weights) }));
    renameSync(`${checkpoint}.part`, checkpoint);
  }
  if (batches > 0) console.log(`epoch ${epoch}: mean loss ${(loss / batches).toFixed(4)} of ${batches} batches`);
}
await dataset.close();

/** A gradient step for a batch, float32 [n, 3, SIZE, SIZE]. Returns the mean loss before the step. */
function learn(images, labels) {
  const slopes = new Float64Array(weights.length);
  let loss = 0;
  for (const [row, label] of labels.entries()) {
    const input = images.subarray(row * INPUTS, (row + 1) * INPUTS);
    const powers = Array.from({ length: classes }, (_, cls) => Math.exp(scoreOf(input, cls)));
    const sum = powers.reduce((a, b) => a + b);
    loss -= Math.log(powers[label] / sum) / labels.length;
    for (const [cls, power] of powers.entries()) {
      const error = power / sum - (cls === label ? 1 : 0);
      const at = cls * (INPUTS + 1);
      for (let i = 0; i < INPUTS; i++) slopes[at + i] += error * input[i];
      slopes[at + INPUTS] += error;
    }
  }
  for (let i = 0; i < weights.length; i++) weights[i] -= (RATE / labels.length) * slopes[i];
  return loss;
}

function scoreOf(input, cls) {
  const at = cls * (INPUTS + 1);
  let score = weights[at + INPUTS];
  for (let i = 0; i < INPUTS; i++) score += weights[at + i] * input[i];
  return score;
}
