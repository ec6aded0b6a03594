import { OptionError, option, sentence } from '@shardtool/base';

/** One of several processes that pack a dataset together. */
export interface Part {
  /** From 1. */
  readonly number: number;
  /** {@link OPEN} if the number of parts is only known when they are committed. */
  readonly count: number;
}

/** The number of parts while it is unknown. */
export const OPEN = 0;

/**
 * A part as an option: text such as `3/16`, the third of 16 parts; `{ index: 2, of: 16 }`, the same part with its index
 * from 0; or `auto`, the part that the environment variables of a job scheduler define (see {@link autoPart}).
 */
export type PartOption = string | { readonly index: number; readonly of: number };

/** Reads `3/16`, the third of 16 parts. Throws {@link OptionError}. */
export function parsePart(text: string): Part {
  const [number, count] = (/^(\d{1,6})\/(\d{1,6})$/.exec(text)?.slice(1) ?? []).map(Number);
  if (number !== undefined && count !== undefined && number >= 1 && number <= count) return { number, count };
  throw new OptionError(
    {},
    sentence`The option ${option('part')} must be a part and the number of parts, from "1/16" to "16/16", or "auto", not "${text}".`,
  );
}

/** Like {@link parsePart}, but null for the whole dataset, including `1/1`. */
export function partOf(text: string | undefined): Part | null {
  const part = text === undefined ? null : parsePart(text);
  return part?.count === 1 ? null : part;
}

/**
 * Returns the part as text. `auto` is looked up in `env`. A value of another type is returned as it is, for the checks
 * of the option table. Throws {@link OptionError} for an index outside of its range, and if `auto` finds no part.
 */
export function textOfPart<Other>(part: PartOption | Other, env: NodeJS.ProcessEnv): string | Other {
  if (part === 'auto') return autoPart(env).part;
  if (typeof part !== 'object' || part === null || !('index' in part) || !('of' in part)) return part as string | Other;
  const { index, of } = part;
  if (Number.isInteger(index) && Number.isInteger(of) && index >= 0 && index < of) return `${index + 1}/${of}`;
  const message = sentence`The option ${option('part')} must be { index, of } with whole numbers and an index from 0 to of - 1, not { index: ${String(index)}, of: ${String(of)} }.`;
  throw new OptionError({}, message);
}

/** Like {@link partOf}, and reads `7/*`, the seventh of a number of parts that is only known when they are committed. */
export function writerPartOf(text: string | undefined): Part | null {
  const number = Number(/^(\d{1,6})\/\*$/.exec(text ?? '')?.[1]);
  return number >= 1 ? { number, count: OPEN } : partOf(text);
}

/** A part, and the environment variables that define it. */
export interface PartOfEnvironment {
  readonly part: string;
  readonly variables: string;
}

/** Environment variables that define the part of a process. */
interface PartVariables {
  readonly index: string;
  readonly count: string;
  /** Converts the value of `index` to an index from 0. Default: it is one. */
  readonly indexOf?: (value: number, env: NodeJS.ProcessEnv) => number;
  /** True if `pack` also uses the variables without the option `part`, because each process of the job runs one part. */
  readonly isImplied?: boolean;
}

/** Job schedulers and launchers whose processes know their part, in the order in which `auto` prefers them. */
const PART_VARIABLES: readonly PartVariables[] = [
  // The numbers of an array may start anywhere, and have steps.
  {
    index: 'SLURM_ARRAY_TASK_ID',
    count: 'SLURM_ARRAY_TASK_COUNT',
    indexOf: (id, { SLURM_ARRAY_TASK_MIN = 0, SLURM_ARRAY_TASK_STEP = 1 }) =>
      (id - Number(SLURM_ARRAY_TASK_MIN)) / Number(SLURM_ARRAY_TASK_STEP),
    isImplied: true,
  },
  // Kubernetes sets only the index. The manifest of the Indexed Job must set the count.
  { index: 'JOB_COMPLETION_INDEX', count: 'JOB_COMPLETIONS', isImplied: true },
  { index: 'AWS_BATCH_JOB_ARRAY_INDEX', count: 'AWS_BATCH_JOB_ARRAY_SIZE' },
  { index: 'CLOUD_RUN_TASK_INDEX', count: 'CLOUD_RUN_TASK_COUNT' },
  { index: 'SKYPILOT_NODE_RANK', count: 'SKYPILOT_NUM_NODES' },
  { index: 'OMPI_COMM_WORLD_RANK', count: 'OMPI_COMM_WORLD_SIZE' },
  { index: 'PMI_RANK', count: 'PMI_SIZE' },
  { index: 'RANK', count: 'WORLD_SIZE' },
];

/**
 * Returns the part that this process has in a Slurm job array (`sbatch --array`) or in a Kubernetes Indexed Job, null
 * outside of both. `pack` uses it if the option `part` is omitted. Throws {@link OptionError} if the numbers of an array
 * have gaps, or if the number of parts is unknown.
 */
export function partOfEnvironment(env: NodeJS.ProcessEnv): PartOfEnvironment | null {
  for (const variables of PART_VARIABLES) {
    const found = variables.isImplied ? partOfVariables(env, variables) : null;
    if (found !== null) return found;
  }
  return null;
}

/**
 * Returns the part for `part: 'auto'`: that of a Slurm job array, a Kubernetes Indexed Job, an AWS Batch array job, a
 * Cloud Run job, SkyPilot nodes, Open MPI, PMI (MPICH, Intel MPI) or torchrun. A single process, such as one with
 * WORLD_SIZE=1, has the part `1/1`. Throws {@link OptionError} if no variable is set, if the number of parts is unknown,
 * and if two of them define different parts, because then samples could be packed by no process.
 */
export function autoPart(env: NodeJS.ProcessEnv): PartOfEnvironment {
  const all = PART_VARIABLES.map((variables) => partOfVariables(env, variables)).filter((found) => found !== null);
  const several = all.filter(({ part }) => partOf(part) !== null);
  const found = several[0] ?? all[0];
  if (found === undefined) {
    const names = PART_VARIABLES.map(({ index, count }) => `${index} with ${count}`).join(', ');
    const message = sentence`The option ${option('part')} is "auto", but no environment variable defines a part (${names}); give the part, such as 3/16, or 1/1 to pack everything here.`;
    throw new OptionError({}, message);
  }
  const other = several.find(({ part }) => part !== found.part);
  if (other !== undefined) {
    const message = sentence`The option ${option('part')} is "auto", but ${found.variables} define part ${found.part}, and ${other.variables} define part ${other.part}; give the part, such as 3/16.`;
    throw new OptionError({}, message);
  }
  return found;
}

function partOfVariables(
  env: NodeJS.ProcessEnv,
  { index: indexName, count: countName, indexOf = (value) => value }: PartVariables,
): PartOfEnvironment | null {
  const [value = '', count = ''] = [env[indexName], env[countName]];
  if (value === '') return null;
  if (count === '') {
    // Without the number of parts, every process would pack everything.
    const message = sentence`${indexName}=${value} means that this is one of several processes, but ${countName} is not set, so their number is unknown; set it, or set the option ${option('part')}, for example to ${Number(value) + 1 || 1}/16, or to 1/1 to pack everything here.`;
    throw new OptionError({}, message);
  }
  const index = indexOf(Number(value), env);
  if (Number.isInteger(index) && index >= 0 && index < Number(count)) {
    return { part: `${index + 1}/${count}`, variables: `${indexName} and ${countName}` };
  }
  throw new OptionError(
    {},
    sentence`${indexName}=${value} and ${countName}=${count} do not define a part; set the option ${option('part')}, for example to 3/16, or to 1/1 to pack everything here.`,
  );
}

/** True if this part packs the shard: parts take shards in turn, so that all have about the same amount of work. */
export function isTurnOf({ number, count }: Part, shard: number): boolean {
  return shard % count === number - 1;
}

/** `2/4`, or `2/*`, as a user writes it. */
export function partText({ number, count }: Part): string {
  return `${number}/${count === OPEN ? '*' : count}`;
}
