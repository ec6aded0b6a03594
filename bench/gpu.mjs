// On a machine with an NVIDIA GPU: host to device GB/s of the batch slots, pinned, against pageable memory and against torch
// (gpu_torch.py, where python3 has it); and images/s from shards to normalised float16 on the GPU.
// Usage: npm run bench:gpu [-- --photos 6144 --batch-size 256 --device cuda:0]. Without a GPU: one sentence, exit status 2.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Device } from '@shardtool/cuda';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { makePhotos } from './make-photos.mjs';

const { values } = parseArgs({
  options: {
    photos: { type: 'string', default: '6144' },
    'batch-size': { type: 'string', default: '256' },
    device: { type: 'string', default: 'cuda:0' },
  },
});
const device = await Device.open(Number(values.device.split(':')[1] ?? 0)).catch((error) => {
  console.error(`Nothing is measured: ${error.message}`);
  process.exit(2);
});
const folder = path.dirname(fileURLToPath(import.meta.url));
const photos = path.join(folder, '.cache', `photos-${values.photos}`);
const shards = path.join(folder, '.cache', `shards-gpu-${values.photos}`);
const ROUNDS = 20;

console.log(`${device.name}, compute capability ${device.computeCapability}`);
measureCopies();
await makePhotos({ count: Number(values.photos), out: photos, log: console.error });
if (!existsSync(path.join(shards, 'dataset.json'))) await pack(photos, shards);
await measureLoader();
device.close();
spawnSync('python3', [path.join(folder, 'gpu_torch.py'), photos, values['batch-size'], values.device], {
  stdio: 'inherit',
});

/** GB/s of copies as long as a batch, one after the other on one stream. */
function measureCopies() {
  const bytes = Number(values['batch-size']) * 224 * 224 * 3;
  const target = device.allocate(bytes);
  const stream = device.createStream();
  const memory = new Uint8Array(new SharedArrayBuffer(bytes)).fill(1);
  const rate = (source) => {
    device.copyToDevice(target, source, bytes, stream);
    device.synchronize(stream);
    const start = performance.now();
    for (let round = 0; round < ROUNDS; round++) device.copyToDevice(target, source, bytes, stream);
    device.synchronize(stream);
    return ((ROUNDS * bytes) / (performance.now() - start) / 1e6).toFixed(2);
  };
  console.log(`host to device, pageable: ${rate(device.address(memory))} GB/s`);
  const address = device.register(memory);
  console.log(`host to device, pinned: ${rate(address)} GB/s`);
  device.unregister(address);
  device.destroyStream(stream);
  device.free(target);
}

/** images/s of whole epochs after the first, from asking for the first batch to the last one being ready. */
async function measureLoader() {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({
    batchSize: Number(values['batch-size']),
    transform: [
      { name: 'randomResizedCrop', size: 224 },
      { name: 'randomHorizontalFlip' },
      { name: 'normalize', mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
      { name: 'toDtype', dtype: 'float16' },
    ],
    checksum: 'always',
    fields: [],
    device: values.device,
  });
  for (let epoch = 0; epoch < 4; epoch++) {
    const start = performance.now();
    let images = 0;
    let last = null;
    for await (const batch of loader) {
      images += batch.size;
      last = batch.ready;
      if (images === dataset.size) await last.whenDone();
    }
    const rate = Math.round((images / (performance.now() - start)) * 1000);
    if (epoch > 0) console.log(`shards to float16 on the GPU, epoch ${epoch}: ${rate} images/s`);
  }
  console.log(loader.report().device);
  await loader.close();
  await dataset.close();
}
