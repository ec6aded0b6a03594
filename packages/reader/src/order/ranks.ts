import { OptionError, optionName, type Sentence, sentence } from '@shardtool/base';

/** The rank of this process among the processes that share an epoch. */
export interface Ranks {
  readonly rank: number;
  readonly worldSize: number;
  /** Source of the two values, for messages: `options`, the name of a framework, names of variables, or `default`. */
  readonly source: string;
}

/** Everything outside of the options that can determine the rank of a process. */
export interface RankSources {
  readonly environment: Environment;
  /** What frameworks that have been initialised say, such as torch.distributed and jax.distributed. */
  readonly frameworks?: readonly Ranks[] | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The rank according to one source. Some variables may be set without the others. */
interface Claim {
  readonly rank: number | null;
  readonly worldSize: number | null;
  readonly source: string;
  /**
   * The error if the source is incomplete and no earlier source determines the rank. With `isFinal`, Slurm does not
   * determine it either.
   */
  readonly gap?: { readonly message: Sentence; readonly isFinal: boolean };
}

const DEFAULT_BATCH_SIZE = 64;

/** Slurm numbers the steps of batch scripts and interactive shells from here on. */
const FIRST_RESERVED_SLURM_STEP = 0xfffffff0;
/** Names of jobs that are interactive shells. Lightning uses the same names. */
const INTERACTIVE_SLURM_JOBS = ['bash', 'interactive'];

/**
 * The only place that decides rank and world size. The first complete source counts: the options, an initialised
 * torch.distributed or jax.distributed, RANK and WORLD_SIZE (torchrun), LOCAL_RANK and WORLD_SIZE (Lightning),
 * SLURM_PROCID and SLURM_NTASKS (srun), or else 0 of 1. If the options set the rank, other sources are ignored. Throws
 * {@link OptionError} if two other sources disagree, if one value of a pair is missing, and for a rank that does not
 * exist.
 */
export function resolveRanks(
  options: { readonly rank?: number | undefined; readonly worldSize?: number | undefined },
  { environment, frameworks = [] }: RankSources = { environment: process.env },
): Ranks {
  const { rank, worldSize } = options;
  if (worldSize !== undefined && (rank !== undefined || worldSize === 1)) {
    return checkRanks({ rank: rank ?? 0, worldSize, source: 'options' });
  }
  if (rank !== undefined || worldSize !== undefined) {
    const [given, missing] = rank === undefined ? ['worldSize', 'rank'] : ['rank', 'worldSize'];
    throw new OptionError(
      {},
      sentence`${optionName(given)} is set without ${optionName(missing)}: set both, or neither.`,
    );
  }
  const claims: Claim[] = [...frameworks];
  const launcher = torchrunClaim(environment) ?? lightningClaim(environment);
  if (launcher !== null) claims.push(launcher);
  const slurm = slurmClaim(environment);
  const chosen = claims.find(isComplete) ?? (slurm !== null && isComplete(slurm) ? slurm : null);
  if (chosen === null || chosen === slurm) {
    const gap = [...claims, slurm].find((claim) => claim?.gap && (chosen === null || claim.gap.isFinal))?.gap;
    if (gap !== undefined) throw new OptionError({}, gap.message);
  }
  if (chosen === null) return { rank: 0, worldSize: 1, source: 'default' };
  for (const claim of claims) if (!agree(chosen, claim)) throw disagreement(chosen, claim);
  if (slurm !== null && !isWithinTasks(chosen, slurm, environment)) throw disagreement(chosen, slurm);
  return checkRanks(chosen);
}

/** RANK and WORLD_SIZE, which torchrun and most launchers set. */
function torchrunClaim({ RANK, WORLD_SIZE, LOCAL_RANK }: Environment): Claim | null {
  if (!RANK && (!WORLD_SIZE || LOCAL_RANK)) return null;
  const [set, missing] = RANK ? ['RANK', 'WORLD_SIZE'] : ['WORLD_SIZE', 'RANK'];
  return {
    rank: RANK ? wholeNumber('RANK', RANK) : null,
    worldSize: WORLD_SIZE ? wholeNumber('WORLD_SIZE', WORLD_SIZE) : null,
    source: RANK && WORLD_SIZE ? 'RANK and WORLD_SIZE' : set,
    gap: {
      message: sentence`${set} is set without ${missing}: set both, or pass rank and ${optionName('worldSize')} as options.`,
      isFinal: true,
    },
  };
}

/** Lightning numbers the processes that it starts on each node. The first ranks are those of the first node. */
function lightningClaim(environment: Environment): Claim | null {
  const { LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE } = environment;
  if (!LOCAL_RANK) return null;
  const [nodeName, nodeText] = nodeRank(environment);
  const [local, node] = [wholeNumber('LOCAL_RANK', LOCAL_RANK), wholeNumber(nodeName, nodeText)];
  const perNode = LOCAL_WORLD_SIZE ? wholeNumber('LOCAL_WORLD_SIZE', LOCAL_WORLD_SIZE) : null;
  if (!WORLD_SIZE) {
    // Lightning leaves LOCAL_RANK behind when a run ends.
    if (local === 0) return null;
    const message = sentence`LOCAL_RANK is ${local}, but neither RANK nor WORLD_SIZE is set: set both, or pass rank and ${optionName('worldSize')} as options.`;
    return { rank: null, worldSize: null, source: 'LOCAL_RANK', gap: { message, isFinal: false } };
  }
  return {
    rank: node === 0 ? local : perNode === null ? null : node * perNode + local,
    worldSize: wholeNumber('WORLD_SIZE', WORLD_SIZE),
    source: 'LOCAL_RANK and WORLD_SIZE',
    gap: {
      message: sentence`${nodeName} is ${node}, but without RANK or LOCAL_WORLD_SIZE the rank of this process is unknown: set RANK, pass rank and ${optionName('worldSize')} as options, or start the loop after torch.distributed is initialised.`,
      isFinal: true,
    },
  };
}

function nodeRank({ NODE_RANK, GROUP_RANK }: Environment): readonly [name: string, value: string] {
  return NODE_RANK ? ['NODE_RANK', NODE_RANK] : ['GROUP_RANK', GROUP_RANK || '0'];
}

/**
 * A task of srun. A batch script, and a shell that salloc or srun opened, have the variables of the tasks that srun
 * could start from them, but are only one process.
 */
function slurmClaim(environment: Environment): Claim | null {
  const { SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID, SLURM_STEP_ID, SLURM_JOB_NAME } = environment;
  if (!SLURM_PROCID || !SLURM_NTASKS) return null;
  if (SLURM_JOB_ID !== undefined && SLURM_STEP_ID === undefined) return null;
  if (Number(SLURM_STEP_ID) >= FIRST_RESERVED_SLURM_STEP) return null;
  const rank = wholeNumber('SLURM_PROCID', SLURM_PROCID);
  const worldSize = wholeNumber('SLURM_NTASKS', SLURM_NTASKS);
  if (SLURM_JOB_NAME === undefined || !INTERACTIVE_SLURM_JOBS.includes(SLURM_JOB_NAME)) {
    return { rank, worldSize, source: 'SLURM_PROCID and SLURM_NTASKS' };
  }
  if (rank === 0) return null;
  // With srun within salloc, task 0 cannot tell that it is not the shell. So the other tasks must not start without an
  // error.
  const message = sentence`SLURM_JOB_NAME is "${SLURM_JOB_NAME}", the name of an interactive shell with one process, but SLURM_PROCID is ${rank}: pass rank and ${optionName('worldSize')} as options, or set SLURM_JOB_NAME to another name.`;
  return { rank: null, worldSize: null, source: 'SLURM_JOB_NAME', gap: { message, isFinal: false } };
}

function isComplete(claim: Claim): claim is Claim & Ranks {
  return claim.rank !== null && claim.worldSize !== null;
}

function agree(chosen: Ranks, { rank, worldSize }: Claim): boolean {
  return (rank === null || rank === chosen.rank) && (worldSize === null || worldSize === chosen.worldSize);
}

/** A task of Slurm may start several ranks, and torchrun numbers its nodes in the order in which they connect. */
function isWithinTasks(chosen: Ranks, slurm: Claim, { TORCHELASTIC_RUN_ID }: Environment): boolean {
  const tasks = slurm.worldSize;
  if (tasks === null) return true;
  if (chosen.worldSize === tasks && !TORCHELASTIC_RUN_ID) return chosen.rank === slurm.rank;
  return chosen.worldSize >= tasks && chosen.worldSize % tasks === 0;
}

function disagreement(chosen: Ranks, other: Claim): OptionError {
  return new OptionError(
    {},
    sentence`${chosen.source} ${verb(chosen.source)} that this is ${said(chosen)}, but ${other.source} ${verb(other.source)} that it is ${said(other)}: pass rank and ${optionName('worldSize')} as options, or fix the one that is wrong.`,
  );
}

function said({ rank, worldSize }: Pick<Claim, 'rank' | 'worldSize'>): string {
  if (worldSize === null) return `rank ${rank}`;
  return rank === null ? `one of ${worldSize} ranks` : `rank ${rank} of ${worldSize}`;
}

function verb(source: string): string {
  return source.includes(' and ') ? 'say' : 'says';
}

/**
 * Rows of a rank's batches, and of all ranks' together. Either may be given; by default a rank has 64. Throws
 * {@link OptionError} if ranks cannot share a global batch evenly, or if both are given and differ.
 */
export function resolveBatchSize(
  options: { readonly batchSize?: number | undefined; readonly globalBatchSize?: number | undefined },
  worldSize: number,
): { batchSize: number; globalBatch: number } {
  const { globalBatchSize } = options;
  if (globalBatchSize === undefined) {
    const batchSize = options.batchSize ?? DEFAULT_BATCH_SIZE;
    return { batchSize, globalBatch: batchSize * worldSize };
  }
  if (globalBatchSize % worldSize !== 0) {
    throw new OptionError(
      {},
      sentence`${optionName('globalBatchSize')} is ${globalBatchSize}, which ${worldSize} ranks cannot share evenly: set a multiple of ${worldSize}.`,
    );
  }
  const batchSize = globalBatchSize / worldSize;
  if (options.batchSize !== undefined && options.batchSize !== batchSize) {
    throw new OptionError(
      {},
      sentence`${optionName('batchSize')} is ${options.batchSize}, but ${optionName('globalBatchSize')} ${globalBatchSize} gives each of ${worldSize} ranks ${batchSize} rows: set only one of them.`,
    );
  }
  return { batchSize, globalBatch: globalBatchSize };
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text);
  throw new OptionError(
    {},
    sentence`${name} is "${text}": set it to a whole number, or pass rank and ${optionName('worldSize')} as options.`,
  );
}

function checkRanks(ranks: Ranks): Ranks {
  const { rank, worldSize, source } = ranks;
  if (Number.isSafeInteger(worldSize) && Number.isSafeInteger(rank) && rank >= 0 && rank < worldSize) {
    return { rank, worldSize, source };
  }
  throw new OptionError(
    {},
    sentence`Invalid rank ${rank} of ${worldSize} (from ${source}): ranks are 0 to ${optionName('worldSize')} - 1.`,
  );
}
