import { OptionError, optionName, sentence, total } from '@shardtool/base';
import type { StoredDataset } from '../../../dataset/stored-dataset.js';
import { mixtureOf } from '../../../mixture/settings.js';
import { type EpochPlan, planEpoch } from '../../../order/batches.js';
import { orderDefaults } from '../../../order/defaults.js';
import { planGroups } from '../../../order/groups.js';
import { resolveBatchSize, resolveRanks } from '../../../order/ranks.js';
import { type DatasetState, parseState, takeUpState } from '../../../order/state.js';
import { unitOf } from '../../../order/units.js';
import { ORDER_VERSION } from '../../../order/words.js';
import { selectInOrder } from '../../../selection/custom-order.js';
import { selectableOf } from '../../../selection/selectable.js';
import { type SelectedRun, type Subset, selectOfParts } from '../../../selection/selection.js';
import { beginOf, type Place } from '../../progress.js';
import type { PlanPart, SettledOrder } from './order.js';
import { choiceOf, type OrderRequest, repeatsRefused } from './order-request.js';
import type { OrderSource } from './order-sources.js';

/**
 * Selects the samples of a dataset, and determines their order. Reads indexes only if there is a selection. Throws
 * OptionError.
 */
export async function settleDataset(opened: StoredDataset, options: OrderRequest): Promise<SettledOrder> {
  const { rank, worldSize } = resolveRanks(options);
  const { batchSize, globalBatch } = resolveBatchSize(options, worldSize);
  const given = options.state === undefined ? null : parseState(options.state);
  const epochSamples = given === null ? options.samplesPerEpoch : (given.epochSamples ?? undefined);
  const run = { epochSamples, identity: given?.selection };
  const { dataset, subset, positions, groupSize = 1 } = await select(opened, options, run);
  const saved = options.state === undefined ? null : takeUp(dataset, subset, options);
  const shuffle = positions === undefined && (options.shuffle ?? saved?.shuffle ?? true);
  const { meanSampleBytes } = dataset;
  const usual = () => orderDefaults({ ...options, streams: options.streams, worldSize, meanSampleBytes, shuffle });
  const { blockSamples } = saved ?? usual();
  const repeats = (saved === null ? options.repeats : saved.repeats) ?? 1;
  if (repeats > 1 && groupSize > 1) throw repeatsRefused('groups of indices, which stay together');
  // A custom order is the same with any streams, so it continues on any number of ranks.
  const isFree = saved !== null && positions !== undefined && saved.streams % worldSize !== 0;
  const { streams } = isFree ? usual() : (saved ?? usual());
  const seed = saved?.seed ?? options.seed ?? 0;
  const countsOf = (epoch: number) => subset.draw({ seed, epoch }).counts;
  // With weights, passes differ in length. The unit is therefore chosen once, so that it does not change during the
  // run.
  const firstCounts = countsOf(saved?.epoch ?? options.epoch ?? 0);
  const unit = saved?.unit ?? options.shuffleUnit ?? unitOf(firstCounts, streams, blockSamples);
  const passSamples = total(firstCounts);
  const order = { streams, blockSamples, unit, shuffle, seed, positions };
  const source: OrderSource = {
    ...order,
    dataset: dataset.identity,
    subset,
    firstShard: 0,
    passSamples,
    samples: epochSamples === undefined ? passSamples : epochSamples / repeats,
  };
  return {
    rank,
    worldSize,
    batchSize,
    globalBatch,
    lastBatch: options.lastBatch,
    seed,
    begin: beginOf(options.epoch, saved),
    sources: [source],
    isOnce: options.weights === undefined && positions === undefined && epochSamples === undefined && repeats === 1,
    groupSize,
    streamRanks: repeats === 1 ? worldSize : 1,
    repeats,
    part({ epoch, position }: Place, as: PlanPart): EpochPlan {
      const planned = { ...order, counts: countsOf(epoch), epoch, position, epochSamples, repeats, ...as };
      return positions === undefined || groupSize === 1
        ? planEpoch(planned)
        : planGroups({ ...planned, positions, groupSize });
    },
    stateAt: ({ epoch, position }, lastBatch) => ({
      version: ORDER_VERSION,
      dataset: dataset.identity,
      selection: subset.identity,
      seed,
      epoch,
      streams,
      blockSamples,
      unit,
      shuffle,
      epochSamples: epochSamples ?? null,
      ...(repeats > 1 && { repeats }),
      globalBatch,
      lastBatch,
      position,
    }),
  };
}

interface Selected {
  /** The opened dataset, or the only dataset of a mixture. */
  readonly dataset: StoredDataset;
  readonly subset: Subset;
  readonly positions?: Uint32Array;
  readonly groupSize?: number;
}

/** Returns the selected samples, and the positions of a custom order. */
async function select(opened: StoredDataset, options: OrderRequest, run: SelectedRun): Promise<Selected> {
  const { indices } = options;
  if (indices === undefined) {
    const request = choiceOf(options);
    const [only] = mixtureOf(opened)?.datasets ?? [{ dataset: opened, selection: {} }];
    const part = { request: only!.selection, dataset: selectableOf(only!.dataset, only!.selection) };
    const [subset] = await selectOfParts(request, selectableOf(opened, request), [part], run);
    return { dataset: only!.dataset, subset: subset! };
  }
  const given = (['classes', 'keys', 'where', 'weights', 'shuffle', 'shuffleUnit'] as const).find(
    (name) => options[name] !== undefined,
  );
  if (given !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('indices')} already selects the samples and sets their order: remove ${optionName(given)}, or ${optionName('indices')}.`,
    );
  }
  const counts = opened.shards.map(({ samples }) => samples);
  return { dataset: opened, ...selectInOrder(indices, counts) };
}

function takeUp(dataset: StoredDataset, subset: Subset, options: OrderRequest): DatasetState {
  return takeUpState(options.state, {
    dataset: dataset.identity,
    selection: subset.identity,
    shuffle: options.shuffle,
    epochSamples: options.samplesPerEpoch,
    repeats: options.repeats,
    seed: options.seed,
    streams: options.streams,
    blockSamples: options.blockSamples,
    unit: options.shuffleUnit,
  });
}
