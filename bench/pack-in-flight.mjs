/**
 * Packing from slow storage: GNU tar and `shardtool pack`, in turn, from a folder with the latency of a network file system,
 * and then from the folder itself. The file system (test/slowfs) is mounted again for each run, since the kernel caches names.
 *
 *   npm run bench:pack-in-flight -- [--count 12000] [--bytes 50000] [--folders 100] [--latency 1000] [--rounds 3]
 *
 * Needs a build (`npm run build`), GNU tar, gcc, libfuse3-dev and permission to mount with FUSE, and room on tmpfs for
 * twice the files. `--latency` is in microseconds, before each look-up and each read.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { buildSlowfs, mountSlow } from '../test/slowfs/slow-folder.mjs';
import { cost, rate } from './figures.mjs';

const CLI = path.join(import.meta.dirname, '../packages/cli/lib/main.js');
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '12000' },
    bytes: { type: 'string', default: '50000' },
    folders: { type: 'string', default: '100' },
    latency: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    tmpfs: { type: 'string', default: '/dev/shm' },
  },
});
const work = fs.mkdtempSync(path.join(values.tmpfs, 'pack-in-flight-'));
const source = path.join(work, 'source');
const out = path.join(work, 'out');

/** Every image is the same JPEG with its number appended: a JPEG may have any bytes after its end. */
function makeImages() {
  const jpeg = fs.readFileSync('test/fixtures/odd-images/one-pixel.jpg');
  const image = Buffer.alloc(Number(values.bytes));
  jpeg.copy(image);
  for (let i = 0; i < Number(values.count); i++) {
    const folder = path.join(source, `class${i % Number(values.folders)}`);
    if (i < Number(values.folders)) fs.mkdirSync(folder, { recursive: true });
    image.writeUInt32LE(i, image.length - 4);
    fs.writeFileSync(path.join(folder, `${i}.jpg`), image);
  }
}

const WRITERS = {
  tar: (from) => ['tar', ['-cf', path.join(out, 'all.tar'), '-C', from, '.']],
  shardtool: (from) => [process.execPath, [CLI, 'pack', '--quiet', from, path.join(out, 'shards')]],
};

/** Seconds, including the start of the process. */
function timed(command, args) {
  fs.mkdirSync(out);
  const began = performance.now();
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const seconds = (performance.now() - began) / 1000;
  fs.rmSync(out, { recursive: true });
  return seconds;
}

async function fromSlow(writer) {
  const slow = await mountSlow(binary, source, Number(values.latency), Number(values.latency));
  if (slow === null) return null;
  try {
    return timed(...WRITERS[writer](slow.path));
  } finally {
    await slow.unmount();
  }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

let binary;
try {
  makeImages();
  binary = buildSlowfs(work);
  for (const [place, measure] of Object.entries({
    'with latency': binary === null ? null : fromSlow,
    'on tmpfs': async (writer) => timed(...WRITERS[writer](source)),
  })) {
    if (measure === null) continue;
    const seconds = { tar: [], shardtool: [] };
    for (let round = 0; round < Number(values.rounds); round++) {
      const order = round % 2 === 0 ? ['tar', 'shardtool'] : ['shardtool', 'tar'];
      for (const writer of order) seconds[writer].push(await measure(writer));
    }
    if (seconds.tar.includes(null)) continue;
    const ratio = median(seconds.tar.map((tar, round) => tar / seconds.shardtool[round]));
    const [tar, shardtool] = [median(seconds.tar), median(seconds.shardtool)];
    console.log(
      `${place}: tar ${tar.toFixed(2)} s, shardtool ${shardtool.toFixed(2)} s, ${ratio.toFixed(2)} times as fast`,
    );
    cost(`pack ${place}, seconds`, shardtool);
    rate(`pack ${place}, times GNU tar`, ratio);
  }
} finally {
  fs.rmSync(work, { recursive: true, force: true });
}
