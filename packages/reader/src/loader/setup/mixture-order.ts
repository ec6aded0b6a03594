import { defaultSourceStreams } from '../../mixture/defaults.js';
import { sourceSeed } from '../../mixture/mixture-order.js';
import { checkWeights, type MixtureState, takeUpMixtureState } from '../../mixture/mixture-state.js';
import { type MixturePlan, planMixture } from '../../mixture/plan-mixture.js';
import type { MixtureSettings } from '../../mixture/settings.js';
import { epochCounts } from '../../mixture/shares.js';
import type { EpochPlan, PlannedBlock } from '../../order/batches.js';
import { orderDefaults } from '../../order/defaults.js';
import { epochOrder } from '../../order/epoch-order.js';
import { resolveRanks } from '../../order/ranks.js';
import { slabCount } from '../../order/slabs.js';
import { StateError } from '../../order/state.js';
import { unitOf } from '../../order/units.js';
import { MIXTURE_VERSION } from '../../order/words.js';
import { type Place, startAfter } from '../progress.js';
import { batchOf, blockSamplesOf, groupOf } from './mixture-request.js';
import { concat, type Source, select, unionOf } from './mixture-sources.js';
import type { LoaderOrder, OrderRequest, PlanPart } from './order.js';

/** The order of a mixture, and what of it only a mixture has. */
interface LoaderMixtureOrder extends LoaderOrder {
  /** Samples of each dataset that take part. */
  readonly sizes: readonly number[];
  mixtureStateAt(place: Place): MixtureState;
}

/**
 * The order of a mixture: every dataset keeps the order that it has alone, and they take turns. Reads indexes only where
 * something is selected. Throws {@link OptionError}.
 */
export async function setUpMixtureOrder(mixture: MixtureSettings, options: OrderRequest): Promise<LoaderMixtureOrder> {
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
  const all = samples.reduce((a, b) => a + b, 0);
  const streamsOf = (d: number) => (shuffle ? defaultSourceStreams(samples[d]!, all, group) : worldSize);
  const blockSamples = blockSamplesOf(
    options,
    chosen.reduce((sum, _, d) => sum + streamsOf(d), 0),
  );
  const sources: Source[] = chosen.map((source, d) => {
    const { counts } = source.selection;
    const kept = saved?.sources[d];
    const { meanSampleBytes } = source;
    const sizes = kept ?? orderDefaults({ worldSize, meanSampleBytes, shuffle, blockSamples, streams: streamsOf(d) });
    const unit = kept?.unit ?? options.shuffleUnit ?? unitOf(counts, sizes.streams, sizes.blockSamples);
    return { ...source, counts, shuffle, streams: sizes.streams, blockSamples: sizes.blockSamples, unit };
  });

  const bases = basesOf(saved, samples);
  const planOf = ({ epoch, position }: Place, as: PlanPart): MixturePlan =>
    planMixture({ sources, samples, base: bases(epoch), seed, epoch, group, window, position, ...as });
  const union = unionOf(sources);
  const unit = sources.every((source) => source.unit === 'sample') ? 'sample' : 'chunk';
  const part = (place: Place, as: PlanPart): EpochPlan => {
    const planned = planOf(place, as);
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
    sources: sources.map((source, d) => {
      const { dataset, firstShard, counts, streams, blockSamples, size } = source;
      const unit = source.unit!;
      const own = sourceSeed(seed, d);
      return {
        identity: dataset,
        firstShard,
        unit,
        blockSamples,
        selection: () => source.selection,
        orderOf: (pass) => epochOrder({ counts, streams, blockSamples, unit, shuffle, seed: own, epoch: pass }),
        passesAnEpoch: samples[d]! / size,
        // Its samples come evenly among all.
        positionOf: (count) => (samples[d] === 0 ? Number.POSITIVE_INFINITY : (count * all) / samples[d]!),
      };
    }),
    streams: sources.reduce((sum, { streams }) => sum + streams, 0),
    blockSamples: Math.max(...sources.map(({ blockSamples }) => blockSamples)),
    unit,
    all: union.selection,
    held: (prefetchBatches) => {
      const slabs = sources.map(({ streams, blockSamples }, d) => {
        const rows = Math.ceil((batchSize * samples[d]!) / Math.max(1, all));
        return slabCount({ streams, worldSize, blockSamples, batchSize: rows, prefetchBatches });
      });
      return {
        slabs: slabs.reduce((a, b) => a + b, 0),
        samples: slabs.reduce((sum, count, d) => sum + count * sources[d]!.blockSamples, 0),
      };
    },
    // What is left of a larger dataset comes in later epochs.
    readsAll: ({ position }) => position === 0 && sources.every(({ size }, d) => samples[d]! >= size),
    isOnce: false,
    isScattered: false,
    selection: () => union.selection,
    plan,
    part,
    *upcoming(place) {
      for (let next = place; ; next = startAfter(next)) yield { plan: plan(next), selection: union.selection };
    },
    stateAt,
    mixtureStateAt: stateAt,
    sizes: sources.map(({ size }) => size),
    withWeights(state, weights) {
      checkWeights(weights, sources.length);
      const from = takeUpMixtureState(state, {
        sources: sources.map(({ name, dataset, identity }) => ({ name, dataset, selection: identity })),
        samples,
      });
      const taken = planMixture({
        sources,
        samples: from.sources.map((source) => source.samples),
        base: basesOf(
          from,
          from.sources.map((source) => source.samples),
        )(from.epoch),
        ...{ seed: from.seed, epoch: from.epoch, group: from.group, window: from.window },
        globalBatch: from.group,
        position: 0,
      }).taken(from.position);
      const { end, epochSamples } = policy;
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
    },
  };
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

function beginOf(epoch: number | undefined, saved: MixtureState | null): Place {
  if (saved === null || (epoch !== undefined && epoch !== saved.epoch)) return { epoch: epoch ?? 0, position: 0 };
  return { epoch: saved.epoch, position: saved.position };
}
