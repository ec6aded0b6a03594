/**
 * Other software's formats read in place against our tar shards of the same photos, in rounds that alternate, and what opening many
 * remote Parquet files takes:
 *
 *   node bench/in-place.mjs [PHOTOS] [--rounds 5] [--images 1500] [--folder FOLDER] [--only loader,own,bytes,opening]
 *
 * - loader: two workers, page cache, RandomResizedCrop 224 and flip, no checksums; the median of the ratios to tar;
 * - own: datasets with DataLoader, StreamingDataset and tf.data (antialiased), each on files that its own writer made, and
 *   our loader on the same files, in turns, with two workers each; whole epochs behind the first;
 * - bytes: what is read beyond what is used, of one epoch of snappy Parquet;
 * - opening: 1,000 Parquet files behind HTTP with 50 ms to each answer.
 *
 * PHOTOS is a folder as `bench/make-photos.mjs` makes it. Python is SHARDTOOL_PYTHON, else python3, with pyarrow; without it there is
 * no Parquet and zip. The own loaders are those that the Pythons of SHARDTOOL_REFEREES have (paths, with ":" between them).
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openDataset } from '@shardtool/reader';
import { convert, pack } from '@shardtool/writer';
import { cost, rate } from './figures.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    images: { type: 'string', default: '1500' },
    folder: { type: 'string', default: os.tmpdir() },
    only: { type: 'string', default: 'loader,own,bytes,opening' },
  },
});
const photos = path.resolve(positionals[0] ?? 'examples/photos');
const only = values.only.split(',');
const rounds = Number(values.rounds);
const images = Number(values.images);
const python = process.env.SHARDTOOL_PYTHON ?? 'python3';
const work = mkdtempSync(path.join(values.folder, 'shardtool-in-place-'));
/** With the usual 192 so few photos would be kept in memory as a whole, and read once. */
const STREAMS = 16;
const FILES = 1000;
const DELAY_MS = 50;

const WRITE_PARQUET = `
import glob, os, sys
import pyarrow as pa, pyarrow.parquet as pq
photos, target, codec = sys.argv[1:]
os.makedirs(target)
paths = sorted(glob.glob(photos + "/*/*"))
names = sorted({path.split("/")[-2] for path in paths})
per_file = 2000
files = (len(paths) + per_file - 1) // per_file
for k in range(files):
    part = paths[k * per_file:(k + 1) * per_file]
    image = pa.array([{"bytes": open(path, "rb").read(), "path": os.path.basename(path)} for path in part])
    table = pa.table({"image": image, "label": [names.index(path.split("/")[-2]) for path in part]})
    pq.write_table(table, f"{target}/train-{k:05}-of-{files:05}.parquet", compression=codec, row_group_size=100, use_dictionary=codec != "none")
`;

const WRITE_ZIP = `
import glob, os, sys, zipfile
photos, target = sys.argv[1:]
os.makedirs(target)
with zipfile.ZipFile(target + "/photos.zip", "w", zipfile.ZIP_STORED) as archive:
    for path in sorted(glob.glob(photos + "/*/*")):
        archive.write(path, "/".join(path.split("/")[-2:]))
`;

function run(program, ...args) {
  const { status, stderr } = spawnSync(python, ['-c', program, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

/** Images a second of one epoch's first `images`, or all, and processor time of each. */
async function imagesPerSecond(place) {
  const dataset = await openDataset(place);
  const loader = dataset.loader({
    reuse: true,
    batchSize: 64,
    transform: 'train224',
    workers: 2,
    checksum: 'never',
    seed: 1,
    streams: STREAMS,
  });
  let rows = 0;
  let start = 0;
  let busy = process.cpuUsage();
  for await (const batch of loader) {
    // Workers have started, and the first blocks are read.
    if (start === 0) {
      start = performance.now();
      busy = process.cpuUsage();
    } else rows += batch.size;
    if (rows >= images) break;
  }
  const perSecond = (1000 * rows) / (performance.now() - start);
  const { user, system } = process.cpuUsage(busy);
  await loader.close();
  await dataset.close();
  return { perSecond, processorMs: (user + system) / 1000 / rows };
}

/** Other software's own loaders: what their Python needs, and what runs. */
const OWN_LOADERS = {
  'parquet, datasets with DataLoader': { modules: 'datasets, torchvision', script: 'hf_datasets.py' },
  'mds, StreamingDataset': { modules: 'streaming', script: 'mosaicml_streaming.py' },
  'tfrecord, tf.data': { modules: 'tensorflow', script: 'tf_data.py', variant: 'antialias' },
};

/** The rates of an own loader, and of ours on the same files, round by round; null where no Python has it. */
async function againstOwn(name) {
  const { modules, script, variant = '' } = OWN_LOADERS[name];
  const referees = process.env.SHARDTOOL_REFEREES?.split(':') ?? [python];
  const own = referees.find((one) => spawnSync(one, ['-c', `import ${modules}`]).status === 0);
  if (own === undefined) return null;
  const place = path.join(work, path.parse(script).name);
  const start = (...args) => {
    const given = [path.join(import.meta.dirname, 'peers', script), '--prepared', place, '--variant', variant, ...args];
    const { status, stdout, stderr } = spawnSync(own, given, { encoding: 'utf8', maxBuffer: 1 << 28 });
    if (status !== 0) throw new Error(stderr);
    return stdout.trim().split('\n').at(-1);
  };
  start('--prepare', '--photos', photos);
  await imagesPerSecond(place);
  const turns = [];
  for (let round = 0; round < rounds; round++) {
    const theirs = JSON.parse(start('--workers', '2', '--batch', '64', '--epochs', '2'));
    turns.push({ theirs, ours: await imagesPerSecond(place) });
  }
  return turns;
}

/** Bytes that this process has asked files for so far. */
function bytesRead() {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))[1]);
}

async function readBeyond(place) {
  const dataset = await openDataset(place);
  const loader = dataset.loader({
    reuse: true,
    batchSize: 64,
    transform: 'raw',
    collate: 'list',
    workers: 1,
    checksum: 'never',
    seed: 1,
    streams: STREAMS,
  });
  const read = [];
  for (let epoch = 0; epoch < 2; epoch++) {
    const before = bytesRead();
    for await (const batch of loader) if (batch.size === 0) throw new Error('a batch without rows');
    read.push(((bytesRead() - before) / dataset.bytes).toFixed(2));
  }
  await loader.close();
  await dataset.close();
  return read;
}

/** Serves one file under many names, each answer after a delay. */
async function opening(file) {
  const bytes = readFileSync(file);
  const counts = { requests: 0, bytes: 0 };
  const server = http.createServer((request, response) => {
    const [, from, to] = /bytes=(\d*)-(\d*)/.exec(request.headers.range ?? '') ?? [null, '0', ''];
    const first = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from);
    const last = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1);
    counts.requests++;
    counts.bytes += last - first + 1;
    setTimeout(() => {
      response.writeHead(206, {
        'content-range': `bytes ${first}-${last}/${bytes.length}`,
        'content-length': last - first + 1,
        etag: '"1"',
      });
      response.end(bytes.subarray(first, last + 1));
    }, DELAY_MS);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const place = `http://127.0.0.1:${server.address().port}/train-{00000..00${FILES - 1}}-of-01000.parquet`;
  const start = performance.now();
  const dataset = await openDataset(place);
  const seconds = (performance.now() - start) / 1000;
  if (dataset.shards.length < FILES) throw new Error('not all files were opened');
  await dataset.close();
  server.close();
  server.closeAllConnections();
  return { seconds, ...counts };
}

try {
  mkdirSync(path.join(work, 'parts'));
  const places = { tar: path.join(work, 'tar'), folder: photos };
  await pack(photos, places.tar, { workers: 2 });
  for (const format of ['mds', 'tfrecord']) {
    places[format] = path.join(work, format);
    await convert(places.tar, places[format], { format });
    // As the other software's writers leave it: without our indexes.
    for (const name of readdirSync(places[format])) {
      if (!name.endsWith(`.${format}`) && name !== 'index.json') rmSync(path.join(places[format], name));
    }
  }
  const hasPython = spawnSync(python, ['-c', 'import pyarrow']).status === 0;
  if (!hasPython) console.log(`${python} with pyarrow is not here: Parquet and zip are left out`);
  else {
    for (const codec of ['none', 'snappy', 'zstd']) {
      places[`parquet ${codec}`] = path.join(work, codec);
      run(WRITE_PARQUET, photos, places[`parquet ${codec}`], codec);
    }
    places.zip = path.join(work, 'zip');
    run(WRITE_ZIP, photos, places.zip);
  }
  const results = [];
  for (let round = only.includes('loader') ? -1 : rounds; round < rounds; round++) {
    const result = {};
    const turns = Object.entries(places);
    // Whatever comes first is not always the same.
    for (const [name, place] of round % 2 === 0 ? turns : turns.reverse()) result[name] = await imagesPerSecond(place);
    // The first round fills the page cache.
    if (round >= 0) results.push(result);
  }
  for (const name of results.length === 0 ? [] : Object.keys(places)) {
    const perSecond = median(results.map((result) => result[name].perSecond));
    const ratio = median(results.map((result) => result[name].perSecond / result.tar.perSecond));
    const busy = median(results.map((result) => result.tar.processorMs / result[name].processorMs));
    rate(`in place, ${name}, of tar`, ratio);
    console.log(
      `${name.padEnd(15)} ${Math.round(perSecond)} images a second, ${ratio.toFixed(3)} of tar, by processor time ${busy.toFixed(3)}`,
    );
  }
  for (const name of only.includes('own') ? Object.keys(OWN_LOADERS) : []) {
    const turns = await againstOwn(name);
    if (turns === null) {
      console.log(`${name}: no Python here has it`);
      continue;
    }
    const ratio = median(turns.map(({ theirs, ours }) => ours.perSecond / theirs.imagesPerSecond));
    const busy = median(turns.map(({ theirs, ours }) => theirs.processorMsPerImage / ours.processorMs));
    const [own, here] = [turns.map(({ theirs }) => theirs.imagesPerSecond), turns.map(({ ours }) => ours.perSecond)];
    rate(`in place, times ${name}`, ratio);
    console.log(
      `${name}: ${Math.round(median(own))} images a second, shardtool on the same files ${Math.round(median(here))}: ` +
        `${ratio.toFixed(2)} times, by processor time ${busy.toFixed(2)}; load ${os.loadavg()[0].toFixed(0)}`,
    );
  }
  if (hasPython) {
    for (const codec of only.includes('bytes') ? ['none', 'snappy'] : []) {
      const [first, second] = await readBeyond(places[`parquet ${codec}`]);
      console.log(`read of parquet ${codec}: ${first} times its images in the first epoch, ${second} in the second`);
    }
    if (only.includes('opening')) {
      const [file] = readdirSync(places['parquet snappy']);
      const { seconds, requests, bytes } = await opening(path.join(places['parquet snappy'], file));
      cost(`opening ${FILES} remote Parquet files, seconds`, seconds);
      console.log(
        `opening ${FILES} files at ${DELAY_MS} ms a request: ${seconds.toFixed(2)} s, ${requests} requests, ${Math.round(bytes / 1000)} kB`,
      );
    }
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
