/**
 * Computes features of every image of a dataset (here, the mean of each colour), and writes them as columns by key to a Parquet
 * file. If it is killed and run again, it resumes after the last batch that it wrote.
 *
 *   node examples/features.mjs shards features.parquet
 *   npx shardtool overlay add shards colours --labels features.parquet
 *   npx shardtool ls shards --overlay colours --samples
 */
import {
  appendFileSync,
  createReadStream,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createInterface } from 'node:readline';
import { fileWriter, parquetWriteRows } from 'hyparquet-writer';
import { openDataset } from 'shardtool';

const SIZE = 64;
const [shards, output] = process.argv.slice(2);
if (output === undefined) {
  console.error('Usage: node examples/features.mjs shards features.parquet');
  process.exit(2);
}
/** Has a line for each image until all are done, because a Parquet file cannot be appended to. */
const lines = `${output}.jsonl`;
const stateFile = `${output}.state`;
const saved = existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, 'utf8')) : null;
// Lines after the last state are removed, because their images are read again.
if (saved === null) rmSync(lines, { force: true });
else truncateSync(lines, saved.bytes);

const dataset = await openDataset(shards).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
const loader = dataset.loader({
  batchSize: 16,
  transform: [
    { name: 'resize', size: SIZE },
    { name: 'centerCrop', size: SIZE },
  ],
  lastBatch: 'partial',
  fields: [],
  ...(saved && { state: saved.state }),
});
for await (const batch of loader) {
  const rows = batch.keys.map((key, row) => JSON.stringify({ key, ...meansOf(batch.images, row) }));
  appendFileSync(lines, `${rows.join('\n')}\n`);
  save({ state: loader.state(), bytes: statSync(lines).size });
}
await dataset.close();

const columns = ['red', 'green', 'blue'].map((name) => ({ name, type: 'DOUBLE' }));
await parquetWriteRows({
  writer: fileWriter(`${output}.part`),
  rows: rowsOf(lines),
  columns: [{ name: 'key', type: 'STRING' }, ...columns],
});
renameSync(`${output}.part`, output);
for (const file of [stateFile, lines]) rmSync(file, { force: true });

/** Mean of each colour over the pixels of a row. `images`: uint8 [rows, SIZE, SIZE, 3]. */
function meansOf(images, row) {
  const sums = [0, 0, 0];
  const bytes = SIZE * SIZE * 3;
  for (let i = 0; i < bytes; i++) sums[i % 3] += images[row * bytes + i];
  const [red, green, blue] = sums.map((sum) => Math.round((100 * sum) / (SIZE * SIZE)) / 100);
  return { red, green, blue };
}

/** Writes a file by renaming, so that it is complete even if this program is killed. */
function save(state) {
  writeFileSync(`${stateFile}.part`, JSON.stringify(state));
  renameSync(`${stateFile}.part`, stateFile);
}

async function* rowsOf(file) {
  for await (const line of createInterface({ input: createReadStream(file) })) yield JSON.parse(line);
}
