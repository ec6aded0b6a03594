/**
 * Packing where the number of files counts: a million files of 200 bytes on tmpfs, with one worker and with two: rate, and
 * memory over time; then how long a pack takes that was killed when half of its shards were there.
 *
 *   npm run bench:pack-million -- [--count 1000000] [--tmpfs /dev/shm]
 *
 * Needs a build (`npm run build`) and Linux, whose /proc says how much memory a process has.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeTinyFiles } from './tiny-files.mjs';

const CLI = fileURLToPath(new URL('../packages/cli/lib/main.js', import.meta.url));
const SHARDS = 16;
const LOOK_MS = 50;
/** So many points of the course of memory are printed. */
const POINTS = 10;

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1000000' }, tmpfs: { type: 'string', default: '/dev/shm' } },
});
const count = Number(values.count);
const work = path.join(values.tmpfs, 'shardtool-pack-million');
const files = path.join(work, 'files');
const out = path.join(work, 'out');

/** Packs, and looks at the process meanwhile: { seconds, memory in bytes at each look }. `kill` ends it where it is true. */
async function pack(workers, kill = () => false) {
  const limits = ['--workers', String(workers), '--max-shard-samples', String(Math.ceil(count / SHARDS))];
  const start = performance.now();
  const child = spawn(process.execPath, [CLI, 'pack', files, out, '--quiet', ...limits], { stdio: 'inherit' });
  const memory = [];
  const watch = setInterval(() => {
    memory.push(memoryOf(child.pid));
    if (kill()) child.kill('SIGKILL');
  }, LOOK_MS);
  const [code, signal] = await new Promise((resolve) => child.on('close', (...end) => resolve(end)));
  clearInterval(watch);
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`pack ended with ${code ?? signal}`);
  return { seconds: (performance.now() - start) / 1000, memory: memory.filter((bytes) => bytes > 0) };
}

/** Resident memory in bytes; 0 where the process has ended. */
function memoryOf(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

function isHalfDone() {
  return fs.existsSync(out) && fs.readdirSync(out).filter((name) => name.endsWith('.tar')).length >= SHARDS / 2;
}

const inMegabytes = (bytes) => Math.round(bytes / 1e6);

function describe({ seconds, memory }) {
  const course = Array.from({ length: POINTS }, (_, i) => memory[Math.floor((i * memory.length) / POINTS)] ?? 0);
  const rate = Math.round(count / seconds).toLocaleString('en');
  const peak = inMegabytes(Math.max(...memory));
  return `${seconds.toFixed(1)} | ${rate} | ${peak} | ${course.map(inMegabytes).join(' ')}`;
}

async function main() {
  const clear = () => fs.rmSync(out, { recursive: true, force: true });
  fs.rmSync(work, { recursive: true, force: true });
  try {
    makeTinyFiles(files, count);
    const machine = `${os.cpus()[0].model}, ${os.availableParallelism()} cores, Node ${process.version}`;
    console.log(`${machine}, ${count.toLocaleString('en')} files on tmpfs\n`);
    console.log('| pack | seconds | files/s | peak MB | MB over time |\n| --- | ---: | ---: | ---: | --- |');
    for (const workers of [1, 2]) {
      console.log(`| ${workers} ${workers === 1 ? 'worker' : 'workers'} | ${describe(await pack(workers))} |`);
      clear();
    }
    await pack(2, isHalfDone);
    console.log(`| 2 workers, the rest after half of the shards | ${describe(await pack(2))} |`);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

await main();
