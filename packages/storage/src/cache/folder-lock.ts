import { lstatSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** A lock is held for some file operations. Whoever holds it longer has died, or is on another machine that has. */
const OLD_MS = 30_000;
const WAIT = new Int32Array(new SharedArrayBuffer(4));

/** Does some file operations while no other process does any under the same lock. */
export function underLock<T>(path: string, work: () => T): T {
  take(path);
  try {
    return work();
  } finally {
    rmSync(path, { force: true });
  }
}

function take(path: string): void {
  for (;;) {
    try {
      // A link is made with what it says, or not at all.
      symlinkSync(`${process.pid} ${hostname()}`, path);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (isLeft(path)) {
      // Of several who find it so, one takes it away: the next would take away the lock of whoever has it since.
      underLock(`${path}.left`, () => {
        if (isLeft(path)) rmSync(path, { force: true });
      });
    } else Atomics.wait(WAIT, 0, 0, 1);
  }
}

function isLeft(path: string): boolean {
  try {
    const [pid, host] = readlinkSync(path).split(' ');
    if (host === hostname() && pid !== undefined) return !isAlive(Number(pid));
    return Date.now() - lstatSync(path).mtimeMs > OLD_MS;
  } catch {
    return false;
  }
}

/** Whether a process of this machine lives. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
