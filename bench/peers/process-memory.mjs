/** How much memory a contestant takes: its process and all below it, seen from outside. Linux. */
import fs from 'node:fs';

const INTERVAL_MS = 250;

/**
 * Samples the tree below `pid` until stopped; `stop()` returns the largest sum in bytes, or null where the kernel does not
 * say. Each process counts with its proportional set size (proc(5), smaps_rollup): a page that processes share counts
 * once in all.
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
