import { join } from 'node:path';
import { Lock, tryLock } from '@shardtool/base';
import { LockWait } from '../folder-lock.js';
import { isCommitted } from './pack-state.js';

/** Name of the lock of the process that commits. */
const COMMIT_LOCK = 'pack.commit.lock';
const LOOK_AGAIN_MS = 100;

/** One of several processes runs `commit`. The others wait for it and get null, as do all that come later. */
export async function commitOnce<T>(
  output: string,
  commit: (lock: Lock) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | null> {
  const wait = new LockWait(LOOK_AGAIN_MS, signal);
  while (!isCommitted(output)) {
    const lock = tryLock(join(output, COMMIT_LOCK));
    if (!(lock instanceof Lock)) {
      await wait.pause(lock);
      continue;
    }
    try {
      return isCommitted(output) ? null : await commit(lock);
    } finally {
      lock.release();
    }
  }
  return null;
}
