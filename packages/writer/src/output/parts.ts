import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf, removeAbandoned } from '@shardtool/base';
import { LOCK_FILE, refuseHeld } from '../folder-lock.js';
import type { Part } from '../part.js';

/** Name of the lock file of a part in the output folder. */
export function partLock({ number, count }: Part): string {
  return `pack.${number}-of-${count}.lock`;
}

const PART_LOCK = /^pack\.\d+-of-(\d+)\.lock$/;

/** True if a file in the output folder is a lock, or a leftover of one whose process was killed. */
export function isLockFile(name: string): boolean {
  return /^pack\.([\d\w-]+\.)?lock(\.|$)/.test(name);
}

/**
 * Throws {@link OutputLockedError} if a process that cannot run at the same time as `part` uses the folder: a pack of
 * the whole dataset, or a part of another number of parts. For a pack of the whole dataset (`part` is null), any part.
 */
export function checkNeighbours(folder: string, part: Part | null): void {
  for (const name of readdirSync(folder)) {
    const count = PART_LOCK.exec(name)?.[1];
    const isInTheWay =
      part === null ? count !== undefined : name === LOCK_FILE || (count !== undefined && Number(count) !== part.count);
    if (isInTheWay) refuseHeld(join(folder, name));
  }
}

/**
 * Removes locks of killed processes that will not be taken again: of the plan, of the commit, and of finished parts.
 */
export function removeDeadLocks(folder: string): void {
  removeAbandoned(folder, isLockFile);
  for (const name of readdirSync(folder).filter(isLockFile)) {
    try {
      holderOf(join(folder, name));
    } catch {
      // This lock blocks no other process.
    }
  }
}
