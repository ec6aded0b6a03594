import { lstatSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { isGone, ownMark } from './process-mark.js';

/** A lock is held for some file operations. Who holds it longer and cannot be asked has died. */
const OLD_MS = 30_000;
const WAIT = new Int32Array(new SharedArrayBuffer(4));

/** Does some file operations while no other process does any under the same lock. Throws where no lock can be made there. */
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
      symlinkSync(ownMark(), path);
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
    return isGone(readlinkSync(path), Date.now() - lstatSync(path).mtimeMs, OLD_MS);
  } catch {
    return false;
  }
}
