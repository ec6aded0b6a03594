import { total } from '@shardtool/base';
import type { StoredDataset } from '../../../dataset/stored-dataset.js';
import { sourceSeed } from '../../../mixture/mixture-order.js';
import { mixtureOf } from '../../../mixture/settings.js';
import type { BatchOptions, EpochPlan } from '../../../order/batches.js';
import { bufferCount } from '../../../order/block-buffers.js';
import { groupsOfBlock } from '../../../order/groups.js';

import type { Unit } from '../../../order/units.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import type { Selection } from '../../../selection/selection.js';
import type { OrderState } from '../../loader-state.js';
import { type Place, startAfter } from '../../progress.js';
import { settleDataset } from './dataset-order.js';
import { settleMixture } from './mixture-order.js';
import { isAlone, type OrderRequest } from './order-request.js';
import {
  type OrderSource,
  originOf,
  passesOf,
  type SampleOrigin,
  type SourcePasses,
  samplesOfSources,
  unionOf,
} from './order-sources.js';

/** The rank of a plan, and how the plan is divided into batches. */
export type PlanPart = Omit<BatchOptions, 'position'>;

/** All values that a loader's order depends on: those of a state if the run resumes, otherwise options and defaults. */
export interface SettledOrder {
  readonly rank: number;
  readonly worldSize: number;
  readonly globalBatch: number;
  readonly lastBatch: BatchOptions['lastBatch'];
  /** Rows of a batch of this rank. */
  readonly batchSize: number;
  readonly seed: number;
  /** Position at which the run starts. */
  readonly begin: Place;
  readonly sources: readonly OrderSource[];
  /** Whether an epoch contains every sample once. */
  readonly isOnce: boolean;
  /**
   * Number of consecutive samples of a custom order that stay together on one rank and in one batch; 1 without groups.
   */
  readonly groupSize: number;
  /** Number of ranks that share the streams; 1 if every rank reads all of them. */
  readonly streamRanks: number;
  /** How often each sample comes in a pass. */
  readonly repeats: number;
  part(place: Place, as: PlanPart): EpochPlan;
  stateAt(place: Place, lastBatch: EpochPlan['lastBatch']): OrderState;
  /** Returns the state with other weights from its position on. Only a mixture has this function. */
  withWeights?(state: unknown, weights: readonly number[]): OrderState;
}

/** The order of samples on this rank, in any epoch. */
export interface LoaderOrder extends Omit<SettledOrder, 'stateAt' | 'sources'> {
  readonly origin: SampleOrigin;
  /** Identities of each dataset and of its selection. They determine the samples. */
  readonly identities: readonly string[];
  /** Whether the run starts after the last batch of that epoch. */
  readonly isOver: boolean;
  /** Number of samples of all ranks. */
  readonly streams: number;
  readonly blockSamples: number;
  readonly unit: Unit;
  /** Every sample that can be read in any epoch, and the samples of the epoch in which the run begins. */
  readonly all: Selection;
  readonly first: Selection;
  readonly samplesOf: SamplesOf;
  /** The passes over each dataset, in the order of their shards. */
  readonly passes: readonly SourcePasses[];
  readonly isScattered: boolean;
  plan(place: Place): EpochPlan;
  /** The epochs from a position on, without end. */
  upcoming(place: Place): Iterable<EpochPlan>;
  /**
   * Number of blocks that this rank holds if `prefetchBatches` batches are made ahead, and number of samples in them.
   */
  held(prefetchBatches: number): { readonly buffers: number; readonly samples: number };
  /** Whether an epoch that starts at a position contains every sample; with weights, as many as a whole epoch. */
  readsAll(place: Place): boolean;
  stateAt(place: Place): OrderState;
}

/** Determines the order of a dataset, or of a mixture. Throws OptionError. */
export async function setUpOrder(dataset: StoredDataset, options: OrderRequest): Promise<LoaderOrder> {
  const mixture = mixtureOf(dataset);
  const settled = isAlone(mixture, options)
    ? await settleDataset(dataset, options)
    : await settleMixture(dataset, mixture!, options);
  return loaderOrder(dataset, settled);
}

/** Makes the order of a loader from determined values, for a dataset or a mixture. */
export function loaderOrder(dataset: StoredDataset, settled: SettledOrder): LoaderOrder {
  const { sources, rank, worldSize, globalBatch, batchSize, seed, begin, groupSize, streamRanks, part } = settled;
  const all = total(sources.map(({ samples }) => samples));
  const as = { rank, worldSize, globalBatch, lastBatch: settled.lastBatch };
  const plan = (place: Place): EpochPlan => part(place, as);
  const { lastBatch, batches, unit } = plan(begin);
  const { stateAt, ...kept } = settled;
  return {
    ...kept,
    origin: originOf(dataset, mixtureOf(dataset), (d) => sourceSeed(seed, d)),
    identities: sources.flatMap(({ dataset: identity, subset }) => [identity, subset.identity]),
    isOver: begin.position > 0 && batches === 0,
    streams: total(sources.map(({ streams }) => streams)),
    blockSamples: Math.max(...sources.map(({ blockSamples }) => blockSamples)),
    unit,
    all: unionOf(sources, ({ subset }) => subset.all),
    first: unionOf(sources, (source) => source.subset.draw({ seed: source.seed, epoch: begin.epoch })),
    samplesOf: samplesOfSources(sources),
    passes: sources.map((source) => passesOf(source, all)),
    isScattered: sources.some(({ positions }) => positions !== undefined),
    plan,
    *upcoming(place) {
      for (let next = place; ; next = startAfter(next)) yield plan(next);
    },
    held(prefetchBatches) {
      const held = sources.map(({ streams, samples, ...source }) => {
        const blockSamples = groupsOfBlock(source.blockSamples, groupSize);
        const rows = Math.ceil((batchSize * (all === 0 ? 1 : samples / all)) / groupSize);
        const buffers = bufferCount({
          streams,
          worldSize: streamRanks,
          blockSamples,
          batchSize: rows,
          prefetchBatches,
        });
        return { buffers, samples: buffers * blockSamples * groupSize };
      });
      return { buffers: total(held.map(({ buffers }) => buffers)), samples: total(held.map(({ samples }) => samples)) };
    },
    // The rest of a larger dataset is read in later epochs.
    readsAll: ({ position }) => position === 0 && sources.every((source) => source.samples >= source.passSamples),
    stateAt: (place) => stateAt(place, lastBatch),
  };
}
