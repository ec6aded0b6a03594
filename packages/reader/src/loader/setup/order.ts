import { OptionError } from '@shardtool/base';
import type { StoredDataset } from '../../dataset/stored-dataset.js';
import { mixtureOf } from '../../mixture/settings.js';
import { type EpochPlan, type PlanOptions, planEpoch } from '../../order/batches.js';
import { bufferCount } from '../../order/block-buffers.js';
import { orderDefaults } from '../../order/defaults.js';
import { type EpochOrder, epochOrder } from '../../order/epoch-order.js';
import { groupsOfBlock, planGroups } from '../../order/groups.js';
import { resolveBatchSize, resolveRanks } from '../../order/ranks.js';
import { type DatasetState, parseState, takeUpState } from '../../order/state.js';
import { type Unit, unitOf } from '../../order/units.js';
import { ORDER_VERSION } from '../../order/words.js';
import { selectInOrder } from '../../selection/custom-order.js';
import { selectableOf } from '../../selection/selectable.js';
import {
  type SelectedRun,
  type Selection,
  type SelectionRequest,
  type Subset,
  selectSamples,
} from '../../selection/selection.js';
import type { OrderState } from '../loader-state.js';
import type { CheckedOptions } from '../options.js';
import { beginOf, type Place, startAfter } from '../progress.js';
import type { UpcomingEpoch } from '../read/least-bytes.js';
import { setUpMixtureOrder } from './mixture-order.js';
import { isOnce, refuseChoices } from './mixture-request.js';

/** The rank of a plan, and how the plan is divided into batches. */
export type PlanPart = Pick<PlanOptions, 'rank' | 'worldSize' | 'globalBatch' | 'lastBatch' | 'ownOnly'>;

/** Which sample comes when, on this rank, in any epoch. */
export interface LoaderOrder {
  readonly origin: SampleOrigin;
  /** Identities of the selections of each dataset. Together with those of the datasets, they determine the samples. */
  readonly identities: readonly string[];
  /** Where the run begins; `isOver`: after the last batch of that epoch. */
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
  /** The dataset, or those of a mixture, in the order of their shards. */
  readonly sources: readonly SourceOrder[];
  plan(place: Place): EpochPlan;
  /** The same order, as another rank or other batches have it. */
  part(place: Place, as: PlanPart): EpochPlan;
  /** Whether an epoch is every sample once. */
  readonly isOnce: boolean;
  readonly isScattered: boolean;
  /** Samples of a custom order that stay together on one rank and in one batch, in a row; 1: there are no groups. */
  readonly groupSize: number;
  /** The epochs from a place on, without end. */
  upcoming(place: Place): Iterable<UpcomingEpoch>;
  /**
   * Number of blocks that this rank holds if `prefetchBatches` batches are made ahead, and number of samples in them.
   */
  held(prefetchBatches: number): { readonly buffers: number; readonly samples: number };
  /** Whether an epoch that begins at a place goes through every sample. */
  readsAll(place: Place): boolean;
  stateAt(place: Place): OrderState;
  /** Returns the state with other weights of the datasets from there on. Only a mixture has this function. */
  withWeights?(state: unknown, weights: readonly number[]): OrderState;
}

/** The passes over one dataset, without end. */
export interface SourceOrder {
  /** Among the shards of all datasets, the number of its first. */
  readonly firstShard: number;
  readonly unit: Unit;
  readonly blockSamples: number;
  /** Of its own shards. */
  selection(pass: number): Selection;
  orderOf(pass: number): EpochOrder;
  readonly passesAnEpoch: number;
  /** Number of samples of all datasets that are read by the time that `samples` of this dataset's passes are read. */
  positionOf(samples: number): number;
}

/** Which sample a row of a shard is. */
export interface SampleOrigin {
  /** By shard: the number in its dataset of its first sample. */
  readonly firstSample: Float64Array;
  /** Dataset of each shard in a mixture; null for a single dataset. */
  readonly sourceOfShard: Int32Array | null;
  /** By dataset: with epoch and number the origin of a sample's random numbers. */
  readonly seeds: readonly number[];
}

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

type DatasetOrderRequest = Omit<OrderRequest, keyof SelectionRequest> & SelectionRequest;

/** Settles the order of a dataset, or of a mixture of several. Throws OptionError. */
export async function setUpOrder(dataset: StoredDataset, options: OrderRequest): Promise<LoaderOrder> {
  const mixture = mixtureOf(dataset);
  if (mixture === null) return setUpDatasetOrder(dataset, options);
  refuseChoices(options);
  const [only, ...others] = mixture.datasets;
  if (others.length > 0 || !isOnce(mixture.policy)) return setUpMixtureOrder(mixture, options);
  const order = await setUpDatasetOrder(only!.dataset, { ...options, ...only!.selection });
  return { ...order, origin: { ...order.origin, sourceOfShard: new Int32Array(dataset.shards.length) } };
}

/** Selects the samples and determines their order. Reads indexes only if there is a selection. Throws OptionError. */
async function setUpDatasetOrder(dataset: StoredDataset, options: DatasetOrderRequest): Promise<LoaderOrder> {
  const { rank, worldSize } = resolveRanks(options);
  const { batchSize, globalBatch } = resolveBatchSize(options, worldSize);
  const given = options.state === undefined ? null : parseState(options.state);
  const epochSamples = given === null ? options.samplesPerEpoch : (given.epochSamples ?? undefined);
  const run = { epochSamples, identity: given?.selection };
  const { subset, positions, groupSize = 1 } = await select(dataset, options, run);
  const saved = options.state === undefined ? null : takeUp(dataset, subset, options);
  const shuffle = positions === undefined && (options.shuffle ?? saved?.shuffle ?? true);
  const { meanSampleBytes } = dataset;
  const usual = () => orderDefaults({ ...options, streams: options.streams, worldSize, meanSampleBytes, shuffle });
  const { blockSamples } = saved ?? usual();
  // A custom order is the same with any streams, so it continues on any number of ranks.
  const isFree = saved !== null && positions !== undefined && saved.streams % worldSize !== 0;
  const { streams } = isFree ? usual() : (saved ?? usual());
  const seed = saved?.seed ?? options.seed ?? 0;
  // Weights make passes of differing length: the unit is chosen once, or it could change on the way.
  const firstCounts = subset.draw({ seed, epoch: saved?.epoch ?? options.epoch ?? 0 }).counts;
  const unit = saved?.unit ?? options.shuffleUnit ?? unitOf(firstCounts, streams, blockSamples);

  const selection = (epoch: number): Selection => subset.draw({ seed, epoch });
  const part = ({ epoch, position }: Place, as: PlanPart): EpochPlan => {
    const { counts } = selection(epoch);
    const planned = { counts, seed, epoch, streams, blockSamples, unit, shuffle, position, epochSamples, ...as };
    if (positions === undefined || groupSize === 1) return planEpoch({ ...planned, positions });
    return planGroups({ ...planned, positions, groupSize });
  };
  const plan = (place: Place): EpochPlan => part(place, { rank, worldSize, globalBatch, lastBatch: options.lastBatch });
  const begin = beginOf(options.epoch, saved);
  const { lastBatch, batches } = plan(begin);
  return {
    origin: { firstSample: dataset.files.firstSample, sourceOfShard: null, seeds: [seed] },
    identities: [subset.identity],
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
    sources: [
      {
        firstShard: 0,
        unit,
        blockSamples,
        selection,
        orderOf: (pass) => {
          const { counts } = selection(pass);
          return epochOrder({ counts, seed, epoch: pass, streams, blockSamples, unit, shuffle, positions });
        },
        passesAnEpoch: 1,
        positionOf: (samples) => samples,
      },
    ],
    isOnce: options.weights === undefined && positions === undefined && epochSamples === undefined,
    isScattered: positions !== undefined,
    groupSize,
    plan,
    part,
    *upcoming(place) {
      for (let next = place; ; next = startAfter(next)) {
        yield { plan: plan(next), selection: selection(next.epoch) };
      }
    },
    held: (prefetchBatches) => {
      const ofBlock = groupsOfBlock(blockSamples, groupSize);
      const sizes = { blockSamples: ofBlock, batchSize: Math.ceil(batchSize / groupSize) };
      const buffers = bufferCount({ streams, worldSize, ...sizes, prefetchBatches });
      return { buffers, samples: buffers * ofBlock * groupSize };
    },
    readsAll: ({ position }) => position === 0,
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

/** Returns the selected samples, and the positions of a custom order. */
async function select(
  dataset: StoredDataset,
  options: DatasetOrderRequest,
  run: SelectedRun,
): Promise<{ readonly subset: Subset; readonly positions?: Uint32Array; readonly groupSize?: number }> {
  const { indices } = options;
  if (indices === undefined) {
    const request = { classes: options.classes, keys: options.keys, where: options.where, weights: options.weights };
    return { subset: await selectSamples(request, selectableOf(dataset, request), run) };
  }
  const given = (['classes', 'keys', 'where', 'weights', 'shuffle', 'shuffleUnit'] as const).find(
    (name) => options[name] !== undefined,
  );
  if (given !== undefined) {
    throw new OptionError({}, `indices says which samples come, and when: leave out ${given}, or indices.`);
  }
  return selectInOrder(
    indices,
    dataset.shards.map(({ samples }) => samples),
  );
}

function takeUp(dataset: StoredDataset, subset: Subset, options: DatasetOrderRequest): DatasetState {
  return takeUpState(options.state, {
    dataset: dataset.identity,
    selection: subset.identity,
    shuffle: options.shuffle,
    epochSamples: options.samplesPerEpoch,
    seed: options.seed,
    streams: options.streams,
    blockSamples: options.blockSamples,
    unit: options.shuffleUnit,
  });
}
