import { OptionError } from '@shardtool/base';

/** Which of the processes that share an epoch this one is. */
export interface Ranks {
  readonly rank: number;
  readonly worldSize: number;
  /** Where that is from, for people: `options`, the names of the variables, or `default`. */
  readonly source: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_BATCH_SIZE = 64;

/**
 * Rank and number of ranks: the options, else RANK and WORLD_SIZE (torchrun sets them), else SLURM_PROCID and
 * SLURM_NTASKS (srun sets them), else 0 of 1. A script of sbatch itself has those too, with the tasks that srun could
 * start, but is alone: SLURM_STEP_ID is missing there. Throws {@link OptionError} for half a pair and for numbers that
 * do not fit.
 */
export function resolveRanks(
  options: { readonly rank?: number | undefined; readonly worldSize?: number | undefined },
  environment: Environment = process.env,
): Ranks {
  const { rank, worldSize } = options;
  if (worldSize !== undefined && (rank !== undefined || worldSize === 1)) {
    return checkRanks({ rank: rank ?? 0, worldSize, source: 'options' });
  }
  if (rank !== undefined || worldSize !== undefined) {
    const [given, missing] = rank === undefined ? ['worldSize', 'rank'] : ['rank', 'worldSize'];
    throw new OptionError({}, `${given} is given without ${missing}: give both, or neither.`);
  }
  const { RANK, WORLD_SIZE, SLURM_PROCID, SLURM_NTASKS, SLURM_JOB_ID, SLURM_STEP_ID } = environment;
  if (RANK && WORLD_SIZE) return fromEnvironment('RANK', RANK, 'WORLD_SIZE', WORLD_SIZE);
  if (RANK || WORLD_SIZE) {
    const [set, missing] = RANK ? ['RANK', 'WORLD_SIZE'] : ['WORLD_SIZE', 'RANK'];
    throw new OptionError({}, `${set} is set without ${missing}: set both, or give rank and worldSize as options.`);
  }
  const isBatchScript = SLURM_JOB_ID !== undefined && SLURM_STEP_ID === undefined;
  if (SLURM_PROCID && SLURM_NTASKS && !isBatchScript) {
    return fromEnvironment('SLURM_PROCID', SLURM_PROCID, 'SLURM_NTASKS', SLURM_NTASKS);
  }
  return { rank: 0, worldSize: 1, source: 'default' };
}

/**
 * Rows of a rank's batches, and of all ranks' together. Either may be given; by default a rank has 64. Throws
 * {@link OptionError} where ranks cannot share a global batch evenly, or both are given and differ.
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
      `globalBatchSize is ${globalBatchSize}, which ${worldSize} ranks cannot share evenly: take a multiple of ${worldSize}.`,
    );
  }
  const batchSize = globalBatchSize / worldSize;
  if (options.batchSize !== undefined && options.batchSize !== batchSize) {
    throw new OptionError(
      {},
      `batchSize is ${options.batchSize}, but globalBatchSize ${globalBatchSize} gives each of ${worldSize} ranks ` +
        `${batchSize} rows: give one of the two.`,
    );
  }
  return { batchSize, globalBatch: globalBatchSize };
}

function fromEnvironment(rankName: string, rank: string, sizeName: string, size: string): Ranks {
  const source = `${rankName} and ${sizeName}`;
  return checkRanks({ rank: wholeNumber(rankName, rank), worldSize: wholeNumber(sizeName, size), source });
}

function wholeNumber(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text.trim())) return Number(text);
  throw new OptionError(
    {},
    `${name} is "${text}": it must be a whole number, or rank and worldSize be given as options.`,
  );
}

function checkRanks(ranks: Ranks): Ranks {
  const { rank, worldSize, source } = ranks;
  if (Number.isSafeInteger(worldSize) && Number.isSafeInteger(rank) && rank >= 0 && rank < worldSize) return ranks;
  throw new OptionError(
    {},
    `There is no rank ${rank} of ${worldSize} (from ${source}): ranks go from 0 to worldSize - 1.`,
  );
}
