// Looks samples up by key and by number among 1.28 million, in a dataset whose shards are holes in the disk: indexes are
// real, payloads are zeros. Usage: node bench/lookup.mjs [samples] [samples a shard]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openDataset } from '@shardtool/reader';
import { cost } from './figures.mjs';
import { keyOf, makeSparseDataset } from './sparse-dataset.mjs';

const samples = Number(process.argv[2] ?? 1_281_167);
const shardSamples = Number(process.argv[3] ?? 1000);
const lookUps = 10_000;

const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-lookup-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const started = performance.now();
await makeSparseDataset(folder, { samples, shardSamples });
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
for (let i = 0; i < lookUps; i++) await dataset.indexOf(keyOf(random(samples)));
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

function random(below) {
  return Math.floor(Math.random() * below);
}

function seconds(from) {
  return ((performance.now() - from) / 1000).toFixed(1);
}
