import type { Dataset } from '../../dataset/dataset.js';
import { type EpochPlan, planEpoch } from '../../order/batches.js';
import { orderDefaults } from '../../order/defaults.js';
import { resolveBatchSize, resolveRanks } from '../../order/ranks.js';
import { type LoaderState, takeUpState } from '../../order/state.js';
import { type Unit, unitOf } from '../../order/units.js';
import { ORDER_VERSION } from '../../order/words.js';
import { checkEpochSamples, type Selection, type Subset, selectSamples } from '../../selection/selection.js';
import type { CheckedOptions } from '../options.js';
import type { Place } from '../progress.js';
import type { UpcomingEpoch } from '../read/least-bytes.js';

/** Which sample comes when, on this rank, in any epoch. */
export interface LoaderOrder {
  readonly seed: number;
  /** Where the run begins; `isOver`: behind the last batch of that epoch. */
  readonly begin: Place;
  readonly isOver: boolean;
  /** Rows of a batch: of this rank, and of all. */
  readonly batchSize: number;
  readonly globalBatch: number;
  readonly rank: number;
  readonly worldSize: number;
  /** Of all ranks. */
  readonly streams: number;
  readonly blockSamples: number;
  readonly unit: Unit;
  /** Every sample that can come in any epoch. */
  readonly all: Selection;
  selection(epoch: number): Selection;
  plan(epoch: number, position: number): EpochPlan;
  /** The epochs from a place on, without end. */
  upcoming(place: Place): Iterable<UpcomingEpoch>;
  stateAt(place: Place): LoaderState;
}

type OrderRequest = Pick<
  CheckedOptions,
  | 'rank'
  | 'worldSize'
  | 'batchSize'
  | 'globalBatchSize'
  | 'classes'
  | 'keys'
  | 'where'
  | 'weights'
  | 'epochSamples'
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

/** Selects the samples, and settles their order. Reads indexes only where something is selected. Throws OptionError. */
export async function setUpOrder(dataset: Dataset, options: OrderRequest): Promise<LoaderOrder> {
  const { rank, worldSize } = resolveRanks(options);
  const { batchSize, globalBatch } = resolveBatchSize(options, worldSize);
  const counts = Float64Array.from(dataset.shards, (shard) => shard.samples);
  const subset = await selectSamples(
    { classes: options.classes, keys: options.keys, where: options.where, weights: options.weights },
    { counts, classNames: dataset.classes, indexOf: (shard) => dataset.files.index(shard) },
  );
  checkEpochSamples(subset, options.epochSamples);

  const saved = options.state === undefined ? null : takeUp(dataset, subset, options);
  const shuffle = options.shuffle ?? saved?.shuffle ?? true;
  const meanSampleBytes = dataset.size === 0 ? 1 : dataset.bytes / dataset.size;
  const { streams, blockSamples } = saved ?? orderDefaults({ ...options, worldSize, meanSampleBytes, shuffle });
  const seed = saved?.seed ?? options.seed ?? 0;
  // Weights make passes of differing length: the unit is chosen once, or it could change on the way.
  const firstCounts = subset.draw({ seed, epoch: saved?.epoch ?? options.epoch ?? 0 }).counts;
  const unit = saved?.unit ?? options.shuffleUnit ?? unitOf(firstCounts, streams, blockSamples);
  const epochSamples = saved?.epochSamples ?? options.epochSamples;

  const selection = (epoch: number): Selection => subset.draw({ seed, epoch });
  const plan = (epoch: number, position: number): EpochPlan =>
    planEpoch({
      counts: selection(epoch).counts,
      seed,
      epoch,
      streams,
      blockSamples,
      unit,
      shuffle,
      rank,
      worldSize,
      globalBatch,
      lastBatch: options.lastBatch,
      position,
      epochSamples,
    });
  const begin = beginOf(options.epoch, saved);
  const { lastBatch, batches } = plan(begin.epoch, begin.position);
  return {
    seed,
    begin,
    isOver: begin.position > 0 && batches === 0,
    batchSize,
    globalBatch,
    rank,
    worldSize,
    streams,
    blockSamples,
    unit,
    all: subset.all,
    selection,
    plan,
    *upcoming({ epoch, position }) {
      for (let e = epoch; ; e++) yield { plan: plan(e, e === epoch ? position : 0), selection: selection(e) };
    },
    stateAt: ({ epoch, position }) => ({
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
      globalBatch,
      lastBatch,
      position,
    }),
  };
}

function takeUp(dataset: Dataset, subset: Subset, options: OrderRequest): LoaderState {
  return takeUpState(options.state, {
    dataset: dataset.identity,
    selection: subset.identity,
    shuffle: options.shuffle,
    epochSamples: options.epochSamples,
    seed: options.seed,
    streams: options.streams,
    blockSamples: options.blockSamples,
    unit: options.shuffleUnit,
  });
}

/** The state's place, unless another epoch is to be the first. */
function beginOf(epoch: number | undefined, saved: LoaderState | null): Place {
  if (saved === null || (epoch !== undefined && epoch !== saved.epoch)) return { epoch: epoch ?? 0, position: 0 };
  return { epoch: saved.epoch, position: saved.position };
}
