import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { OutputLockedError } from './errors.js';

/** Who holds the lock of an output folder. */
interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, in the kernel's ticks, so that a reused process number is told apart; null if unknown. */
  readonly started: string | null;
}

export const LOCK_FILE = 'pack.lock';

/**
 * Takes the lock of an output folder and returns what gives it back. A lock that a dead process of this machine left is
 * taken over. Throws {@link OutputLockedError} where another pack holds it.
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, LOCK_FILE);
  const mine: LockHolder = { pid: process.pid, host: hostname(), started: startOf(process.pid) };
  while (!createLock(path, mine)) {
    const text = readLock(path);
    if (text === null) continue;
    const holder = parseHolder(text);
    if (holder === null || isAlive(holder)) refuse(path, holder);
    // Whoever took it over in between has written another text.
    if (readLock(path) === text) rmSync(path, { force: true });
  }
  return () => rmSync(path, { force: true });
}

/** False where the file exists. */
function createLock(path: string, holder: LockHolder): boolean {
  try {
    const fd = openSync(path, 'wx');
    writeSync(fd, JSON.stringify(holder));
    closeSync(fd);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readLock(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Null for a text that is none: the lock is being written at this moment, or is not ours. */
function parseHolder(text: string): LockHolder | null {
  try {
    return JSON.parse(text) as LockHolder;
  } catch {
    return null;
  }
}

/** A process of another machine counts as alive, since nothing can be known about it. */
function isAlive(holder: LockHolder): boolean {
  if (holder.host !== hostname()) return true;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return startOf(holder.pid) === holder.started;
}

/** Field 22 of /proc/PID/stat (proc(5)), behind the name in parentheses; null where there is no /proc. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function refuse(path: string, holder: LockHolder | null): never {
  const who = holder === null ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  throw new OutputLockedError(
    { path },
    `Another pack (${who}) is at work in this folder; wait for it, or remove ${path} if it no longer runs.`,
  );
}
