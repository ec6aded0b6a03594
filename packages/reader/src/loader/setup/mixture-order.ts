import { OptionError } from '@shardtool/format';
import { selectableOf } from '../../dataset/selectable.js';
import { defaultGroup, defaultSourceStreams, greatestCommonDivisor } from '../../mixture/defaults.js';
import type { MixedDataset, MixtureSettings } from '../../mixture/mixture.js';
import { sourceSeed } from '../../mixture/mixture-order.js';
import { checkWeights, type MixtureState, takeUpMixtureState } from '../../mixture/mixture-state.js';
import { type MixturePlan, type MixtureSource, planMixture } from '../../mixture/plan-mixture.js';
import { epochCounts, type MixturePolicy } from '../../mixture/shares.js';
import type { EpochPlan, PlannedBlock } from '../../order/batches.js';
import { orderDefaults } from '../../order/defaults.js';
import { epochOrder } from '../../order/epoch-order.js';
import { resolveBatchSize, resolveRanks } from '../../order/ranks.js';
import { slabCount } from '../../order/slabs.js';
import { StateError } from '../../order/state.js';
import { firstNumbers, unitOf } from '../../order/units.js';
import { MIXTURE_VERSION } from '../../order/words.js';
import { type Selection, selectSamples } from '../../selection/selection.js';
import type { Place } from '../progress.js';
import type { LoaderOrder, OrderRequest } from './order.js';

/** A dataset of the mixture, as the order sees it. */
interface Source extends MixtureSource {
  readonly name: string;
  readonly dataset: string;
  readonly identity: string;
  readonly selection: Selection;
  /** Samples that are selected. */
  readonly size: number;
  /** Of the mixture's shards, the number of its first. */
  readonly firstShard: number;
  /** Bytes of a sample, on average. */
  readonly meanSampleBytes: number;
  readonly firstSample: Float64Array;
}

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
  const planOf = (epoch: number, position: number): MixturePlan =>
    planMixture({
      sources,
      samples,
      base: bases(epoch),
      seed,
      epoch,
      group,
      window,
      rank,
      worldSize,
      globalBatch,
      lastBatch: options.lastBatch,
      position,
    });
  const union = unionOf(sources);
  const unit = sources.every((source) => source.unit === 'sample') ? 'sample' : 'chunk';
  const plan = (epoch: number, position: number): EpochPlan => ({
    ...planOf(epoch, position),
    unit,
    *blocks(): Generator<PlannedBlock, undefined> {
      for (const block of planOf(epoch, position).blocks()) yield union.block(block.source, block);
    },
    at(at) {
      const { source, number } = planOf(epoch, position).at(at);
      return union.firstNumber[source]! + number;
    },
  });
  const begin = beginOf(options.epoch, saved);
  const { lastBatch, batches } = plan(begin.epoch, begin.position);
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
    selection: () => union.selection,
    plan,
    *upcoming({ epoch, position }) {
      for (let e = epoch; ; e++) yield { plan: plan(e, e === epoch ? position : 0), selection: union.selection };
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

/** Whether every sample of a dataset that is alone comes once in an epoch, as without a mixture. */
export function isOnce({ repeat, perBatch, epochSamples }: MixturePolicy): boolean {
  return (repeat === undefined || repeat[0] === 1) && perBatch === undefined && epochSamples === undefined;
}

/** What stands with the datasets of a mixture, and not with its loader. */
export function refuseChoices(options: OrderRequest): void {
  for (const name of ['classes', 'keys', 'where'] as const) {
    if (options[name] === undefined) continue;
    throw new OptionError(
      {},
      `${name} chooses samples of one dataset: give it with the dataset, where the mixture is opened.`,
    );
  }
  if (options.weights !== undefined) {
    throw new OptionError(
      {},
      'Weights of single samples make every pass over a dataset another length, so a mixture cannot count what has come of ' +
        'it: leave out the option weights, and weigh the datasets instead.',
    );
  }
  if (options.epochSamples !== undefined) {
    throw new OptionError({}, 'epochSamples of a mixture is given where the mixture is opened, not to its loader.');
  }
  if (options.streams !== undefined) {
    throw new OptionError(
      {},
      'The datasets of a mixture share out the streams by themselves: leave out the option streams.',
    );
  }
}

function batchOf(
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
    `perBatch makes batches of ${rows} rows over all ranks, and batchSize makes ${resolved.globalBatch}: leave out the batch ` +
      'size, or give another perBatch.',
  );
}

/** Samples of a dataset that follow each other: with `perBatch`, a divisor of each of its entries. */
function groupOf(perBatch: readonly number[] | undefined, globalBatch: number, worldSize: number): number {
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

/** The shuffle buffers are those of all datasets together. */
function blockSamplesOf({ blockSamples, shuffleBufferSize }: OrderRequest, streams: number): number | undefined {
  if (shuffleBufferSize === undefined) return blockSamples;
  if (blockSamples === undefined) return Math.max(1, Math.round(shuffleBufferSize / streams));
  throw new OptionError({}, 'shuffleBufferSize and blockSamples both say how long blocks are: give one of the two.');
}

async function select({ name, dataset, selection: request }: MixedDataset, i: number, { datasets }: MixtureSettings) {
  const subset = await selectSamples(request, selectableOf(dataset, request));
  const { all } = subset;
  const size = Array.from(all.counts).reduce((a, b) => a + b, 0);
  if (size === 0)
    throw new OptionError({ path: dataset.location }, `${name} has no samples: leave it out of the mixture.`);
  return {
    name,
    dataset: dataset.identity,
    identity: subset.identity,
    selection: all,
    size,
    firstShard: datasets.slice(0, i).reduce((sum, other) => sum + other.dataset.shards.length, 0),
    meanSampleBytes: dataset.bytes / dataset.size,
    firstSample: dataset.files.firstSample.subarray(0, dataset.shards.length),
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

/** All datasets as one line of samples: shards and numbers count through them. */
function unionOf(sources: readonly Source[]) {
  const counts = concat(sources.map((source) => Float64Array.from(source.counts)));
  const first = firstNumbers(counts);
  const firstNumber = sources.map(({ firstShard }) => first[firstShard]!);
  const sourceOf = sources.flatMap((source) => Array.from(source.counts, () => source));
  const Numbers = first.at(-1)! < 2 ** 32 ? Uint32Array : Float64Array;
  const selection: Selection = {
    counts,
    rows: (shard) => sourceOf[shard]!.selection.rows(shard - sourceOf[shard]!.firstShard),
  };
  return {
    selection,
    firstNumber,
    block(d: number, block: PlannedBlock): PlannedBlock {
      const { firstShard } = sources[d]!;
      const number = firstNumber[d]!;
      const samples = new Numbers(block.samples.length);
      for (let i = 0; i < samples.length; i++) samples[i] = number + block.samples[i]!;
      const pieces = block.pieces.map((piece) => ({
        ...piece,
        shard: firstShard + piece.shard,
        number: number + piece.number,
      }));
      return { ordinal: block.ordinal, pass: block.pass, from: block.from, uses: block.uses, samples, pieces };
    },
  };
}

function concat(parts: readonly Float64Array[]): Float64Array {
  return Float64Array.from(parts.flatMap((part) => Array.from(part)));
}

function beginOf(epoch: number | undefined, saved: MixtureState | null): Place {
  if (saved === null || (epoch !== undefined && epoch !== saved.epoch)) return { epoch: epoch ?? 0, position: 0 };
  return { epoch: saved.epoch, position: saved.position };
}
