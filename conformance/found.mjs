import { crc32, crc32Hex } from '@shardtool/base';

/** Options that decide the order of an epoch. */
const ORDERS = [
  { seed: 0, epoch: 0, streams: 192, block_samples: 256, unit: 'sample' },
  { seed: 1, epoch: 0, streams: 2, block_samples: 4, unit: 'sample' },
  { seed: 1, epoch: 5, streams: 2, block_samples: 4, unit: 'chunk' },
  { seed: 2 ** 40 + 7, epoch: 2 ** 31, streams: 1, block_samples: 16, unit: 'shard' },
  { seed: 3, epoch: 1, streams: 3, block_samples: 2, unit: 'chunk' },
  { seed: 3, epoch: 1, streams: 3, block_samples: 2, unit: 'sample', shuffle: false },
];

/** The contents of a dataset as shardtool reads them, in the shape of expected.json. `loading`: options of the loaders. */
export async function found(dataset, loading = { transform: 'raw' }) {
  const samples = [];
  for await (const { index, key, label, fields, columns } of dataset.samples()) {
    const payloads = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
    samples.push({
      index,
      key,
      label,
      class: label < 0 ? null : dataset.classes[label],
      fields: Object.fromEntries(
        payloads.map(([name, bytes]) => [name, { bytes: bytes.length, crc32: crc32Hex(crc32(bytes)) }]),
      ),
      columns,
    });
  }
  const runs = await Promise.all(ORDERS.map((options) => run(dataset, options, loading)));
  return {
    samples,
    orders: runs.map(({ options, order }) => ({ options, order })),
    states: runs.map(({ state, rest }) => ({ state, rest })),
  };
}

/** An epoch of a loader, and its state after two batches. */
async function run(dataset, options, loading) {
  const { seed, epoch, streams, block_samples: blockSamples, unit: shuffleUnit, shuffle = true } = options;
  const loader = dataset.loader({
    ...loading,
    ...{ batchSize: 5, workers: 1, lastBatch: 'partial', epochsPerLoop: 1 },
    ...{ seed, streams, blockSamples, shuffle, ...(shuffle && { shuffleUnit }) },
  });
  loader.setEpoch(epoch);
  const batches = [];
  let state = null;
  for await (const { indices } of loader) {
    batches.push(Array.from(indices));
    if (batches.length === 2) state = loader.state();
  }
  await loader.close();
  return { options, order: batches.flat(), state, rest: batches.slice(2).flat() };
}
