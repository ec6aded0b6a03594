import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { holderOf, OptionError, removeAbandoned } from '@shardtool/base';
import { LOCK_FILE, refuseHeld } from '../folder-lock.js';

/** One of several processes that pack a dataset together. */
export interface Part {
  /** From 1. */
  readonly number: number;
  readonly count: number;
}

/** Reads `3/16`, the third of 16 parts. Throws {@link OptionError}. */
export function parsePart(text: string): Part {
  const [number, count] = (/^(\d{1,6})\/(\d{1,6})$/.exec(text)?.slice(1) ?? []).map(Number);
  if (number !== undefined && count !== undefined && number >= 1 && number <= count) return { number, count };
  throw new OptionError(
    {},
    `The option "part" is the number of a part and how many there are, from "1/16" to "16/16", and not "${text}".`,
  );
}

/** The same; null for the whole, which one part of one is, too. */
export function partOf(text: string | undefined): Part | null {
  const part = text === undefined ? null : parsePart(text);
  return part?.count === 1 ? null : part;
}

/** A part, and the variables of the environment that say so. */
export interface PartOfEnvironment {
  readonly part: string;
  readonly variables: string;
}

/**
 * The part that a job array of Slurm makes of this process (`sbatch --array`; its numbers may begin anywhere, and have
 * steps), or a Kubernetes Indexed Job (from 0; the manifest has to set JOB_COMPLETIONS). Null outside of both. Throws
 * {@link OptionError} where the numbers of an array have holes, and where it is unknown how many parts there are.
 */
export function partOfEnvironment(env: NodeJS.ProcessEnv): PartOfEnvironment | null {
  const slurm = partOfVariables(env, 'SLURM_ARRAY_TASK_ID', 'SLURM_ARRAY_TASK_COUNT', (id) => {
    return (id - Number(env.SLURM_ARRAY_TASK_MIN ?? 0)) / Number(env.SLURM_ARRAY_TASK_STEP ?? 1);
  });
  return slurm ?? partOfVariables(env, 'JOB_COMPLETION_INDEX', 'JOB_COMPLETIONS', (index) => index);
}

function partOfVariables(
  env: NodeJS.ProcessEnv,
  idName: string,
  countName: string,
  indexOf: (id: number) => number,
): PartOfEnvironment | null {
  const [id = '', count = ''] = [env[idName], env[countName]];
  if (id === '') return null;
  if (count === '') {
    // Kubernetes sets the index alone. Without a number of parts, every pod would pack everything.
    const message = `${idName}=${id} says that this is one of several processes, and ${countName} is not set, so it is unknown how many there are; set it, or give the option "part" (--part), as ${Number(id) + 1 || 1}/16, or 1/1 to pack everything here.`;
    throw new OptionError({}, message);
  }
  const index = indexOf(Number(id));
  if (Number.isInteger(index) && index >= 0 && index < Number(count)) {
    return { part: `${index + 1}/${count}`, variables: `${idName} and ${countName}` };
  }
  throw new OptionError(
    {},
    `${idName}=${id} and ${countName}=${count} do not say which part this is; give the option "part", as 3/16, or 1/1 for all.`,
  );
}

/** Whether it is this part's turn to pack a shard: the parts take them by turns, so that all have about as much to do. */
export function isTurnOf({ number, count }: Part, shard: number): boolean {
  return shard % count === number - 1;
}

/** The lock file that a part holds in the output folder. */
export function partLock({ number, count }: Part): string {
  return `pack.${number}-of-${count}.lock`;
}

const PART_LOCK = /^pack\.\d+-of-(\d+)\.lock$/;

/** Whether a file in the output folder is a lock, or what one leaves when its process is killed at the wrong moment. */
export function isLockFile(name: string): boolean {
  return /^pack\.([\d\w-]+\.)?lock(\.|$)/.test(name);
}

/**
 * Throws {@link OutputLockedError} where someone is at work in the folder beside whom `part` cannot be: a pack of the
 * whole, or a part of another number of parts; beside a pack of the whole (`part` is null), any part.
 */
export function checkNeighbours(folder: string, part: Part | null): void {
  for (const name of readdirSync(folder)) {
    const count = PART_LOCK.exec(name)?.[1];
    const isInTheWay =
      part === null ? count !== undefined : name === LOCK_FILE || (count !== undefined && Number(count) !== part.count);
    if (isInTheWay) refuseHeld(join(folder, name));
  }
}

/** Removes locks of processes that were killed and that nobody will take again: of the plan, of the commit, of parts that are done. */
export function removeDeadLocks(folder: string): void {
  removeAbandoned(folder, isLockFile);
  for (const name of readdirSync(folder).filter(isLockFile)) {
    try {
      holderOf(join(folder, name));
    } catch {
      // It keeps nobody out.
    }
  }
}
