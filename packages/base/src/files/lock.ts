import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { warn } from '../warnings.js';
import { newToken, type ProcessState, stateOf } from './process-identity.js';
import { temporaryName } from './temporary-files.js';
import { NO_LINKS } from './write-atomically.js';

/** The holder of a lock: the content of the lock file, as JSON. */
export interface LockHolder {
  /** Process number and host, for messages. */
  readonly pid: number;
  readonly host: string;
  /** Identifies the process and this hold of the lock; see `newToken`. */
  readonly token: string;
}

/** A lock that another process holds. */
export interface HeldLock {
  readonly path: string;
  /** Null if the file does not name its holder, for example because it is being written at this moment. */
  readonly holder: LockHolder | null;
  readonly state: ProcessState;
  /** When the holder last wrote to the lock file, by the clock of the file system. */
  readonly beatMs: number;
  readonly text: string;
}

/** Interval at which a holder writes to its lock file, so that other processes see that it is alive. */
const BEAT_MS = 10_000;
/** A holder that has been silent for this long counts as dead, unless it is known to be running. */
export const SILENT_MS = 120_000;

/** A lock that this process holds. */
export class Lock {
  readonly path: string;
  readonly token: string;
  readonly #text: string;
  readonly #fd: number;
  readonly #timer: NodeJS.Timeout;

  constructor(path: string, token: string, text: string, fd: number) {
    this.path = path;
    this.token = token;
    this.#text = text;
    this.#fd = fd;
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
  }

  release(): void {
    clearInterval(this.#timer);
    closeSync(this.#fd);
    if (readLock(this.path)?.text === this.#text) rmSync(this.path, { force: true });
  }

  /** Writes the file again: its new time comes from the file system, while `utimes` would set that of this machine. */
  #beat(): void {
    try {
      writeSync(this.#fd, this.#text, 0);
      fsyncSync(this.#fd);
    } catch {
      // The file system is not reachable. Another process may take the lock once this one has been silent for long
      // enough.
    }
  }
}

/** Takes the lock at `path`, or returns its holder. If the holder is dead, the lock is taken over. */
export function tryLock(path: string): Lock | HeldLock {
  for (;;) {
    // Reading an existing lock costs less than trying to create another one.
    const held = holderOf(path);
    if (held !== null) return held;
    const { token, text } = newLockText();
    const fd = createLock(path, token, text);
    if (fd !== null) return new Lock(path, token, text, fd);
  }
}

/** Returns the holder of the lock at `path`, or null. The lock of a dead process is removed. */
export function holderOf(path: string): HeldLock | null {
  const held = lookAtLock(path);
  if (held === null || !isDead(held)) return held;
  removeDead(path, held.text);
  return null;
}

/** Returns the content of the lock at `path`, whether its holder is alive or not. Null if there is no lock. */
export function lookAtLock(path: string): HeldLock | null {
  const found = readLock(path);
  return found && { path, ...found, ...parseHolder(found.text) };
}

/** The content of a lock file of this process; `facts` are kept with it. */
export function newLockText(facts: object = {}): { readonly token: string; readonly text: string } {
  const token = newToken();
  return { token, text: JSON.stringify({ pid: process.pid, host: hostname(), token, ...facts } satisfies LockHolder) };
}

/**
 * Whether the lock at `path` still has this token: another process may have taken over the lock of a process that was
 * silent for too long.
 */
export function isHeldBy(path: string, token: string): boolean {
  return parseHolder(readLock(path)?.text ?? '').holder?.token === token;
}

/** Names the holder of a lock: `process 12 on localhost`. */
export function describeHolder({ holder, state }: HeldLock): string {
  if (holder === null) return 'another process';
  return `process ${holder.pid} on ${holder.host}${state === 'stopped' ? ', which is stopped' : ''}`;
}

/** Interval between two checks of a lock. */
const FIRST_POLL_MS = 1;
const LONGEST_POLL_MS = 20;

/**
 * Runs `work`, which must be synchronous, while no other process runs work under the same lock. Waits at most `mostMs`
 * for the lock without blocking the event loop. Returns undefined if another process held the lock all the time.
 */
export async function underLock<T>(
  path: string,
  mostMs: number,
  work: () => T,
): Promise<{ readonly value: T } | undefined> {
  const end = performance.now() + mostMs;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * 2)) {
    const lock = tryLock(path);
    if (lock instanceof Lock) {
      try {
        return { value: work() };
      } finally {
        lock.release();
      }
    }
    if (performance.now() > end) return undefined;
    await sleep(pollMs);
  }
}

/** Whether the holder has ended, or counts as dead. */
export function isDead({ path, state, beatMs }: HeldLock): boolean {
  if (state === 'gone') return true;
  if (state === 'running') return false;
  return fileSystemNow(path) - beatMs > SILENT_MS;
}

/**
 * The current time by the clock that sets the times of the lock file. On a network file system that is the clock of the
 * server, which may differ from the clock of this machine.
 */
function fileSystemNow(path: string): number {
  const probe = temporaryName(path, newToken());
  const fd = openSync(probe, 'wx');
  try {
    return fstatSync(fd).mtimeMs;
  } finally {
    closeSync(fd);
    rmSync(probe, { force: true });
  }
}

/** Creates the lock file with its whole content, or not at all. Returns null if a lock already exists. */
function createLock(path: string, token: string, text: string): number | null {
  const temporary = temporaryName(path, token);
  try {
    const fd = writeNew(temporary, text);
    try {
      linkSync(temporary, path);
      return fd;
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      // An NFS server may repeat a request whose response was lost. It then finds that the name is taken, by this very
      // file.
      if (code === 'EEXIST' && fstatSync(fd).nlink > 1) return fd;
      closeSync(fd);
      if (code === 'EEXIST') return null;
      if (!NO_LINKS.has(code)) throw error;
    }
    return writeNew(path, text);
  } catch (cause) {
    const error = cause as NodeJS.ErrnoException;
    if (error.code === 'EEXIST') return null;
    throw Object.assign(error, { path });
  } finally {
    rmSync(temporary, { force: true });
  }
}

/**
 * Creates a file and leaves it open. If it cannot be written, it is removed, because a lock without a holder would
 * block every process.
 */
function writeNew(path: string, text: string): number {
  const fd = openSync(path, 'wx');
  try {
    writeSync(fd, text);
    return fd;
  } catch (error) {
    closeSync(fd);
    rmSync(path, { force: true });
    throw error;
  }
}

/**
 * Removes a lock that has this text. If several processes try, each of them removes the dead lock or nothing, but never
 * a new lock.
 */
function removeDead(path: string, text: string): void {
  const aside = temporaryName(path, newToken());
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  try {
    if (readLock(aside)?.text !== text) linkSync(aside, path);
  } catch {
    // Another process holds the lock by now.
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Null if there is no lock. Opening the file makes a network file system fetch its current time. */
function readLock(path: string): { readonly text: string; readonly beatMs: number } | null {
  try {
    const fd = openSync(path, 'r');
    try {
      return { text: readFileSync(fd, 'utf8'), beatMs: fstatSync(fd).mtimeMs };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  // Earlier versions locked caches with dangling links.
  const link = lstatSync(path, { throwIfNoEntry: false });
  return link === undefined ? null : { text: '', beatMs: link.mtimeMs };
}

/**
 * The holder is null if the text does not name a holder. The process of a lock of an earlier version cannot be looked
 * up.
 */
function parseHolder(text: string): Pick<HeldLock, 'holder' | 'state'> {
  try {
    const holder = JSON.parse(text) as LockHolder | null;
    if (typeof holder?.token === 'string') return { holder, state: stateOf(holder.token) };
  } catch {
    // The file is not a lock of shardtool, or is not completely written yet.
  }
  return { holder: null, state: 'unknown' };
}

/** Warns that this process waits for a lock. */
export function warnOfWaiting(held: HeldLock): void {
  const silent = `${SILENT_MS / 1000} seconds`;
  const until =
    held.state === 'running'
      ? 'until it is done'
      : `until that process continues, or until it has not written to the lock for ${silent}`;
  warn('SHARDTOOL_WAITING', `Waiting for ${describeHolder(held)}, which holds ${held.path}, ${until}.`);
}
