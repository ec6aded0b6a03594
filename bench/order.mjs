/**
 * Figures of the order of an epoch: how fast it is planned, how long a huge epoch takes to start and to resume, and how well
 * batches are shuffled, compared with a simulation of webdataset's algorithm.
 *
 *   node bench/order.mjs [--json]
 *
 * Needs a build (npm run build). No shard is read: the dataset is a list of counts.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { planEpoch } from '#reader/order/batches';
import { shuffleQuality } from '#reader/order/report/shuffle-quality';
import { rate as asRate, cost } from './figures.mjs';

const HUGE = {
  counts: new Float64Array(40_000).fill(10_000),
  seed: 42,
  epoch: 0,
  streams: 192,
  blockSamples: 32,
  globalBatch: 256,
};
const IMAGENET = { shards: 1281, shardSamples: 1000, classes: 1000, globalBatch: 256 };

/** Cost of the first batch in a new process: milliseconds since its start, and its memory. */
function firstBatch(position) {
  const plan = planEpoch({ ...HUGE, position });
  const blocks = plan.blocks();
  const { block } = plan.rows().next().value;
  for (let ordinal = 0; ordinal <= Math.max(...block); ordinal++) blocks.next();
  const sinceStartMs = performance.now();
  const again = performance.now();
  planEpoch({ ...HUGE, position: position + 5 })
    .blocks()
    .next();
  return { sinceStartMs, planMs: performance.now() - again, rssBytes: process.memoryUsage.rss() };
}

function inFreshProcess(position) {
  const script = fileURLToPath(import.meta.url);
  return JSON.parse(execFileSync(process.execPath, [script, '--first-batch', String(position)], { encoding: 'utf8' }));
}

/** Samples per second of both iterators together, and nanoseconds per row of the rows alone. */
function planRate(samples) {
  const plan = planEpoch({ ...HUGE, lastBatch: 'drop' });
  let started = performance.now();
  let planned = 0;
  for (const block of plan.blocks()) {
    planned += block.samples.length;
    if (planned >= samples) break;
  }
  const blocksMs = performance.now() - started;
  started = performance.now();
  let rows = 0;
  for (const batch of plan.rows()) {
    rows += batch.block.length;
    if (rows >= samples) break;
  }
  const rowsMs = performance.now() - started;
  return { samplesPerSecond: samples / ((blocksMs + rowsMs) / 1000), rowNs: (rowsMs * 1e6) / samples };
}

function ours(streams, blockSamples) {
  const { shards, shardSamples, classes, globalBatch } = IMAGENET;
  const samples = shards * shardSamples;
  const perClass = samples / classes;
  const started = performance.now();
  const {
    shard,
    class: ofClass,
    repeat,
  } = shuffleQuality({
    counts: new Float64Array(shards).fill(shardSamples),
    seed: 42,
    epoch: 0,
    streams,
    blockSamples,
    globalBatch,
    classes: { of: (number) => Math.floor(number / perClass), counts: new Float64Array(classes).fill(perClass) },
  });
  return {
    scheme: `S=${streams}, B=${blockSamples}`,
    held: (streams + 1) * blockSamples,
    shard,
    class: ofClass,
    repeat,
    ms: performance.now() - started,
  };
}

/**
 * A simulation of webdataset's algorithm, not webdataset. The shards are shuffled each epoch and divided among the workers.
 * Each worker reads the samples of its shards in order into a buffer of `bufferSize`, and takes out a random sample for each
 * that it puts in. Until the buffer is full, it puts in two for each, and it takes none out below 100 samples. Each worker
 * makes batches from its own samples; workers take turns.
 */
function webdataset(workers, bufferSize, epochs = 2) {
  const { shards, shardSamples, classes, globalBatch } = IMAGENET;
  const samples = shards * shardSamples;
  const perClass = samples / classes;
  const random = randomNumbers(42);
  const batchesOfEpochs = Array.from({ length: epochs }, () => {
    const order = shuffled(
      Array.from({ length: shards }, (_, k) => k),
      random,
    );
    return Array.from({ length: workers }, (_, worker) => {
      const own = order.filter((_, i) => i % workers === worker);
      const stream = own.flatMap((shard) => Array.from({ length: shardSamples }, (_, i) => shard * shardSamples + i));
      return batched(buffered(stream, bufferSize, random), globalBatch);
    }).flat();
  });
  const [first, second] = batchesOfEpochs;
  const batchThen = new Int32Array(samples).fill(-1);
  for (const [b, batch] of second.entries()) for (const number of batch) batchThen[number] = b;
  const pairs = { shard: 0, class: 0, repeat: 0 };
  for (const batch of first) {
    pairs.shard += equalPairs(batch.map((number) => Math.floor(number / shardSamples)));
    pairs.class += equalPairs(batch.map((number) => Math.floor(number / perClass)));
    pairs.repeat += equalPairs(batch.map((number) => batchThen[number]).filter((b) => b >= 0));
  }
  const all = (first.length * globalBatch * (globalBatch - 1)) / 2;
  return {
    scheme: `webdataset (simulated), ${workers} workers, shuffle(${bufferSize})`,
    held: workers * bufferSize,
    shard: pairs.shard / ((all * (shardSamples - 1)) / (samples - 1)),
    class: pairs.class / ((all * (perClass - 1)) / (samples - 1)),
    repeat: pairs.repeat / ((all * (globalBatch - 1)) / (samples - 1)),
  };
}

function buffered(stream, bufferSize, random) {
  const out = [];
  const buffer = [];
  const take = () => {
    const i = Math.floor(random() * buffer.length);
    out.push(buffer[i]);
    buffer[i] = buffer.at(-1);
    buffer.pop();
  };
  for (let i = 0; i < stream.length; i++) {
    buffer.push(stream[i]);
    if (buffer.length < bufferSize && i + 1 < stream.length) buffer.push(stream[++i]);
    if (buffer.length >= Math.min(100, bufferSize)) take();
  }
  while (buffer.length > 0) take();
  return out;
}

function batched(list, size) {
  return Array.from({ length: Math.floor(list.length / size) }, (_, b) => list.slice(b * size, (b + 1) * size));
}

function equalPairs(values) {
  const seen = new Map();
  let pairs = 0;
  for (const value of values) {
    const before = seen.get(value) ?? 0;
    pairs += before;
    seen.set(value, before + 1);
  }
  return pairs;
}

function shuffled(list, random) {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

/** Numbers in [0, 1) that depend on `seed` alone (a 32-bit linear congruential generator, upper bits mixed). */
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const mixed = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d);
    return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32;
  };
}

function measure() {
  planRate(1_000_000);
  return {
    node: process.version,
    huge: { samples: 400_000_000, shards: 40_000, start: inFreshProcess(0), at90Percent: inFreshProcess(360_000_000) },
    rate: planRate(20_000_000),
    mixing: [ours(192, 32), ours(96, 128), ours(16, 1000), webdataset(8, 1000), webdataset(8, 10_000)],
  };
}

function print({ huge, rate, mixing }) {
  const ms = (value) => `${value.toFixed(0)} ms`;
  cost('first batch of 40,000 shards, ms', huge.start.sinceStartMs);
  cost('its memory, MB', huge.start.rssBytes / 1e6);
  asRate('samples/s planned', rate.samplesPerSecond);
  cost('a row, ns', rate.rowNs);
  console.log('400,000,000 samples in 40,000 shards');
  for (const [name, figures] of [
    ['from the start', huge.start],
    ['from 90 % of the epoch', huge.at90Percent],
  ]) {
    console.log(
      `  ${name}: first batch ${ms(figures.sinceStartMs)} after process start, ${(figures.rssBytes / 1e6).toFixed(0)} MB in all; ` +
        `a plan in a running process ${ms(figures.planMs)}`,
    );
  }
  console.log(
    `  ${(rate.samplesPerSecond / 1e6).toFixed(1)} million samples/s planned, rows alone ${rate.rowNs.toFixed(1)} ns each`,
  );
  console.log(
    '\nmixing, as multiples of a perfect shuffle: 1,281 shards of 1,000 class-sorted samples, batches of 256',
  );
  console.log('| scheme | samples held | shard | class | again |\n|---|---|---|---|---|');
  for (const { scheme, held, shard, class: ofClass, repeat } of mixing) {
    const scores = [shard, ofClass, repeat].map((score) => score.toPrecision(3)).join(' | ');
    console.log(`| ${scheme} | ${held.toLocaleString('en-US')} | ${scores} |`);
  }
}

const { values } = parseArgs({ options: { json: { type: 'boolean' }, 'first-batch': { type: 'string' } } });
if (values['first-batch'] !== undefined) console.log(JSON.stringify(firstBatch(Number(values['first-batch']))));
else if (values.json) console.log(JSON.stringify(measure(), null, 2));
else print(measure());
