import { defaultSourceStreams } from '../../mixture/defaults.js';
import { sourceSeed } from '../../mixture/mixture-order.js';
import { checkWeights, type MixtureState, takeUpMixtureState } from '../../mixture/mixture-state.js';
import { planMixture } from '../../mixture/plan-mixture.js';
import type { MixtureSettings } from '../../mixture/settings.js';
import { epochCounts } from '../../mixture/shares.js';
import type { EpochPlan, PlannedBlock } from '../../order/batches.js';
import { bufferCount } from '../../order/block-buffers.js';
import { orderDefaults } from '../../order/defaults.js';
import { epochOrder } from '../../order/epoch-order.js';
import { resolveRanks } from '../../order/ranks.js';
import { StateError } from '../../order/state.js';
import { unitOf } from '../../order/units.js';
import { MIXTURE_VERSION } from '../../order/words.js';
import { beginOf, type Place, startAfter } from '../progress.js';
import { batchOf, blockSamplesOf, groupOf } from './mixture-request.js';
import { concat, type Source, select, unionOf } from './mixture-sources.js';
import type { LoaderOrder, OrderRequest, PlanPart, SourceOrder } from './order.js';

/** The order of a mixture, with members that only a mixture has. */
interface LoaderMixtureOrder extends LoaderOrder {
  /** Samples of each dataset that take part. */
  readonly sizes: readonly number[];
  mixtureStateAt(place: Place): MixtureState;
}

/** The settings of a mixture's run: those of its state if it resumes, otherwise the options and defaults. */
interface SettledMixture {
  readonly rank: number;
  readonly worldSize: number;
  readonly batchSize: number;
  readonly globalBatch: number;
  readonly saved: MixtureState | null;
  readonly seed: number;
  readonly shuffle: boolean;
  readonly group: number;
  readonly window: number;
  readonly sources: readonly Source[];
  /** Samples of each dataset in an epoch. */
  readonly samples: readonly number[];
}

/** Selects the samples of each dataset, and settles how they take turns. Throws {@link OptionError}. */
async function settle(mixture: MixtureSettings, options: OrderRequest): Promise<SettledMixture> {
  const { policy } = mixture;
  const { rank, worldSize } = resolveRanks(options);
  const chosen = await Promise.all(mixture.datasets.map((one, i) => select(one, i, mixture)));
  const ownSamples = epochCounts(
    chosen.map(({ size }) => size),
    policy,
  );
  const { batchSize, globalBatch } = batchOf(policy, options, worldSize);
  const saved =
    options.state === undefined
      ? null
      : takeUpMixtureState(options.state, {
          sources: chosen.map(({ name, dataset, identity }) => ({ name, dataset, selection: identity })),
          samples: ownSamples,
          seed: options.seed,
          shuffle: options.shuffle,
          group: mixture.group,
          window: mixture.window,
        });
  const seed = saved?.seed ?? options.seed ?? 0;
  const shuffle = options.shuffle ?? saved?.shuffle ?? true;
  const samples = saved === null ? ownSamples : saved.sources.map((source) => source.samples);
  const group = saved?.group ?? mixture.group ?? groupOf(policy.perBatch, globalBatch, worldSize);
  const window = saved?.window ?? mixture.window ?? Math.max(1, Math.round(globalBatch / group));
  const all = total(samples);
  const streamsOf = (d: number) => (shuffle ? defaultSourceStreams(samples[d]!, all, group) : worldSize);
  const blockSamples = blockSamplesOf(options, total(chosen.map((_, d) => streamsOf(d))));
  const sources: Source[] = chosen.map((source, d) => {
    const { counts } = source.selection;
    const kept = saved?.sources[d];
    const { meanSampleBytes } = source;
    const sizes = kept ?? orderDefaults({ worldSize, meanSampleBytes, shuffle, blockSamples, streams: streamsOf(d) });
    const unit = kept?.unit ?? options.shuffleUnit ?? unitOf(counts, sizes.streams, sizes.blockSamples);
    return { ...source, counts, shuffle, streams: sizes.streams, blockSamples: sizes.blockSamples, unit };
  });
  return { rank, worldSize, batchSize, globalBatch, saved, seed, shuffle, group, window, sources, samples };
}

/**
 * Sets up the order of a mixture: every dataset keeps its own order, and the datasets take turns. Reads indexes only if
 * samples are selected. Throws {@link OptionError}.
 */
export async function setUpMixtureOrder(mixture: MixtureSettings, options: OrderRequest): Promise<LoaderMixtureOrder> {
  const settled = await settle(mixture, options);
  const { rank, worldSize, batchSize, globalBatch, saved, seed, shuffle, group, window, sources, samples } = settled;
  const bases = basesOf(saved, samples);
  const union = unionOf(sources);
  const unit = sources.every((source) => source.unit === 'sample') ? 'sample' : 'chunk';
  const part = ({ epoch, position }: Place, as: PlanPart): EpochPlan => {
    const planned = planMixture({
      sources,
      samples,
      base: bases(epoch),
      seed,
      epoch,
      group,
      window,
      position,
      ...as,
    });
    return {
      ...planned,
      unit,
      *blocks(): Generator<PlannedBlock, undefined> {
        for (const block of planned.blocks()) yield union.block(block.source, block);
      },
      at(at) {
        const { source, pass, number } = planned.at(at);
        return { pass, number: union.firstNumber[source]! + number };
      },
    };
  };
  const plan = (place: Place): EpochPlan => part(place, { rank, worldSize, globalBatch, lastBatch: options.lastBatch });
  const begin = beginOf(options.epoch, saved);
  const { lastBatch, batches } = plan(begin);
  const stateAt = ({ epoch, position }: Place): MixtureState => ({
    version: MIXTURE_VERSION,
    seed,
    epoch,
    group,
    window,
    shuffle,
    globalBatch,
    lastBatch,
    position,
    weights: saved?.weights ?? null,
    sources: sources.map(({ dataset, identity, streams, blockSamples, unit: ownUnit }, d) => ({
      dataset,
      selection: identity,
      streams,
      blockSamples,
      unit: ownUnit!,
      samples: samples[d]!,
      base: bases(epoch)?.[d] ?? null,
    })),
  });
  return {
    origin: {
      firstSample: concat(sources.map(({ firstSample }) => firstSample)),
      sourceOfShard: Int32Array.from(sources.flatMap(({ counts }, d) => Array.from(counts, () => d))),
      seeds: sources.map((_, d) => sourceSeed(seed, d)),
    },
    identities: sources.flatMap(({ dataset, identity }) => [dataset, identity]),
    begin,
    isOver: begin.position > 0 && batches === 0,
    batchSize,
    globalBatch,
    rank,
    worldSize,
    sources: sources.map((_, d) => sourceOrder(settled, d)),
    streams: total(sources.map(({ streams }) => streams)),
    blockSamples: Math.max(...sources.map(({ blockSamples }) => blockSamples)),
    unit,
    all: union.selection,
    held: (prefetchBatches) => {
      const buffers = sources.map(({ streams, blockSamples }, d) => {
        const rows = Math.ceil((batchSize * samples[d]!) / Math.max(1, total(samples)));
        return bufferCount({ streams, worldSize, blockSamples, batchSize: rows, prefetchBatches });
      });
      return {
        buffers: total(buffers),
        samples: total(buffers.map((count, d) => count * sources[d]!.blockSamples)),
      };
    },
    // The rest of a larger dataset is read in later epochs.
    readsAll: ({ position }) => position === 0 && sources.every(({ size }, d) => samples[d]! >= size),
    isOnce: false,
    isScattered: false,
    groupSize: 1,
    selection: () => union.selection,
    plan,
    part,
    *upcoming(place) {
      for (let next = place; ; next = startAfter(next)) yield { plan: plan(next), selection: union.selection };
    },
    stateAt,
    mixtureStateAt: stateAt,
    sizes: sources.map(({ size }) => size),
    withWeights: (state, weights) => weighed(state, weights, settled, mixture.policy),
  };
}

/** The passes over one dataset of the mixture. */
function sourceOrder({ sources, samples, seed, shuffle }: SettledMixture, d: number): SourceOrder {
  const { firstShard, counts, streams, blockSamples, size, selection } = sources[d]!;
  const unit = sources[d]!.unit!;
  const own = sourceSeed(seed, d);
  const all = total(samples);
  return {
    firstShard,
    unit,
    blockSamples,
    selection: () => selection,
    orderOf: (pass) => epochOrder({ counts, streams, blockSamples, unit, shuffle, seed: own, epoch: pass }),
    passesAnEpoch: samples[d]! / size,
    // Its samples come evenly among all.
    positionOf: (count) => (samples[d] === 0 ? Number.POSITIVE_INFINITY : (count * all) / samples[d]!),
  };
}

/** Returns a state of the mixture with other weights from its position on. The progress of each dataset is kept. */
function weighed(
  state: unknown,
  weights: readonly number[],
  { sources, samples }: SettledMixture,
  { end, epochSamples }: MixtureSettings['policy'],
): MixtureState {
  checkWeights(weights, sources.length);
  const from = takeUpMixtureState(state, {
    sources: sources.map(({ name, dataset, identity }) => ({ name, dataset, selection: identity })),
    samples,
  });
  const before = from.sources.map((source) => source.samples);
  const { seed, epoch, group, window, position } = from;
  const plan = { sources, samples: before, base: basesOf(from, before)(epoch), seed, epoch, group, window };
  const taken = planMixture({ ...plan, globalBatch: group, position: 0 }).taken(position);
  const now = epochCounts(
    sources.map(({ size }) => size),
    { weights, end, epochSamples },
  );
  return {
    ...from,
    position: 0,
    weights: [...weights],
    sources: from.sources.map((source, d) => ({ ...source, samples: now[d]!, base: taken[d]! })),
  };
}

function total(counts: readonly number[]): number {
  return counts.reduce((a, b) => a + b, 0);
}

/** How many samples of each dataset came before an epoch; undefined: epoch times its samples. */
function basesOf(saved: MixtureState | null, samples: readonly number[]): (epoch: number) => number[] | undefined {
  if (saved === null || saved.sources.every(({ base }) => base === null)) return () => undefined;
  return (epoch) =>
    saved.sources.map(({ base }, d) => {
      const count = (base ?? saved.epoch * samples[d]!) + (epoch - saved.epoch) * samples[d]!;
      if (count >= 0) return count;
      throw new StateError(
        {},
        `Epoch ${epoch} is before the place where other weights were taken (in epoch ${saved.epoch}): begin there.`,
      );
    });
}
