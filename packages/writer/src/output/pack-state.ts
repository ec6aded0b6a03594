import { join } from 'node:path';

/** Below the output folder, while a pack is not committed: its plan, and a note of each shard that is finished. */
export const STATE_FOLDER = 'pack.state';

export function planPath(output: string): string {
  return join(output, STATE_FOLDER, 'plan');
}

/** The note that the shard which is called `stem` is finished. */
export function finishedPath(output: string, stem: string): string {
  return join(output, STATE_FOLDER, `${stem}${FINISHED}`);
}

export const FINISHED = '.json';
