import { mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for what several test files use and none changes; it is removed after the run. */
    shared: string;
  }
}

/** Where Linux has a file system in memory for all. */
const MEMORY = '/dev/shm';
/** Bytes that have to be free there: five times what the files of all tests that run at once take. */
const ROOM = 4 * 2 ** 30;

/** Runs once for each project, before its first test file. */
export default function setup({ provide }: TestProject): () => void {
  const made: string[] = [];
  // Making and removing so many small files on a disk takes a fifteenth of all processor time. Whoever names a folder gets that.
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
