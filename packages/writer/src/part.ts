import { OptionError } from '@shardtool/base';

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

/** Like {@link parsePart}, but null for the whole dataset, including `1/1`. */
export function partOf(text: string | undefined): Part | null {
  const part = text === undefined ? null : parsePart(text);
  return part?.count === 1 ? null : part;
}

/** A part, and the environment variables that define it. */
export interface PartOfEnvironment {
  readonly part: string;
  readonly variables: string;
}

/**
 * Returns the part that this process has in a Slurm job array (`sbatch --array`; its numbers may start anywhere, and
 * have steps) or in a Kubernetes Indexed Job (from 0; the manifest must set JOB_COMPLETIONS). Null outside of both.
 * Throws {@link OptionError} if the numbers of an array have gaps, or if the number of parts is unknown.
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
    // Kubernetes sets only the index. Without the number of parts, every pod would pack everything.
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

/** True if this part packs the shard: parts take shards in turn, so that all have about the same amount of work. */
export function isTurnOf({ number, count }: Part, shard: number): boolean {
  return shard % count === number - 1;
}

/** `2/4`, as a user writes it. */
export function partText({ number, count }: Part): string {
  return `${number}/${count}`;
}
