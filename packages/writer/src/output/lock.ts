import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OutputLockedError } from '../errors.js';

/** Who holds a lock. */
interface LockHolder {
  readonly pid: number;
  readonly host: string;
  /** When the process started, in the kernel's ticks, so that a reused process number is told apart; null if unknown. */
  readonly started: string | null;
  /** Tells two holds of one process apart. */
  readonly token: string;
}

export const LOCK_FILE = 'pack.lock';

/** A holder writes its lock anew this often, so that other machines see that it lives. */
const BEAT_MS = 10_000;
/** A lock of another machine that was not written for so long is nobody's. */
const STALE_MS = 120_000;

/** A lock that another process holds, and its text. */
interface Held {
  readonly holder: LockHolder | null;
  readonly text: string;
}

/** What gives a lock back. */
export type Unlock = () => void;

/**
 * Takes the lock of an output folder and returns what gives it back. A lock that a dead process of this machine left is
 * taken over, and one of another machine that is silent for two minutes. Throws {@link OutputLockedError} where another
 * pack holds it.
 */
export function lockFolder(folder: string, file = LOCK_FILE): Unlock {
  const path = join(folder, file);
  const lock = tryLock(path);
  return typeof lock === 'function' ? lock : refuse(path, lock.holder);
}

/**
 * {@link lockFolder}, but the lock of another machine is watched until it is written again, or is old enough to be
 * nobody's: a process that was killed there cannot give it back.
 */
export async function lockFolderPatiently(folder: string, file: string, signal?: AbortSignal): Promise<Unlock> {
  const path = join(folder, file);
  const first = tryLock(path);
  if (typeof first === 'function') return first;
  if (first.holder?.host === hostname()) refuse(path, first.holder);
  const seen = writtenAt(path);
  for (;;) {
    await sleep(1000, undefined, { signal });
    const lock = tryLock(path);
    if (typeof lock === 'function') return lock;
    if (lock.text !== first.text || writtenAt(path) !== seen) refuse(path, lock.holder);
  }
}

/** Takes the lock at `path`, or says who holds it. */
export function tryLock(path: string): Unlock | Held {
  const holder = { pid: process.pid, host: hostname(), started: startOf(process.pid), token: randomUUID() };
  const mine = JSON.stringify(holder satisfies LockHolder);
  for (;;) {
    const fd = createLock(path, mine);
    if (fd !== null) return keepAlive(path, fd, mine);
    const held = removeDeadLock(path);
    if (held !== null) return held;
  }
}

/** Removes the lock at `path` where its holder is dead. Returns who holds it still; null for nobody. */
export function removeDeadLock(path: string): Held | null {
  const text = readLock(path);
  if (text === null) return null;
  const holder = parseHolder(text);
  const isAlive = holder?.host === hostname() ? isRunning(holder) : !isStale(path);
  if (isAlive) return { holder, text };
  removeLeft(path, text);
  return null;
}

/** Null where the file exists. */
function createLock(path: string, text: string): number | null {
  try {
    const fd = openSync(path, 'wx');
    try {
      writeSync(fd, text);
    } catch (error) {
      // A lock without a holder would keep everybody out.
      closeSync(fd);
      rmSync(path, { force: true });
      throw Object.assign(error as Error, { path });
    }
    return fd;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  }
}

function keepAlive(path: string, fd: number, text: string): Unlock {
  const beat = () => {
    try {
      writeSync(fd, text, 0);
      fsyncSync(fd);
    } catch {
      // The file system is away; whoever finds the lock silent may have it.
    }
  };
  const timer = setInterval(beat, BEAT_MS).unref();
  return () => {
    clearInterval(timer);
    closeSync(fd);
    if (readLock(path) === text) rmSync(path, { force: true });
  };
}

/** Removes a lock that has this text. Of several processes that try, each finds its own or none, never a new one. */
function removeLeft(path: string, text: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    if (readLock(aside) !== text) linkSync(aside, path);
  } catch {
    // Another one has the lock by now.
  } finally {
    rmSync(aside, { force: true });
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

/** Whether the lock was not written for long, by the clock of the file system. */
function isStale(path: string): boolean {
  const written = writtenAt(path);
  const probe = `${path}.${randomUUID()}`;
  const fd = openSync(probe, 'wx');
  try {
    return written !== null && fstatSync(fd).mtimeMs - written > STALE_MS;
  } finally {
    closeSync(fd);
    rmSync(probe, { force: true });
  }
}

function writtenAt(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

/** Whether the holder, a process of this machine, still runs. */
function isRunning(holder: LockHolder): boolean {
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

export function refuse(path: string, holder: LockHolder | null): never {
  const who = holder === null ? 'another process' : `process ${holder.pid} on ${holder.host}`;
  throw new OutputLockedError(
    { path },
    `Another pack (${who}) is at work in this folder; wait for it, or remove ${path} if it no longer runs.`,
  );
}
