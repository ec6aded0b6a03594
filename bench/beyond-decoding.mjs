/**
 * How much CPU time does a loader take beyond decoding, resizing and flipping its images?
 *
 *   node bench/beyond-decoding.mjs SHARDS [--rounds 5] [--threads 1,2]
 *
 * `decode` is the decoder of a worker with the images in memory: the plan of the crop, region decode, resize and flip, with
 * the same crops as in the epoch of the loader. The other contestants are loaders with as many decode workers, `reuse: true`.
 * All take turns. CPU time is that of all threads of the process.
 */
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { openDataset } from '@shardtool/reader';
import { createDecoder } from '#reader/decode/decoder';
import { scratchBytesFor } from '#reader/decode/scratch-size';
import { compileTransform } from '#reader/transform/transform';
import { cost } from './figures.mjs';

const PAGE_BYTES = 65_536;
const MAX_PIXELS = 2 ** 24;

if (isMainThread) await main();
else await decodeOnRequest(workerData);

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { rounds: { type: 'string', default: '5' }, threads: { type: 'string', default: '1,2' } },
  });
  const [shards] = positionals;
  const dataset = await openDataset(shards);
  const images = await readImages(dataset);
  console.log(
    '| threads | what | CPU ms per image | to decode (half of the rounds) | p50 and p99 of waits, time of a batch |',
  );
  console.log('|---:|---|---:|---:|---|');
  for (const threads of values.threads.split(',').map(Number)) {
    const decode = await startDecoders(images, threads);
    const loaders = ['always', 'never'].map((checksum) => ({
      name: `loader, checksum '${checksum}'`,
      loader: dataset.loader({
        batchSize: 256,
        transform: 'train224',
        workers: threads,
        checksum,
        reuse: true,
        lastBatch: 'drop',
      }),
      waits: [],
      time: 0,
    }));
    const contestants = [
      { name: 'decode', run: (epoch) => decode.run(epoch) },
      ...loaders.map((one) => ({ ...one, run: (epoch) => runEpoch(one, epoch) })),
    ];
    const found = contestants.map(() => []);
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (let turn = 0; turn < contestants.length; turn++) {
        const which = (turn + round) % contestants.length;
        const before = process.cpuUsage();
        const count = await contestants[which].run(round);
        const { user, system } = process.cpuUsage(before);
        if (round > 0) found[which].push((user + system) / 1000 / count);
      }
    }
    contestants.forEach(({ name }, i) => {
      const ratios = found[i].map((ms, round) => ms / found[0][round]).toSorted((a, b) => a - b);
      const waits = i === 0 ? '' : waitsOf(loaders[i - 1]);
      const range = `${at(ratios, 0.5).toFixed(3)} (${at(ratios, 0.25).toFixed(3)} to ${at(ratios, 0.75).toFixed(3)})`;
      const ms = at(
        found[i].toSorted((a, b) => a - b),
        0.5,
      );
      cost(`${name}, ${threads} threads, CPU ms per image`, ms);
      console.log(`| ${threads} | ${name} | ${ms.toFixed(4)} | ${range} | ${waits} |`);
    });
    await decode.close();
    for (const { loader } of loaders) await loader.close();
  }
  await dataset.close();
}

async function readImages(dataset) {
  const bytes = new Uint8Array(new SharedArrayBuffer(dataset.bytes));
  const offsets = [0];
  for await (const { fields } of dataset.samples({ reuse: true })) {
    bytes.set(fields.jpg, offsets.at(-1));
    offsets.push(offsets.at(-1) + fields.jpg.length);
  }
  return { bytes, offsets: Float64Array.from(offsets) };
}

async function runEpoch(contestant, epoch) {
  const { loader, waits } = contestant;
  let count = 0;
  const start = performance.now();
  let asked = start;
  for await (const batch of loader) {
    if (epoch > 0) waits.push(performance.now() - asked);
    count += batch.size;
    asked = performance.now();
  }
  if (epoch > 0) contestant.time += performance.now() - start;
  return count;
}

function waitsOf({ waits, time }) {
  const sorted = waits.toSorted((a, b) => a - b);
  const each = time / waits.length;
  return `${at(sorted, 0.5).toFixed(0)} and ${at(sorted, 0.99).toFixed(0)} ms, ${each.toFixed(0)} ms (p99 is ${(at(sorted, 0.99) / each).toFixed(2)} of it)`;
}

function at(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}

async function startDecoders(images, threads) {
  const workers = Array.from(
    { length: threads },
    (_, worker) => new Worker(new URL(import.meta.url), { workerData: { ...images, worker, threads } }),
  );
  const answers = () => Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))));
  return {
    async run(epoch) {
      const done = answers();
      for (const worker of workers) worker.postMessage(epoch);
      return (await done).reduce((sum, count) => sum + count);
    },
    close: () => Promise.all(workers.map((worker) => worker.terminate())),
  };
}

async function decodeOnRequest({ bytes, offsets, worker, threads }) {
  const transform = compileTransform('train224');
  const scratchBytes = scratchBytesFor({ transform }, MAX_PIXELS);
  const pages = Math.ceil((scratchBytes + 224 * 224 * 3) / PAGE_BYTES) + 1;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const scratch = { offset: 0, bytes: scratchBytes };
  const decoder = await createDecoder({
    memory,
    scratch,
    transform,
    seeds: [0],
    maxPixels: MAX_PIXELS,
    applyExifOrientation: false,
  });
  const target = Math.ceil(scratchBytes / 64) * 64;
  parentPort.on('message', (epoch) => {
    let count = 0;
    for (let number = worker; number + 1 < offsets.length; number += threads) {
      const image = bytes.subarray(offsets[number], offsets[number + 1]);
      decoder.decode(image, { epoch, source: 0, number, occurrence: 0, orientation: 1 }, target);
      count++;
    }
    parentPort.postMessage(count);
  });
}
