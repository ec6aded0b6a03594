import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for files that several test files use and none changes; it is removed after the run. */
    shared: string;
  }
}

/** The shared memory file system of Linux. */
const MEMORY = '/dev/shm';
/** Bytes that must be free there: five times the files of all tests that run at the same time. */
const ROOM = 4 * 2 ** 30;

/** Runs once for each project, before its first test file. */
export default function setup({ provide }: TestProject): () => void {
  const made: string[] = [];
  // Creating and removing this number of small files on a disk takes a fifteenth of all CPU time. TMPDIR takes precedence.
  if (process.env.TMPDIR === undefined && isRoomy()) {
    process.env.TMPDIR = mkdtempSync(path.join(MEMORY, 'shardtool-tests-'));
    made.push(process.env.TMPDIR);
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'shardtool-shared-'));
  made.push(folder);
  provide('shared', folder);
  return () => {
    for (const folder of made) rmSync(folder, { recursive: true, force: true });
  };
}

/** Tests also start what they compile there. */
function isRoomy(): boolean {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY);
    if (mount === undefined || /\bnoexec\b/.test(mount)) return false;
    const { bavail, bsize } = statfsSync(MEMORY);
    return Math.min(bavail * bsize, freemem()) > ROOM;
  } catch {
    return false;
  }
}
