import { OptionError, optionName, type Sentence, sentence, total } from '@shardtool/base';
import { defaultGroup } from '../../../mixture/defaults.js';
import type { MixtureSettings } from '../../../mixture/settings.js';
import type { MixturePolicy } from '../../../mixture/shares.js';
import { greatestCommonDivisor } from '../../../order/defaults.js';
import { resolveBatchSize } from '../../../order/ranks.js';
import type { SelectionRequest } from '../../../selection/selection.js';
import type { CheckedOptions } from '../../options.js';

/** The options of a loader that determine its order. */
export type OrderRequest = Pick<
  CheckedOptions,
  | 'rank'
  | 'worldSize'
  | 'batchSize'
  | 'globalBatchSize'
  | 'classes'
  | 'keys'
  | 'where'
  | 'weights'
  | 'indices'
  | 'samplesPerEpoch'
  | 'repeats'
  | 'state'
  | 'shuffle'
  | 'shuffleUnit'
  | 'streams'
  | 'blockSamples'
  | 'shuffleBufferSize'
  | 'seed'
  | 'epoch'
  | 'lastBatch'
>;

/** Returns the options that select samples. */
export function choiceOf({ classes, keys, where, weights }: OrderRequest): SelectionRequest {
  return { classes, keys, where, weights };
}

/**
 * True if the order is that of one dataset: without a mixture, in a mixture of one dataset that is read once per epoch, and with
 * `indices`, which count through all datasets of a mixture. Throws {@link OptionError} for settings of a
 * mixture that a custom order would ignore.
 */
export function isAlone(mixture: MixtureSettings | null, { indices }: OrderRequest): boolean {
  if (mixture === null) return true;
  const { datasets, policy } = mixture;
  if (indices === undefined) return datasets.length === 1 && isOnce(policy);
  const way = (['weights', 'repeat', 'perBatch', 'end', 'epochSamples'] as const).find(
    (name) => policy[name] !== undefined,
  );
  const chosen = datasets.find(({ selection }) => Object.values(selection).some((part) => part !== undefined));
  if (way === undefined && chosen === undefined) return true;
  const given = chosen === undefined ? optionName(NAMES_OF_SHARES[way!]) : `the choice of samples of ${chosen.name}`;
  throw new OptionError(
    {},
    sentence`${optionName('indices')} already selects the samples of the mixture and sets their order: open the mixture without ${given}, or remove ${optionName('indices')}.`,
  );
}

/** Names of these settings in the options of a mixture. */
const NAMES_OF_SHARES = {
  weights: 'weight',
  repeat: 'repeat',
  perBatch: 'perBatch',
  end: 'end',
  epochSamples: 'samplesPerEpoch',
} as const;

/** True if every sample of a single dataset is read once per epoch, as without a mixture. */
function isOnce({ repeat, perBatch, epochSamples }: MixturePolicy): boolean {
  return (repeat === undefined || repeat[0] === 1) && perBatch === undefined && epochSamples === undefined;
}

/** Returns the shares of a mixture, with the loader's `samplesPerEpoch` if it is set. Throws {@link OptionError}. */
export function policyOf({ policy }: MixtureSettings, { samplesPerEpoch }: OrderRequest): MixturePolicy {
  if (samplesPerEpoch === undefined) return policy;
  const { epochSamples } = policy;
  if (epochSamples === undefined || epochSamples === samplesPerEpoch)
    return { ...policy, epochSamples: samplesPerEpoch };
  throw new OptionError(
    {},
    sentence`${optionName('samplesPerEpoch')} is ${samplesPerEpoch}, but the mixture was opened with ${epochSamples}: set only one of them.`,
  );
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
  const rows = total(perBatch);
  const { batchSize, globalBatchSize } = options;
  if (batchSize === undefined && globalBatchSize === undefined) {
    return resolveBatchSize({ globalBatchSize: rows }, worldSize);
  }
  const resolved = resolveBatchSize(options, worldSize);
  if (resolved.globalBatch === rows) return resolved;
  throw new OptionError(
    {},
    sentence`${optionName('perBatch')} makes batches of ${rows} rows over all ranks, but ${optionName('batchSize')} makes batches of ${resolved.globalBatch}: remove the batch size, or change ${optionName('perBatch')}.`,
  );
}

/** Number of consecutive samples of a dataset. With `perBatch`, it divides each of the entries. */
export function groupOf(perBatch: readonly number[] | undefined, globalBatch: number, worldSize: number): number {
  if (perBatch === undefined) return defaultGroup(globalBatch, worldSize);
  const shared = perBatch.reduce(greatestCommonDivisor, 0);
  if (shared % worldSize !== 0) {
    throw new OptionError(
      {},
      `${worldSize} ranks cannot share ${perBatch.join(' and ')} rows of each batch evenly: use multiples of ${worldSize}.`,
    );
  }
  return greatestCommonDivisor(shared, defaultGroup(globalBatch, worldSize)) % worldSize === 0
    ? greatestCommonDivisor(shared, defaultGroup(globalBatch, worldSize))
    : worldSize;
}

/** Returns the error for repeated samples together with something else. */
export function repeatsRefused(other: string | Sentence): OptionError {
  return new OptionError({}, sentence`${optionName('repeats')} does not work with ${other}: remove one of the two.`);
}

/** The shuffle buffers are shared by all datasets. */
export function blockSamplesOf({ blockSamples, shuffleBufferSize }: OrderRequest, streams: number): number | undefined {
  if (shuffleBufferSize === undefined) return blockSamples;
  if (blockSamples === undefined) return Math.max(1, Math.round(shuffleBufferSize / streams));
  throw new OptionError(
    {},
    sentence`${optionName('shuffleBufferSize')} and ${optionName('blockSamples')} both set the size of blocks: set only one of them.`,
  );
}
