import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeHolder, type HeldLock, holderOf, isHeldBy, Lock, tryLock, warnOfWaiting } from '@shardtool/base';
import { OutputLockedError } from './errors.js';

/** Name of the lock of a pack of the whole dataset. */
export const LOCK_FILE = 'pack.lock';

/** A held lock, for threads that write while it is held. */
export type HeldOutput = Pick<Lock, 'path' | 'token'>;

const LOOK_AGAIN_MS = 1000;
const SHORT_WAIT_MS = 50;

/** Takes the lock of an output folder. Throws {@link OutputLockedError} if another process holds it. */
export function lockFolder(folder: string): Lock {
  const lock = tryLock(join(folder, LOCK_FILE));
  return lock instanceof Lock ? lock : refuse(lock);
}

/**
 * Like {@link lockFolder}, but watches a holder on another machine or in another container, which cannot be queried. It
 * waits until the holder writes to its lock again, or has been silent long enough to count as dead.
 */
export async function lockFolderPatiently(folder: string, file: string, signal?: AbortSignal): Promise<Lock> {
  const path = join(folder, file);
  const first = tryLock(path);
  if (first instanceof Lock) return first;
  if (first.state !== 'unknown') refuse(first);
  warnOfWaiting(first);
  for (;;) {
    await sleep(LOOK_AGAIN_MS, undefined, { signal });
    const lock = tryLock(path);
    if (lock instanceof Lock) return lock;
    if (lock.text !== first.text || lock.beatMs !== first.beatMs) refuse(lock);
  }
}

/** Waits for a lock to become free, and reports the wait. */
export class LockWait {
  readonly #lookAgainMs: number;
  readonly #signal: AbortSignal | undefined;
  #reported: string | null = null;

  constructor(lookAgainMs: number, signal: AbortSignal | undefined) {
    this.#lookAgainMs = lookAgainMs;
    this.#signal = signal;
  }

  /** Reports once who holds the lock, and waits until the next attempt. */
  async pause(held: HeldLock): Promise<void> {
    if (this.#reported !== held.text) warnOfWaiting(held);
    this.#reported = held.text;
    await sleep(this.#lookAgainMs, undefined, { signal: this.#signal });
  }
}

/** Runs `work` while no pack uses the folder; waits for a running one. */
export async function inLockedFolder<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const wait = new LockWait(SHORT_WAIT_MS, undefined);
  for (;;) {
    const lock = tryLock(join(folder, LOCK_FILE));
    if (!(lock instanceof Lock)) {
      await wait.pause(lock);
      continue;
    }
    try {
      return await work();
    } finally {
      lock.release();
    }
  }
}

/** Throws {@link OutputLockedError} if a living process holds the lock at `path`. */
export function refuseHeld(path: string): void {
  const held = holderOf(path);
  if (held !== null) refuse(held);
}

function refuse(held: HeldLock): never {
  const { path, state } = held;
  const remedy =
    state === 'stopped' ? 'continue it (kill -CONT) or end it' : `wait for it, or remove ${path} if it no longer runs`;
  const message = `Another process is writing to this dataset and holds ${path}: ${describeHolder(held)}; ${remedy}.`;
  throw new OutputLockedError({ path }, message);
}

/**
 * Throws {@link OutputLockedError} if the lock was taken over. That happens when a process is stopped, or cannot reach
 * its file system, for minutes, and so counts as dead.
 */
export function checkHeld({ path, token }: HeldOutput): void {
  if (isHeldBy(path, token)) return;
  const message = `This process was stopped for so long that another process took over the lock ${path}; wait until that process ends, and run the same command again if it does not finish.`;
  throw new OutputLockedError({ path }, message);
}
