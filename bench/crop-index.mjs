/**
 * Compares loaders with and without crop indexes on the same shards, in turns: CPU time and wall-clock time per sample of whole
 * epochs. Also measures what crop indexes add to packing, and how many samples were decoded with them.
 *
 *   node bench/crop-index.mjs [--photos FOLDER] [--size 500x375] [--count 1536] [--rounds 7] [--workers 1]
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { makePhotos, sizeOf } from './make-photos.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: {
    photos: { type: 'string' },
    size: { type: 'string', default: '500x375' },
    count: { type: 'string', default: '1536' },
    rounds: { type: 'string', default: '7' },
    workers: { type: 'string', default: '1' },
  },
});
const rounds = Number(options.rounds);
const workers = Number(options.workers);
const photos = options.photos ?? path.join(here, `.cache/photos-${options.size}-${options.count}`);
if (options.photos === undefined) {
  await makePhotos({ count: Number(options.count), out: photos, size: sizeOf(options.size), log: console.error });
}
const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-bench-'));
try {
  pack([], 'warm');
  const packing = { without: [], with: [] };
  for (let round = 0; round < Math.min(rounds, 5); round++) {
    packing.without.push(pack([], 'without'));
    packing.with.push(pack(['crops'], 'with'));
  }
  const bytesOf = (name, ending) => {
    const files = readdirSync(path.join(folder, name)).filter((file) => file.endsWith(ending));
    return files.reduce((sum, file) => sum + statSync(path.join(folder, name, file)).size, 0);
  };
  const share = (100 * bytesOf('with', '.crops')) / bytesOf('with', '.tar');
  const extra = median(packing.with.map((time, round) => time / packing.without[round]));
  console.log(
    `crop index: ${share.toFixed(2)} % of the shards; CPU time of packing ${extra.toFixed(2)} times that without`,
  );
  await compare(path.join(folder, 'with'));
} finally {
  rmSync(folder, { recursive: true });
}

/** CPU seconds of one pack, in a separate process. */
function pack(index, name) {
  const target = path.join(folder, name);
  const code = `
    const { pack } = await import(${JSON.stringify(import.meta.resolve('@shardtool/writer'))});
    await pack(${JSON.stringify(photos)}, ${JSON.stringify(target)}, ${JSON.stringify({ overwrite: true, workers, index })});
    const { user, system } = process.cpuUsage();
    console.log((user + system) / 1e6);`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    cwd: here,
  });
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}

async function compare(shards) {
  const contestants = [];
  for (const cropIndex of [false, true]) {
    const dataset = await openDataset(shards);
    const loader = dataset.loader({
      reuse: true,
      batchSize: 64,
      transform: 'train224',
      workers,
      seed: 1,
      lastBatch: 'partial',
      cropIndex,
    });
    for await (const _ of loader);
    contestants.push({ dataset, loader, cpu: [], wall: [] });
  }
  for (let round = 0; round < rounds; round++) {
    for (const contestant of contestants) {
      const cpu = process.cpuUsage();
      const begin = performance.now();
      let samples = 0;
      for await (const { size } of contestant.loader) samples += size;
      const { user, system } = process.cpuUsage(cpu);
      contestant.wall.push(((performance.now() - begin) * 1000) / samples);
      contestant.cpu.push((user + system) / samples);
    }
  }
  const [without, by] = contestants;
  const { spliced, others } = (await by.loader.info()).cropIndex;
  const ratio = (kind) => median(without[kind].map((time, round) => time / by[kind][round])).toFixed(2);
  for (const kind of ['cpu', 'wall']) {
    const [a, b] = [without, by].map((one) => median(one[kind]).toFixed(0));
    console.log(`${kind} time per sample: ${a} us without, ${b} us with: ${ratio(kind)} times as fast`);
  }
  console.log(`${spliced} of ${spliced + others} samples of the last epoch were decoded with the index`);
  for (const { dataset, loader } of contestants) {
    await loader.close();
    await dataset.close();
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
