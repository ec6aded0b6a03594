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

/** One of several parts: `{ index: 2, of: 16 }` is the third of 16 parts. */
export interface PartOf {
  readonly index: number;
  readonly of: number;
}

/** A part as an option. `auto` takes the part from the environment variables of a job scheduler: see {@link autoPart}. */
export type PartOption = 'auto' | PartOf;

/** A part of a {@link Writer}. Without `of`, the number of parts is only known when they are committed. */
export type WriterPartOption = 'auto' | { readonly index: number; readonly of?: number | undefined };

/** Reads `3/16`, the third of 16 parts, as the command line and Python spell it. Throws {@link OptionError}. */
export function parsePart(text: string): PartOption {
  if (text === 'auto') return text;
  const [number, of] = (/^(\d{1,6})\/(\d{1,6})$/.exec(text)?.slice(1) ?? []).map(Number);
  if (number !== undefined && of !== undefined && number >= 1 && number <= of) return { index: number - 1, of };
  throw new OptionError(
    {},
    sentence`The option ${option('part')} must be a part and the number of parts, from "1/16" to "16/16", or "auto", not "${text}".`,
  );
}

/**
 * Returns the part of a pack or writer, null for the whole dataset, including the only part of one. `auto` is looked up
 * in `env`. Throws {@link OptionError} for another value, and if `auto` finds no part.
 */
export function partOf(given: WriterPartOption | undefined, env: NodeJS.ProcessEnv): Part | null {
  if (given === undefined) return null;
  const { index, of } = given === 'auto' ? autoPart(env).part : checkedPart(given);
  return of === 1 ? null : { number: index + 1, count: of };
}

/** Like {@link partOf}. The number of parts may be omitted. */
export function writerPartOf(given: WriterPartOption | undefined, env: NodeJS.ProcessEnv): Part | null {
  const { index, of, ...more } = typeof given === 'object' && given !== null ? given : { index: -1, of: 0 };
  const isOpen = isIndex(index) && of === undefined && Object.keys(more).length === 0;
  return isOpen ? { number: index + 1, count: OPEN } : partOf(given, env);
}

function checkedPart(given: unknown): PartOf {
  const { index, of, ...more } = (typeof given === 'object' && given !== null ? given : {}) as Partial<PartOf>;
  const isPart = isIndex(index) && isIndex(of, MOST_PARTS) && index < of && Object.keys(more).length === 0;
  if (isPart) return { index, of };
  const message = sentence`The option ${option('part')} must be "auto" or { index, of } with at most 999,999 parts and an index from 0 to of - 1, such as { index: 2, of: 16 } for the third of 16 parts, not ${shown(given)}.`;
  throw new OptionError({}, message);
}

/** Maximum number of parts: names of shards have six digits for the number of a part. */
const MOST_PARTS = 999_999;

function isIndex(value: unknown, to = MOST_PARTS - 1): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= to;
}

/** The value of an invalid option, for a message. */
function shown(given: unknown): string {
  if (typeof given === 'string') return `"${given}"`;
  if (typeof given !== 'object' || given === null) return String(given);
  return `{ ${Object.entries(given)
    .map(([name, value]) => `${name}: ${shown(value)}`)
    .join(', ')} }`;
}

/** A part, and the environment variables that define it. */
export interface PartOfEnvironment {
  readonly part: PartOf;
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
 * WORLD_SIZE=1, has the only part of one. Throws {@link OptionError} if no variable is set, if the number of parts is unknown,
 * and if two of them define different parts, because then samples could be packed by no process.
 */
export function autoPart(env: NodeJS.ProcessEnv): PartOfEnvironment {
  const all = PART_VARIABLES.map((variables) => partOfVariables(env, variables)).filter((found) => found !== null);
  const several = all.filter(({ part }) => part.of > 1);
  const found = several[0] ?? all[0];
  if (found === undefined) {
    const names = PART_VARIABLES.map(({ index, count }) => `${index} with ${count}`).join(', ');
    const message = sentence`The option ${option('part')} is "auto", but no environment variable defines a part (${names}); set ${setTo(2, 16)} for the third of 16 parts, or ${setTo(0, 1)} to pack everything here.`;
    throw new OptionError({}, message);
  }
  const other = several.find(({ part: { index, of } }) => index !== found.part.index || of !== found.part.of);
  if (other !== undefined) {
    const message = sentence`The option ${option('part')} is "auto", but ${found.variables} define part ${textOf(found.part)}, and ${other.variables} define part ${textOf(other.part)}; set the right one, for example ${setTo(found.part.index, found.part.of)}.`;
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
    const message = sentence`${indexName}=${value} means that this is one of several processes, but ${countName} is not set, which is the number of processes. Set it, or set the part yourself, for example ${setTo(Number(value) || 0, 16)}, or ${setTo(0, 1)} to pack everything here.`;
    throw new OptionError({}, message);
  }
  const index = indexOf(Number(value), env);
  if (Number.isInteger(index) && index >= 0 && index < Number(count)) {
    return { part: { index, of: Number(count) }, variables: `${indexName} and ${countName}` };
  }
  throw new OptionError(
    {},
    sentence`${indexName}=${value} and ${countName}=${count} do not define a part; set it, for example ${setTo(2, 16)}, or ${setTo(0, 1)} to pack everything here.`,
  );
}

/** The option with this part as its value, for messages. */
function setTo(index: number, of: number) {
  return option('part', textOf({ index, of }), `{ index: ${index}, of: ${of} }`);
}

/** True if this part packs the shard: parts take shards in turn, so that all have about the same amount of work. */
export function isTurnOf({ number, count }: Part, shard: number): boolean {
  return shard % count === number - 1;
}

/** `3/16`, as the command line and Python spell it. */
function textOf({ index, of }: PartOf): string {
  return `${index + 1}/${of}`;
}

/** `2/4`, or `2/*` if the number of parts is open, for messages and reports. */
export function partText({ number, count }: Part): string {
  return `${number}/${count === OPEN ? '*' : count}`;
}
