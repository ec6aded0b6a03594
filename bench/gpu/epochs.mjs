import { openDataset } from '@shardtool/reader';

/**
 * images/s from shards to normalised float16 on the device, over whole epochs that take at least `seconds`, at least three
 * of them, after one of warm-up. An epoch is timed from the request for its first batch until its last batch is ready.
 */
export async function measureEpochs(shards, { batchSize, device, seconds }) {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({
    batchSize,
    transform: [
      { name: 'randomResizedCrop', size: 224 },
      { name: 'randomHorizontalFlip' },
      { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
      { name: 'toDtype', dtype: 'float16' },
    ],
    checksum: 'always',
    fields: [],
    device,
  });
  let [images, time] = [0, 0];
  for (let epoch = 0; epoch < 4 || time < seconds * 1000; epoch++) {
    const start = performance.now();
    let rows = 0;
    for await (const { size, ready } of loader) {
      rows += size;
      if (rows === dataset.size) await ready.whenDone();
    }
    if (epoch === 0) continue;
    images += rows;
    time += performance.now() - start;
  }
  const { pinned } = loader.report().device;
  await loader.close();
  await dataset.close();
  return { imagesPerSecond: (images / time) * 1000, pinned };
}
