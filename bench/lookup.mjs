// Looks samples up by key and by number among 1.28 million, in a dataset whose shards are holes in the disk: indexes are
// real, payloads are zeros. Usage: node bench/lookup.mjs [samples] [samples a shard]
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { crc32, createManifest, writeManifest, writeShardIndex } from '@shardtool/format';
import { openDataset } from '@shardtool/reader';
import { cost } from './figures.mjs';

const samples = Number(process.argv[2] ?? 1_281_167);
const shardSamples = Number(process.argv[3] ?? 1000);
const lookUps = 10_000;
const imageBytes = 400;
const spanBytes = 2048;

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-lookup-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const started = performance.now();
await makeDataset();
console.log(`${samples.toLocaleString('en')} samples in shards of ${shardSamples}, made in ${seconds(started)} s`);

const dataset = await openDataset(folder);
let asked = performance.now();
await dataset.get(keyOf(Math.floor(samples / 2)));
const first = performance.now() - asked;
cost('first look-up by key, ms', first);
console.log(`first look-up by key: ${first.toFixed(0)} ms`);
await measure('by key, anywhere', (number) => keyOf(number));
await measure('by number, anywhere', (number) => number);
await measure('by key, in one shard', (number) => keyOf(number % shardSamples));
asked = performance.now();
for (let i = 0; i < lookUps; i++) await dataset.numberOf(keyOf(random(samples)));
const numbered = ((performance.now() - asked) / lookUps) * 1000;
cost('number of a key, microseconds', numbered);
console.log(`number of a key: ${numbered.toFixed(1)} microseconds`);
const peak = process.resourceUsage().maxRSS / 1000;
cost('memory, MB', peak);
console.log(`memory: ${Math.round(peak)} MB at most`);
await dataset.close();

async function measure(what, keyOrNumber) {
  const times = [];
  for (let i = 0; i < lookUps; i++) {
    const wanted = keyOrNumber(random(samples));
    const from = performance.now();
    await dataset.get(wanted);
    times.push(performance.now() - from);
  }
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(share * (lookUps - 1))].toFixed(3);
  cost(`${what}, median ms`, Number(at(0.5)));
  console.log(`${what}: median ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

async function makeDataset() {
  const shards = [];
  const sum = crc32(new Uint8Array(imageBytes));
  for (let first = 0; first < samples; first += shardSamples) {
    const rows = Math.min(shardSamples, samples - first);
    const name = String(shards.length).padStart(6, '0');
    const place = (at) => Float64Array.from({ length: rows }, (_, row) => row * spanBytes + at);
    const each = (value) => new Int32Array(rows).fill(value);
    const keys = Array.from({ length: rows }, (_, row) => keyOf(first + row));
    await writeShardIndex(path.join(folder, `${name}.parquet`), {
      samples: rows,
      key: keys,
      source: keys.map((key) => `${key}.JPEG`),
      offset: place(0),
      bytes: new Float64Array(rows).fill(spanBytes),
      fields: new Map([
        [
          'cls',
          {
            offset: place(512),
            bytes: new Float64Array(rows).fill(1),
            crc32: new Uint32Array(rows).fill(crc32(new Uint8Array(1))),
          },
        ],
        [
          'jpg',
          {
            offset: place(1536),
            bytes: new Float64Array(rows).fill(imageBytes),
            crc32: new Uint32Array(rows).fill(sum),
          },
        ],
      ]),
      width: each(500),
      height: each(375),
      orientation: new Uint8Array(rows).fill(1),
      cls: each(7),
      columns: new Map(),
    });
    const file = path.join(folder, `${name}.tar`);
    writeFileSync(file, '');
    truncateSync(file, rows * spanBytes);
    shards.push({
      file: `${name}.tar`,
      bytes: rows * spanBytes,
      samples: rows,
      crc32: '00000000',
      maxSampleBytes: spanBytes,
    });
  }
  const fields = ['cls', 'jpg'].map((name) => ({ name, samples }));
  await writeManifest(folder, createManifest({ format: 'tar', classes: [], fields, columns: [], shards }));
}

/** As ImageNet's: the samples lie in the shards in a mixed order. */
function keyOf(number) {
  const mixed = (number * 7_919_993) % 2 ** 31;
  return `n${String(1440764 + (mixed % 1000)).padStart(8, '0')}/n${mixed % 1000}_${number}`;
}

function random(below) {
  return Math.floor(Math.random() * below);
}

function seconds(from) {
  return ((performance.now() - from) / 1000).toFixed(1);
}
