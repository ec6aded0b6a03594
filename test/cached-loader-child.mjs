// Reads epochs of a dataset with a cache: LOCATION CACHE BYTES EPOCHS. Prints `reading` at the first batch, and at the end the
// fetched bytes and a digest of the batches, as JSON.
import { createHash } from 'node:crypto';
import { openDataset } from '@shardtool/reader';

const [location, cache, cacheSize, epochs] = process.argv.slice(2);
const dataset = await openDataset(location);
const options = { transform: 'raw', batchSize: 8, seed: 3, workers: 1, streams: 4, blockSamples: 4 };
const loader = dataset.loader({ ...options, shuffleUnit: 'shard', cache, cacheSize: Number(cacheSize) });
const hash = createHash('sha256');
let fetched = 0;
for (let epoch = 0; epoch < Number(epochs); epoch++) {
  for await (const batch of loader) {
    if (fetched === 0) process.stdout.write('reading\n');
    fetched = Math.max(fetched, 1);
    for (const image of batch.encoded) hash.update(image);
    hash.update(batch.keys.join());
  }
  fetched += loader.report().storage.fetchedBytes;
}
await loader.close();
await dataset.close();
process.stdout.write(`${JSON.stringify({ fetched, digest: hash.digest('hex') })}\n`);
