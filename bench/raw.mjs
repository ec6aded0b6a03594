// Raw streaming of page-cached shards: samples a second without and with checksum, against `cat` and against a bare loop
// of pread and crc32. Usage: node bench/raw.mjs SHARDS [--rounds 5]
import { spawnSync } from 'node:child_process';
import { openSync, readSync, statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { crc32 } from 'node:zlib';
import { openDataset } from '@shardtool/reader';
import { rate } from './figures.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' } },
});
const dataset = await openDataset(positionals[0] ?? 'shards');
const paths = dataset.shards.map(({ path }) => path);
const bytes = dataset.bytes;

const contestants = {
  cat: () => spawnSync('sh', ['-c', 'cat "$@" > /dev/null', 'sh', ...paths]),
  'pread + crc32, one thread': () => {
    const window = new Uint8Array(1 << 20);
    for (const path of paths) {
      const fd = openSync(path);
      const size = statSync(path).size;
      for (let offset = 0; offset < size; offset += window.length) {
        crc32(window.subarray(0, readSync(fd, window, 0, window.length, offset)));
      }
    }
  },
  'samples()': async () => {
    for await (const sample of dataset.samples({ reuse: true })) touch(sample);
  },
  'samples({ checksum })': async () => {
    for await (const sample of dataset.samples({ checksum: true, reuse: true })) touch(sample);
  },
};

let touched = 0;
function touch(sample) {
  touched += sample.fields.jpg?.[0] ?? 0;
}

const times = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
for (let round = -1; round < Number(values.rounds); round++) {
  for (const [name, run] of Object.entries(contestants)) {
    const start = performance.now();
    await run();
    if (round >= 0) times[name].push((performance.now() - start) / 1000);
  }
}
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
const ratio = (a, b) => median(times[a].map((time, round) => times[b][round] / time));
for (const [name, list] of Object.entries(times)) {
  const seconds = median(list);
  if (name.startsWith('samples')) rate(`${name}, samples/s`, dataset.size / seconds);
  console.log(`${name}: ${Math.round(dataset.size / seconds)} samples/s, ${(bytes / seconds / 1e9).toFixed(2)} GB/s`);
}
console.log(`samples() / cat: ${ratio('samples()', 'cat').toFixed(2)}`);
console.log(
  `samples({ checksum }) / pread + crc32: ${ratio('samples({ checksum })', 'pread + crc32, one thread').toFixed(2)}`,
);
await dataset.close();
if (touched === 0) throw new Error('No sample has a jpg: nothing was measured.');
