// Seconds and peak memory of commands on a dataset of any number of samples, in shards of 10,000 whose payloads are holes
// in the disk. "make" can be repeated if it is interrupted. The commands "erase" change the dataset. So do "append of a day",
// "restore" and "gc", which follow each other.
// Usage: node bench/living.mjs make FOLDER SAMPLES
//        node bench/living.mjs measure FOLDER [NAME ...]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { keyOf, makeSparseDataset } from './sparse-dataset.mjs';

const [task, folder, ...rest] = process.argv.slice(2);
const shardSamples = 10_000;
const classes = 1000;

if (task === 'make') await make(path.resolve(folder), Number(rest[0]));
else if (task === 'measure') await measureAll(path.resolve(folder), rest);
else throw new Error('node bench/living.mjs make FOLDER SAMPLES, or measure FOLDER [NAME ...]');

async function make(target, samples) {
  mkdirSync(target, { recursive: true });
  await makeSparseDataset(target, {
    samples,
    shardSamples,
    classes,
    columns: { score: { type: 'double', of: (number) => (number % 7 === 0 ? null : (number * 7919) % 1000) } },
  });
}

async function measureAll(dataset, names) {
  const { samples } = JSON.parse(readFileSync(path.join(dataset, 'dataset.json'), 'utf8'));
  const side = `${dataset}.side`;
  mkdirSync(side, { recursive: true });
  const shards = Array.from({ length: Math.ceil(samples / shardSamples) }, (_, shard) =>
    String(shard).padStart(6, '0'),
  );
  writeFileSync(
    path.join(dataset, 'pack.json'),
    JSON.stringify({ version: 1, format: 'tar', shards, otherIndexes: [], options: {} }),
  );
  const some = keyOf(Math.floor(samples * 0.6));
  const keys = path.join(side, 'keys.txt');
  // 3,000 samples in 30 shards, and as many in 30 others.
  const toErase = (from) =>
    Array.from({ length: 3000 }, (_, i) =>
      keyOf(Math.floor((from + (Math.floor(i / 100) / 30) * 0.2) * shards.length) * shardSamples + (i % 100) * 97),
    );
  const scores = path.join(side, 'scores.csv');
  writeFileSync(scores, `path,score\n${keyOf(1)}.JPEG,0.5\n`);
  writeFileSync(keys, `${toErase(0.1).join('\n')}\n`);
  const open = `const { openDataset } = await import('@shardtool/reader'); const d = await openDataset(${JSON.stringify(dataset)}); await d.close();`;
  const epoch = `const { openDataset } = await import('@shardtool/reader'); const d = await openDataset(${JSON.stringify(dataset)}); const l = d.loader({ batchSize: 256, transform: 'raw', workers: 2 }); for await (const batch of l) if (batch.size > 0) break; await l.close(); await d.close();`;
  const python = `import shardtool; l = shardtool.Loader(${JSON.stringify(dataset)}, batch_size=256, transform="raw", workers=2); next(iter(l))`;
  const tasks = {
    open: { node: ['--input-type=module', '-e', open] },
    ls: { cli: ['ls', dataset] },
    'ls --samples': { cli: ['ls', dataset, '--samples'] },
    'ls --where': { cli: ['ls', dataset, '--samples', '--where', 'score = 500'] },
    // The first look-up makes the index of the keys.
    'cat KEY': {
      before: () => rmSync(path.join(side, 'sidecars'), { recursive: true, force: true }),
      cli: ['cat', dataset, some],
    },
    'cat KEY again': { cli: ['cat', dataset, some] },
    'cat UNKNOWN': { cli: ['cat', dataset, 'unknown/key'], status: [2] },
    'first batch': { node: ['--input-type=module', '-e', epoch] },
    'first batch, Python': { program: '.venv-torch/bin/python', node: ['-c', python] },
    plan: { cli: ['plan', dataset, '--batch-size', '256', '--world-size', '8'] },
    'plan --where': { cli: ['plan', dataset, '--batch-size', '256', '--where', 'score > 500'] },
    stats: { cli: ['stats', dataset] },
    subset: { cli: ['subset', dataset, 'high', '--where', 'score > 500'] },
    'ls --overlay': { cli: ['ls', dataset, '--overlay', 'high'] },
    relabel: {
      before: () => labelFile(path.join(side, 'labels.csv'), samples),
      cli: ['relabel', dataset, '--labels', path.join(side, 'labels.csv'), '--name', 'relabelled'],
    },
    'plan --overlay': { cli: ['plan', dataset, '--batch-size', '256', '--overlay', 'relabelled'] },
    // No object is new, so that only the planning is measured.
    append: {
      before: () => manifestFile(path.join(side, 'inventory.csv'), samples),
      cli: [
        ...['pack', 's3://bench-bucket', dataset, '--append', '--labels', scores],
        ...['--manifest', path.join(side, 'inventory.csv')],
      ],
    },
    // New objects that are listed alone, as a hundredth of the samples, up to 100,000.
    'append of a day': {
      before: () => dayFiles(side, samples),
      cli: [
        ...['pack', 's3://bench-bucket', dataset, '--append', '--labels', path.join(side, 'scores-of-day.csv')],
        ...['--manifest', path.join(side, 'day.csv')],
      ],
      isServed: true,
    },
    log: { cli: ['log', dataset] },
    restore: { cli: () => ['restore', dataset, firstVersion(dataset)] },
    gc: { cli: ['gc', dataset, '--keep', '1'] },
    'erase --keys': { cli: ['erase', dataset, '--keys', keys] },
    'erase --where': {
      cli: ['erase', dataset, '--where', `key in (${toErase(0.5).map((key) => `'${key}'`)})`],
    },
  };
  for (const name of names.length > 0 ? names : Object.keys(tasks)) {
    const { before, cli, node, program, status = [0], isServed = false } = tasks[name];
    await before?.();
    if (name === 'subset') rmSync(path.join(dataset, 'overlays', 'high.jsonl'), { force: true });
    if (name === 'relabel') rmSync(path.join(dataset, 'overlays', 'relabelled.jsonl'), { force: true });
    const bin = path.resolve(import.meta.dirname, '../packages/cli/lib/start.cjs');
    const args = node ?? [bin, ...(typeof cli === 'function' ? cli() : cli)];
    await measure(name, samples, [program ?? process.execPath, ...args], { status, side, isServed });
  }
}

async function measure(name, samples, args, { status, side, isServed }) {
  const server = isServed ? await imageServer() : null;
  const started = performance.now();
  const child = spawn('/usr/bin/env', ['time', '-f', 'RSS %M CPU %U %S', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // Nothing listens on port 9.
      AWS_ENDPOINT_URL: `http://127.0.0.1:${server?.address().port ?? 9}`,
      AWS_REGION: 'us-east-1',
      SHARDTOOL_UNSIGNED: '1',
      SHARDTOOL_SIDECARS: path.join(side, 'sidecars'),
      PYTHONPATH: path.resolve(import.meta.dirname, '../python/src'),
    },
  });
  let error = '';
  let bytes = 0;
  child.stdout.on('data', (chunk) => {
    bytes += chunk.length;
  });
  child.stderr.on('data', (chunk) => {
    error = (error + chunk).slice(-2000);
  });
  const [code] = await once(child, 'close');
  server?.close();
  const seconds = (performance.now() - started) / 1000;
  const rss = Number(/RSS (\d+)/.exec(error)?.[1] ?? Number.NaN) / 1024;
  const cpu =
    / CPU ([\d.]+) ([\d.]+)/
      .exec(error)
      ?.slice(1)
      .reduce((sum, one) => sum + Number(one), 0) ?? Number.NaN;
  const failed = status.includes(code) ? '' : `  exit ${code}: ${error.slice(-300)}`;
  const count = samples.toLocaleString('en').padStart(12);
  console.log(
    `${count}  ${name.padEnd(18)} ${seconds.toFixed(1).padStart(8)} s (CPU ${cpu.toFixed(1)} s) ${rss.toFixed(0).padStart(7)} MiB ${bytes} bytes${failed}`,
  );
}

/** A table with another class for each sample. */
async function labelFile(file, samples) {
  await writeLines(file, samples, 'key,class\n', (number) => `${keyOf(number)},class ${(number + 1) % classes}\n`);
}

/** An S3 Inventory with the files of all samples. */
async function manifestFile(file, samples) {
  await writeLines(
    file,
    samples,
    '',
    (number) => `"bench-bucket","${keyOf(number)}.JPEG","400","2020-01-01T00:00:00.000Z","${'0'.repeat(32)}"\n`,
  );
}

async function writeLines(file, count, head, lineOf) {
  if (existsSync(file) && statSync(file).size > 0) return;
  const out = createWriteStream(file);
  let text = head;
  for (let number = 0; number < count; number++) {
    text += lineOf(number);
    if (text.length < 1 << 20) continue;
    if (!out.write(text)) await once(out, 'drain');
    text = '';
  }
  out.end(text);
  await once(out, 'finish');
}

/** Answers every request with the same image. */
async function imageServer() {
  const image = readFileSync(path.resolve(import.meta.dirname, '../test/fixtures/odd-images/one-pixel.jpg'));
  const facts = { etag: '"1"', 'last-modified': new Date(0).toUTCString() };
  const server = createServer(({ headers }, response) => {
    const range = /^bytes=(\d+)-(\d+)/.exec(headers.range ?? '');
    const [from, to] =
      range === null ? [0, image.length] : [Number(range[1]), Math.min(image.length, Number(range[2]) + 1)];
    const part = range && { 'content-range': `bytes ${from}-${to - 1}/${image.length}` };
    response.writeHead(range ? 206 : 200, { ...facts, ...part, 'content-length': to - from });
    response.end(image.subarray(from, to));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** The new objects of a day, and labels with the column of the dataset. */
async function dayFiles(side, samples) {
  const { size } = statSync(path.resolve(import.meta.dirname, '../test/fixtures/odd-images/one-pixel.jpg'));
  const count = Math.min(100_000, samples / 100);
  const nameOf = (number) => `${keyOf(samples + number)}.JPEG`;
  await writeLines(path.join(side, 'day.csv'), count, 'key,size\n', (number) => `${nameOf(number)},${size}\n`);
  await writeLines(path.join(side, 'scores-of-day.csv'), count, 'path,score\n', (number) => `${nameOf(number)},0.5\n`);
}

/** The oldest version of a dataset that is kept. */
function firstVersion(dataset) {
  const folder = path.join(dataset, 'versions');
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return names
    .sort((a, b) => statSync(path.join(folder, a)).mtimeMs - statSync(path.join(folder, b)).mtimeMs)[0]
    .slice(0, 64);
}
