/** Prints the number of samples that a loader of a dataset delivers in an epoch. */
import { openDataset } from '@shardtool/reader';

const dataset = await openDataset(process.argv[2]);
// A busy machine may take long to open a file, so the loader would treat the disk as slow.
Object.defineProperty(dataset.files, 'isSlow', { get: () => false });
const loader = dataset.loader({ transform: [{ name: 'randomResizedCrop', size: 8 }], batchSize: 10, workers: 2 });
let samples = 0;
for await (const { size } of loader) samples += size;
await loader.close();
await dataset.close();
console.log(samples);
