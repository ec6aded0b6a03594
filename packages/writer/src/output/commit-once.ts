import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tryLock } from './lock.js';
import { isCommitted } from './pack-state.js';

/** Of the lock that the process holds which commits. */
const COMMIT_LOCK = 'pack.commit.lock';
const LOOK_AGAIN_MS = 100;

/** Of several processes, one does `commit` and the others wait for it: they get null, as do all who come later. */
export async function commitOnce<T>(
  output: string,
  commit: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T | null> {
  while (!isCommitted(output)) {
    const lock = tryLock(join(output, COMMIT_LOCK));
    if (typeof lock !== 'function') {
      await sleep(LOOK_AGAIN_MS, undefined, { signal });
      continue;
    }
    try {
      return isCommitted(output) ? null : await commit();
    } finally {
      lock();
    }
  }
  return null;
}
