// Measures on a machine with an NVIDIA GPU: GB/s from the batch slots to the device, pinned and pageable; the share of a batch's
// copy and conversion that overlaps with a kernel of 30 ms; images/s from shards to normalised float16 on the GPU; and the same
// figures of torch in the same run (torch_gpu.py, if SHARDTOOL_PYTHON or python3 has torch).
// Usage: npm run bench:gpu [-- --photos 24576 --batch-size 256 --device cuda:0 --seconds 10 --work FOLDER --out FILE.json]
// Prints a table, and writes the figures as JSON. The exit status is 2 without a GPU, and 1 if a part failed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Device } from '@shardtool/cuda';
import { pack } from '@shardtool/writer';
import { makePhotos } from '../make-photos.mjs';
import { measureCopies } from './copies.mjs';
import { measureEpochs } from './epochs.mjs';
import { measureOverlap } from './overlap.mjs';

const folder = path.dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    photos: { type: 'string', default: '24576' },
    'batch-size': { type: 'string', default: '256' },
    device: { type: 'string', default: 'cuda:0' },
    seconds: { type: 'string', default: '10' },
    /** Number of batches for the overlap. A kernel runs after each. */
    batches: { type: 'string', default: '100' },
    /** Folder in which photos and shards are made and kept. */
    work: { type: 'string', default: path.join(folder, '../.cache') },
    out: { type: 'string', default: 'bench-gpu.json' },
  },
});
const [photoCount, batchSize, seconds] = [values.photos, values['batch-size'], values.seconds].map(Number);
const device = await Device.open(Number(values.device.split(':')[1] ?? 0)).catch((error) => {
  console.error(`Nothing was measured: ${error.message}`);
  process.exit(2);
});
/** Whether this is the driver of the tests: everything runs, but the figures do not mean anything. */
const isSimulated = device.name.startsWith('simulated');
const photos = path.join(values.work, `photos-${photoCount}`);
const shards = path.join(values.work, `shards-gpu-${photoCount}`);

const failures = [];
/** If a part fails, the other parts still run. */
async function part(name, measure) {
  console.error(`${name} ...`);
  try {
    return await measure();
  } catch (error) {
    failures.push(`${name}: ${error.message}`);
    return {};
  }
}

const copies = await part('copies', () => measureCopies(device, batchSize * 224 * 224 * 3));
const overlap = await part('overlap', () => measureOverlap(device, { batchSize, batches: Number(values.batches) }));
await part('photos', async () => {
  mkdirSync(values.work, { recursive: true });
  await makePhotos({ count: photoCount, out: photos, log: console.error });
  if (!existsSync(path.join(shards, 'dataset.json'))) await pack(photos, shards);
});
const epochs = await part('epochs', () => measureEpochs(shards, { batchSize, device: values.device, seconds }));
device.close();
const torch = await part('torch', measureTorch);
failures.push(...(torch.failures ?? []).map((failure) => `torch: ${failure}`));

const figure = (value) => (isSimulated ? null : (value ?? null));
const report = {
  device: `${device.name}, compute capability ${device.computeCapability}`,
  host: `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}`,
  torch: torch.version ?? null,
  batchSize,
  photos: photoCount,
  slots: epochs.pinned ?? null,
  figures: [
    ['host to device, pageable, GB/s', copies.pageable, torch.pageable],
    ['host to device, pinned, GB/s', copies.pinned, torch.pinned],
    ['a batch to the device alone, ms', overlap.batchMs, torch.batchMs],
    ['the kernel alone, ms', overlap.kernelMs, torch.kernelMs],
    ['share of the former that overlaps with the latter', overlap.share, torch.share],
    ['photos to normalised float16 on the GPU, images/s', epochs.imagesPerSecond, torch.imagesPerSecond],
  ].map(([what, ours, theirs]) => ({ what, shardtool: figure(ours), torch: figure(theirs) })),
  failures,
};
writeFileSync(values.out, `${JSON.stringify(report, null, 2)}\n`);
console.log(table(report));
process.exit(failures.length > 0 ? 1 : 0);

function measureTorch() {
  const program = path.join(folder, 'torch_gpu.py');
  const args = [program, photos, String(batchSize), values.device, values.seconds, values.batches];
  const python = process.env.SHARDTOOL_PYTHON ?? 'python3';
  const { status, signal, stdout, stderr, error } = spawnSync(python, args, { encoding: 'utf8', timeout: 300_000 });
  if (error !== undefined) throw error;
  process.stderr.write(stderr);
  if (status !== 0) throw new Error(stderr.trim().split('\n').at(-1) || `${python} ended with ${status ?? signal}`);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

function table({ device, host, torch, figures, failures }) {
  const shown = (value) => (value === null ? '-' : value.toFixed(value < 10 ? 3 : value < 1000 ? 1 : 0));
  return [
    ...(isSimulated ? ['The driver is simulated: the figures do not mean anything.', ''] : []),
    `${device}; ${host}; torch ${torch ?? 'not measured'}`,
    '',
    '| | shardtool | torch |',
    '|---|---|---|',
    ...figures.map(({ what, shardtool, torch }) => `| ${what} | ${shown(shardtool)} | ${shown(torch)} |`),
    ...failures.map((failure) => `\n${failure}`),
  ].join('\n');
}
