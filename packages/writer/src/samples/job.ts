import type { StorageOptions } from '@shardtool/storage';
import { type CheckedOutputOptions, checkWriterOptions } from '../options.js';
import { atDestination, openDestination } from '../output/destination.js';
import { isCommitted } from '../output/pack-state.js';
import { readPartNotes } from '../output/part-notes.js';
import { layoutOfChoice } from '../shard/layout-choice.js';
import type { WriterOptions } from './writer.js';
import { openWhole, release } from './writer-output.js';

/**
 * Prepares the output for the parts of a job, before its first task writes. Throws OutputNotEmptyError if it contains
 * something; with `overwrite`, removes what an earlier pack or writer left there.
 */
export async function prepareJob(output: string, options: WriterOptions): Promise<void> {
  const { classes: _, columns: __, ...given } = options;
  await clear(output, checkWriterOptions(given));
}

/**
 * Removes the output of a job that has failed. Leaves a committed dataset, and parts of another job, as they are. Throws
 * OutputLockedError if a task of the job is still writing.
 */
export async function abandonJob(output: string, job: string, storage?: StorageOptions): Promise<void> {
  const upload = { part: 'abandon', staging: undefined, signal: undefined, storage };
  const isLeft = await atDestination(await openDestination(output, upload), async (destination) => {
    await destination.fetch(false);
    const notes = readPartNotes(destination.folder);
    return notes.length > 0 && notes.every((note) => note.options.job === job) && !isCommitted(destination.folder);
  });
  if (isLeft) await clear(output, { ...checkWriterOptions({ storage }), overwrite: true });
}

async function clear(output: string, options: CheckedOutputOptions): Promise<void> {
  const facts = { layout: await layoutOfChoice(options), classes: [], columns: new Map() };
  await release(await openWhole(output, options, facts));
}
