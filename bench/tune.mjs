/**
 * Are the predictions of `shardtool tune` right? Applies each change that `tune` can suggest (a crop index, a resized copy, fast
 * decoding, another worker), measures each in turns with the unchanged dataset, and prints predicted and measured gains.
 *
 *   node bench/tune.mjs [--photos 3000] [--size 1024x768] [--rounds 3] [--seconds 40] [--cpu-budget 1]
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { pack } from '@shardtool/writer';
import { makePhotos, sizeOf } from './make-photos.mjs';

const { values } = parseArgs({
  options: {
    photos: { type: 'string', default: '3000' },
    size: { type: 'string', default: '500x375' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '40' },
    'cpu-budget': { type: 'string', default: '1' },
  },
});
const here = path.dirname(fileURLToPath(import.meta.url));
const workers = Number(values['cpu-budget']);
const photos = path.join(
  here,
  '.cache',
  `photos-${values.size === '500x375' ? '' : `${values.size}-`}${values.photos}`,
);
await makePhotos({ count: Number(values.photos), out: photos, size: sizeOf(values.size), log: console.error });
const folder = mkdtempSync(path.join(os.tmpdir(), 'shardtool-tune-bench-'));
try {
  const at = (name) => path.join(folder, name);
  await pack(photos, at('plain'));
  await pack(photos, at('crops'), { index: ['crops'] });
  await pack(photos, at('resized'), { resize: 256 });
  const predicted = JSON.parse(
    execFileSync(
      process.execPath,
      [
        ...[path.join(here, '../packages/cli/lib/main.js'), 'tune', at('plain'), '--json'],
        ...['--cpu-budget', String(workers), '--seconds', values.seconds],
      ],
      { encoding: 'utf8' },
    ),
  );
  const truth = {
    plain: [at('plain'), { workers }],
    'crop index': [at('crops'), { workers }],
    'resized copy': [at('resized'), { workers }],
    'decode fast': [at('plain'), { workers, decode: 'fast' }],
    core: [at('plain'), { workers: workers + 1 }],
  };
  const rates = Object.fromEntries(Object.keys(truth).map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, [location, options]] of Object.entries(truth)) rates[name].push(await rateOf(location, options));
  }
  const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
  const unchanged = Math.round(median(rates.plain));
  console.log(`unchanged: ${unchanged} images/s; predicted: ${Math.round(predicted.imagesPerSecond)}`);
  console.log('| remedy | predicted | measured |\n|---|---|---|');
  for (const { what, times, least, most } of predicted.gains) {
    if (rates[what] === undefined) continue;
    const ratios = rates[what].map((rate, round) => rate / rates.plain[round]);
    console.log(
      `| ${what} | ${times.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)}) | ${median(ratios).toFixed(2)} |`,
    );
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** A loop becomes faster in its first second: code is compiled, and memory is used for the first time. */
const WARM_UP_MS = 1500;
const MEASURED_MS = 4000;

/** Images per second of a loop that has warmed up. */
async function rateOf(location, options) {
  const dataset = await openDataset(location);
  const loader = dataset.loader({ transform: 'train224', batchSize: 256, reuse: true, epochsPerLoop: 1e9, ...options });
  let [images, first, start, end] = [0, 0, 0, 0];
  for await (const batch of loader) {
    end = performance.now();
    first ||= end;
    if (start > 0) images += batch.size;
    else if (end - first >= WARM_UP_MS) start = end;
    if (images > 0 && end - start >= MEASURED_MS) break;
  }
  const rate = (images / (end - start)) * 1000;
  await loader.close();
  await dataset.close();
  return rate;
}
