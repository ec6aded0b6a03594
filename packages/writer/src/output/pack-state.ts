import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { removeAbandoned, removeTemporaries } from '@shardtool/base';
import { MANIFEST_FILE } from '@shardtool/format';
import { type PlanHeader, readPlanHeader } from '../plan/plan-record.js';
import { LIST_FILES } from './lists.js';
import { removeDeadLocks } from './parts.js';

/** Folder below the output, until a pack is committed: its plan, and a note for each finished shard. */
export const STATE_FOLDER = 'pack.state';

export function planPath(output: string): string {
  return join(output, STATE_FOLDER, 'plan');
}

/** Path of the note that the shard called `stem` is finished. */
export function shardNotePath(output: string, stem: string): string {
  return join(output, noteName(stem));
}

/** Path of that note below the output folder. */
export function noteName(stem: string): string {
  return `${STATE_FOLDER}/${stem}${NOTE_EXTENSION}`;
}

export const NOTE_EXTENSION = '.json';

/** Returns the header of the plan in an output folder; null if there is none. Throws {@link PlanRecordError}. */
export function findPlan(output: string): PlanHeader | null {
  try {
    return readPlanHeader(planPath(output));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

export function isCommitted(output: string): boolean {
  return existsSync(join(output, MANIFEST_FILE));
}

/**
 * Removes the files that only running packs need, after the commit. Another process may do the same at the same moment.
 */
export function removeState(output: string): void {
  rmSync(join(output, STATE_FOLDER), { recursive: true, force: true });
  removeTemporaries(output, new Set([MANIFEST_FILE, ...LIST_FILES]));
  // Another part may be writing its own pack.json.
  removeAbandoned(output);
  removeDeadLocks(output);
}
