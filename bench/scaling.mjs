/**
 * Up to how many decode workers does the rate grow, and how much time does the main thread spend per sample?
 *
 *   node bench/scaling.mjs [--workers 1,2,4,8,16] [--photos 6144] [--cheap 200000] [--seconds 6] [--batch-size 256]
 *
 * `photos` are JPEGs of 500x375, decoded and cropped to 224. `cheap` are npy arrays of 32x32x3, which the workers only copy:
 * they simulate more cores than this machine has. `main thread` is the time that the main thread ran (Linux counts it),
 * divided by the number of samples. Its reciprocal is the rate beyond which more workers do not help.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack, Writer } from '@shardtool/writer';
import { rate } from './figures.mjs';
import { makePhotos } from './make-photos.mjs';

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1,2' },
    photos: { type: 'string', default: '6144' },
    cheap: { type: 'string', default: '200000' },
    seconds: { type: 'string', default: '6' },
    'batch-size': { type: 'string', default: '256' },
    work: { type: 'string', default: path.join(path.dirname(fileURLToPath(import.meta.url)), '.cache') },
  },
});
mkdirSync(values.work, { recursive: true });

/** Arrays of 32x32x3 as a dataset. */
async function cheapDataset(count) {
  const folder = path.join(values.work, `scaling-cheap-${count}`);
  if (existsSync(path.join(folder, 'dataset.json'))) return folder;
  const header = "{'descr': '|u1', 'fortran_order': False, 'shape': (32, 32, 3), }".padEnd(117).concat('\n');
  const npy = Buffer.concat([Buffer.from('\x93NUMPY\x01\x00v\x00', 'latin1'), Buffer.from(header), Buffer.alloc(3072)]);
  const writer = new Writer(folder, { overwrite: true });
  for (let i = 0; i < count; i++) {
    npy.writeUInt32LE(i, npy.length - 4);
    await writer.add({ key: String(i).padStart(8, '0'), npy: Buffer.from(npy), label: i % 100 });
  }
  await writer.close();
  return folder;
}

async function photoDataset(count) {
  const photos = path.join(values.work, `photos-${count}`);
  const shards = path.join(values.work, `scaling-photos-${count}`);
  await makePhotos({ count, out: photos, log: console.error });
  if (!existsSync(path.join(shards, 'dataset.json'))) await pack(photos, shards);
  return shards;
}

async function measure(shards, workers, options) {
  const dataset = await openDataset(shards);
  const loader = dataset.loader({
    batchSize: Number(values['batch-size']),
    workers,
    fields: [],
    reuse: true,
    ...options,
  });
  let [samples, time, cpu, main] = [0, 0, 0, 0];
  for (let epoch = 0; epoch < 2 || time < Number(values.seconds) * 1000; epoch++) {
    const [start, before, ran] = [performance.now(), process.cpuUsage(), mainThread()];
    let rows = 0;
    for await (const batch of loader) rows += batch.size;
    if (epoch === 0) continue;
    const spent = process.cpuUsage(before);
    samples += rows;
    time += performance.now() - start;
    cpu += (spent.user + spent.system) / 1000;
    main += mainThread() - ran;
  }
  await loader.close();
  await dataset.close();
  return { rate: (samples / time) * 1000, cpu: cpu / samples, main: (main / samples) * 1000 };
}

/** Milliseconds that the main thread has run. */
function mainThread() {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

const counts = values.workers.split(',').map(Number);
console.log(`${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}`);
console.log(
  '| rows | workers | images/s | by workers, of the first line | CPU ms an image | main thread, microseconds an image |',
);
console.log('|---|---|---|---|---|---|');
for (const [name, shards, options] of [
  ['photos', await photoDataset(Number(values.photos)), { transform: 'train224' }],
  [
    'cheap',
    await cheapDataset(Number(values.cheap)),
    { transform: [{ name: 'resize', size: [32, 32] }], image: 'npy' },
  ],
]) {
  let first;
  for (const workers of counts) {
    const found = await measure(shards, workers, options);
    first ??= found.rate / workers;
    rate(`${name}, ${workers} workers, images/s`, found.rate);
    const share = found.rate / workers / first;
    console.log(
      `| ${name} | ${workers} | ${Math.round(found.rate)} | ${share.toFixed(2)} | ${found.cpu.toFixed(3)} | ${found.main.toFixed(1)} |`,
    );
  }
}
