import { OptionError, total } from '@shardtool/base';
import type { StoredDataset } from '../../../dataset/stored-dataset.js';
import { defaultSourceStreams } from '../../../mixture/defaults.js';
import { sourceSeed } from '../../../mixture/mixture-order.js';
import { checkWeights, type MixtureState, takeUpMixtureState } from '../../../mixture/mixture-state.js';
import { type MixturePlanOptions, planMixture } from '../../../mixture/plan-mixture.js';
import type { MixtureSettings } from '../../../mixture/settings.js';
import { epochCounts, type MixturePolicy } from '../../../mixture/shares.js';
import { orderDefaults } from '../../../order/defaults.js';
import { resolveRanks } from '../../../order/ranks.js';
import { StateError } from '../../../order/state.js';
import { unitOf } from '../../../order/units.js';
import { MIXTURE_VERSION } from '../../../order/words.js';
import { selectableOf } from '../../../selection/selectable.js';
import { type Subset, selectOfParts } from '../../../selection/selection.js';
import { beginOf } from '../../progress.js';
import type { SettledOrder } from './order.js';
import {
  batchOf,
  blockSamplesOf,
  choiceOf,
  groupOf,
  type OrderRequest,
  policyOf,
  repeatsRefused,
} from './order-request.js';
import type { OrderSource } from './order-sources.js';

/** The order of a mixture, with all values determined. Its states are states of a mixture. */
interface SettledMixture extends SettledOrder {
  stateAt(...at: Parameters<SettledOrder['stateAt']>): MixtureState;
}

/**
 * Selects the samples of each dataset and determines their order: every dataset keeps its own order, and the datasets take turns.
 * Reads indexes only if there is a selection. Throws {@link OptionError}.
 */
export async function settleMixture(
  dataset: StoredDataset,
  mixture: MixtureSettings,
  options: OrderRequest,
): Promise<SettledMixture> {
  if (options.repeats !== undefined && options.repeats > 1) throw repeatsRefused('a mixture');
  const { rank, worldSize } = resolveRanks(options);
  const policy = policyOf(mixture, options);
  const subsets = await select(dataset, mixture, policy, options);
  const ownSamples = epochCounts(
    subsets.map(({ all }) => total(all.counts)),
    policy,
    options.weights === undefined ? null : subsets.map(({ weight }) => weight),
  );
  const { batchSize, globalBatch } = batchOf(policy, options, worldSize);
  const names = mixture.datasets.map((one, d) => ({
    name: one.name,
    dataset: one.dataset.identity,
    selection: subsets[d]!.identity,
  }));
  const saved =
    options.state === undefined
      ? null
      : takeUpMixtureState(options.state, {
          sources: names,
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
  const streamsOf = (d: number) =>
    shuffle ? defaultSourceStreams(samples[d]!, total(samples), group, options.streams) : worldSize;
  const blockSamples = blockSamplesOf(options, total(subsets.map((_, d) => streamsOf(d))));
  let firstShard = 0;
  const sources = mixture.datasets.map(({ dataset: one }, d): OrderSource => {
    const { meanSampleBytes } = one;
    const subset = subsets[d]!;
    const kept = saved?.sources[d];
    const sizes = kept ?? orderDefaults({ worldSize, meanSampleBytes, shuffle, blockSamples, streams: streamsOf(d) });
    const own = sourceSeed(seed, d);
    const { counts } = subset.draw({ seed: own, epoch: 0 });
    const source = {
      dataset: one.identity,
      subset,
      firstShard,
      seed: own,
      shuffle,
      streams: sizes.streams,
      blockSamples: sizes.blockSamples,
      unit: kept?.unit ?? options.shuffleUnit ?? unitOf(counts, sizes.streams, sizes.blockSamples),
      passSamples: total(counts),
      samples: samples[d]!,
    };
    firstShard += one.shards.length;
    return source;
  });
  const bases = basesOf(saved, samples);
  const planned = { sources: sources.map(sourceOf), samples, seed, group, window };
  return {
    rank,
    worldSize,
    batchSize,
    globalBatch,
    lastBatch: options.lastBatch,
    seed,
    begin: beginOf(options.epoch, saved),
    sources,
    isOnce:
      options.weights === undefined &&
      (saved === null || saved.sources.every(({ base }) => base === null)) &&
      sources.every((source) => source.samples === source.passSamples),
    groupSize: 1,
    streamRanks: worldSize,
    repeats: 1,
    part: ({ epoch, position }, as) => planMixture({ ...planned, base: bases(epoch), epoch, position, ...as }),
    stateAt: ({ epoch, position }, lastBatch) => ({
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
      sources: sources.map((source, d) => ({
        dataset: source.dataset,
        selection: source.subset.identity,
        streams: source.streams,
        blockSamples: source.blockSamples,
        unit: source.unit,
        samples: samples[d]!,
        base: bases(epoch)?.[d] ?? null,
      })),
    }),
    withWeights(state, weights) {
      checkWeights(weights, sources.length);
      const from = takeUpMixtureState(state, { sources: names, samples });
      return weighed(from, weights, { ...planned, policy });
    },
  };
}

/** Selects the samples of each dataset that its own selection and the loader's selection both include. */
async function select(
  dataset: StoredDataset,
  { datasets }: MixtureSettings,
  { weights, perBatch }: MixturePolicy,
  options: OrderRequest,
): Promise<Subset[]> {
  const request = choiceOf(options);
  const parts = datasets.map((one) => ({
    request: one.selection,
    dataset: selectableOf(one.dataset, one.selection),
  }));
  const empty = datasets.find((one) => total(one.dataset.shards.map(({ samples }) => samples)) === 0);
  if (empty !== undefined) {
    throw new OptionError(
      { path: empty.dataset.location },
      `${empty.name} has no samples: remove it from the mixture.`,
    );
  }
  const subsets = await selectOfParts(request, selectableOf(dataset, request), parts);
  const without = subsets.findIndex(({ all }) => total(all.counts) === 0);
  if (without < 0 || (weights ?? perBatch) === undefined) return subsets;
  throw new OptionError(
    {},
    `${datasets[without]!.name} has a share of the mixture, but none of its samples is selected: widen classes, keys, where or weights, ` +
      'or remove the dataset from the mixture.',
  );
}

/** Returns a source as `planMixture` takes it. With weights, every pass has other counts. */
function sourceOf({ subset, seed, ...source }: OrderSource): MixturePlanOptions['sources'][number] {
  const countsOf = (epoch: number) => subset.draw({ seed, epoch }).counts;
  return { ...source, counts: countsOf(0), countsOf };
}

/** Returns a state of the mixture with other weights from its position on. The progress of each dataset is kept. */
function weighed(
  from: MixtureState,
  weights: readonly number[],
  { policy, ...planned }: Pick<MixturePlanOptions, 'sources'> & { readonly policy: MixturePolicy },
): MixtureState {
  const { seed, epoch, group, window, position } = from;
  const before = from.sources.map(({ samples }) => samples);
  const plan = { ...planned, samples: before, base: basesOf(from, before)(epoch), seed, epoch, group, window };
  const taken = planMixture({ ...plan, globalBatch: group, position: 0 }).taken(position);
  const { end, epochSamples } = policy;
  const now = epochCounts(
    planned.sources.map(({ counts }) => total(counts)),
    { weights, end, epochSamples },
  );
  return {
    ...from,
    position: 0,
    weights: [...weights],
    sources: from.sources.map((source, d) => ({ ...source, samples: now[d]!, base: taken[d]! })),
  };
}

/** Number of samples of each dataset before an epoch. Undefined: epoch times its samples. */
function basesOf(saved: MixtureState | null, samples: readonly number[]): (epoch: number) => number[] | undefined {
  if (saved === null || saved.sources.every(({ base }) => base === null)) return () => undefined;
  return (epoch) =>
    saved.sources.map(({ base }, d) => {
      const count = (base ?? saved.epoch * samples[d]!) + (epoch - saved.epoch) * samples[d]!;
      if (count >= 0) return count;
      throw new StateError(
        {},
        `Epoch ${epoch} is before epoch ${saved.epoch}, in which the weights changed: start at epoch ${saved.epoch}.`,
      );
    });
}
