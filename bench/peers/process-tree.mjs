/** Memory and CPU time of a contestant: of its process and of all processes below it. Linux only. */
import fs from 'node:fs';

const INTERVAL_MS = 250;
/** The unit of times in /proc (USER_HZ), which is the same on every current Linux. */
const TICKS_PER_SECOND = 100;

/**
 * Samples the tree below `pid` until it is stopped. `stop()` returns the largest sum in bytes, or null if the kernel does not
 * report it. Each process counts with its proportional set size (proc(5), smaps_rollup), so a page that processes share
 * counts once in total.
 */
export function watchMemory(pid) {
  let peakBytes = 0;
  const sample = () => {
    peakBytes = Math.max(peakBytes, treeBytes(pid));
  };
  const timer = setInterval(sample, INTERVAL_MS);
  return {
    stop() {
      clearInterval(timer);
      return peakBytes === 0 ? null : peakBytes;
    },
  };
}

/**
 * User and system time of the process `pid` and of all below it, in seconds. A process that has ended is included in the sum
 * of the process that waited for it (proc(5), stat: fields 14 to 17).
 */
export function treeCpuSeconds(pid) {
  const fields = readOrEmpty(`/proc/${pid}/stat`)
    .replace(/^.*\) /s, '')
    .split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return childrenOf(pid).reduce((sum, child) => sum + treeCpuSeconds(child), ticks / TICKS_PER_SECOND);
}

/** User and system time so far, in seconds: of all programs of this machine, and of this process with its ended children. */
export function cpuSecondsSoFar() {
  const all = /^cpu +(.*)$/m.exec(readOrEmpty('/proc/stat'))?.[1].split(' ').map(Number) ?? [0, 0, 0];
  const [user, nice, system] = all;
  return { all: (user + nice + system) / TICKS_PER_SECOND, own: treeCpuSeconds(process.pid) };
}

function treeBytes(pid) {
  return processBytes(pid) + childrenOf(pid).reduce((sum, child) => sum + treeBytes(child), 0);
}

function childrenOf(pid) {
  const tasks = readdirOrEmpty(`/proc/${pid}/task`);
  return tasks.flatMap((task) => readOrEmpty(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean));
}

function processBytes(pid) {
  const kibibytes = /^Pss:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/smaps_rollup`))?.[1];
  return Number(kibibytes ?? 0) * 1024;
}

/** Empty for a process that has just ended. */
function readOrEmpty(path) {
  try {
    return fs.readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function readdirOrEmpty(path) {
  try {
    return fs.readdirSync(path);
  } catch {
    return [];
  }
}
