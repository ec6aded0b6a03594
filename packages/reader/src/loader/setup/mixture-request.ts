import { OptionError, optionName, sentence } from '@shardtool/base';
import { defaultGroup, greatestCommonDivisor } from '../../mixture/defaults.js';
import type { MixturePolicy } from '../../mixture/shares.js';
import { resolveBatchSize } from '../../order/ranks.js';
import type { OrderRequest } from './order.js';

/** True if every sample of a single dataset is read once per epoch, as without a mixture. */
export function isOnce({ repeat, perBatch, epochSamples }: MixturePolicy): boolean {
  return (repeat === undefined || repeat[0] === 1) && perBatch === undefined && epochSamples === undefined;
}

/** Rejects options that belong to the datasets of a mixture, and not to its loader. */
export function refuseChoices(options: OrderRequest): void {
  for (const name of ['classes', 'keys', 'where'] as const) {
    if (options[name] === undefined) continue;
    throw new OptionError(
      {},
      `${name} chooses samples of one dataset: give it with the dataset, where the mixture is opened.`,
    );
  }
  if (options.indices !== undefined) {
    throw new OptionError(
      {},
      sentence`The datasets of a mixture take turns, so it has no custom order: leave out the option ${optionName('indices')}, or open one dataset.`,
    );
  }
  if (options.weights !== undefined) {
    throw new OptionError(
      {},
      sentence`Weights of single samples make every pass over a dataset another length, so a mixture cannot count what has come of it: leave out the option ${optionName('weights')}, and weigh the datasets instead.`,
    );
  }
  if (options.samplesPerEpoch !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('samplesPerEpoch')} of a mixture is given where the mixture is opened, not to its loader.`,
    );
  }
  if (options.streams !== undefined) {
    throw new OptionError(
      {},
      sentence`The datasets of a mixture share out the streams by themselves: leave out the option ${optionName('streams')}.`,
    );
  }
}

/**
 * Returns the rows of a batch, of this rank and of all ranks. `perBatch` determines them as well. Throws {@link
 * OptionError}.
 */
export function batchOf(
  { perBatch }: MixturePolicy,
  options: OrderRequest,
  worldSize: number,
): { batchSize: number; globalBatch: number } {
  if (perBatch === undefined) return resolveBatchSize(options, worldSize);
  const rows = perBatch.reduce((a, b) => a + b, 0);
  const { batchSize, globalBatchSize } = options;
  if (batchSize === undefined && globalBatchSize === undefined) {
    return resolveBatchSize({ globalBatchSize: rows }, worldSize);
  }
  const resolved = resolveBatchSize(options, worldSize);
  if (resolved.globalBatch === rows) return resolved;
  throw new OptionError(
    {},
    sentence`${optionName('perBatch')} makes batches of ${rows} rows over all ranks, and ${optionName('batchSize')} makes ${resolved.globalBatch}: leave out the batch size, or give another ${optionName('perBatch')}.`,
  );
}

/** Samples of a dataset that follow each other: with `perBatch`, a divisor of each of its entries. */
export function groupOf(perBatch: readonly number[] | undefined, globalBatch: number, worldSize: number): number {
  if (perBatch === undefined) return defaultGroup(globalBatch, worldSize);
  const shared = perBatch.reduce(greatestCommonDivisor, 0);
  if (shared % worldSize !== 0) {
    throw new OptionError(
      {},
      `${worldSize} ranks cannot share ${perBatch.join(' and ')} rows of each batch evenly: take multiples of ${worldSize}.`,
    );
  }
  return greatestCommonDivisor(shared, defaultGroup(globalBatch, worldSize)) % worldSize === 0
    ? greatestCommonDivisor(shared, defaultGroup(globalBatch, worldSize))
    : worldSize;
}

/** The shuffle buffers are shared by all datasets. */
export function blockSamplesOf({ blockSamples, shuffleBufferSize }: OrderRequest, streams: number): number | undefined {
  if (shuffleBufferSize === undefined) return blockSamples;
  if (blockSamples === undefined) return Math.max(1, Math.round(shuffleBufferSize / streams));
  throw new OptionError(
    {},
    sentence`${optionName('shuffleBufferSize')} and ${optionName('blockSamples')} both say how long blocks are: give one of the two.`,
  );
}
