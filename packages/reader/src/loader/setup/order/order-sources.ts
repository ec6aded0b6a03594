import { joined, lastAtMost } from '@shardtool/base';
import type { StoredDataset } from '../../../dataset/stored-dataset.js';
import type { MixtureSettings } from '../../../mixture/settings.js';
import { type EpochOrder, epochOrder } from '../../../order/epoch-order.js';
import type { Unit } from '../../../order/units.js';
import { type PassSamples, passSamples, type SamplesOf } from '../../../selection/pass-samples.js';
import type { Selection, Subset } from '../../../selection/selection.js';

/** A dataset of an order, with all values that the order of its passes depends on. */
export interface OrderSource {
  /** Identity of the dataset. */
  readonly dataset: string;
  readonly subset: Subset;
  /** Number of its first shard among the shards of all datasets. */
  readonly firstShard: number;
  readonly seed: number;
  readonly streams: number;
  readonly blockSamples: number;
  readonly unit: Unit;
  readonly shuffle: boolean;
  /** A custom order. */
  readonly positions?: Uint32Array | undefined;
  /** Samples of a pass, and of an epoch. */
  readonly passSamples: number;
  readonly samples: number;
}

/** The sample of a row of a shard. */
export interface SampleOrigin {
  /** For each shard, the index of its first sample within its dataset. */
  readonly firstSample: Float64Array;
  /** Dataset of each shard in a mixture; null for a single dataset. */
  readonly sourceOfShard: Int32Array | null;
  /** For each dataset, the seed that, with epoch and index, determines the random numbers of a sample. */
  readonly seeds: readonly number[];
}

/** `seedOf`: the seed of each dataset of a mixture. */
export function originOf(
  { files }: StoredDataset,
  mixture: MixtureSettings | null,
  seedOf: (source: number) => number,
): SampleOrigin {
  if (mixture === null) return { firstSample: files.firstSample, sourceOfShard: null, seeds: [seedOf(0)] };
  const datasets = mixture.datasets.map(({ dataset }) => dataset);
  return {
    firstSample: joined(
      datasets.map((one) => one.files.firstSample.subarray(0, one.shards.length)),
      Float64Array,
    ),
    sourceOfShard: Int32Array.from(datasets.flatMap(({ shards }, d) => shards.map(() => d))),
    seeds: datasets.map((_, d) => seedOf(d)),
  };
}

/** The endless sequence of passes over one dataset. */
export interface SourcePasses extends Pick<OrderSource, 'firstShard' | 'unit' | 'blockSamples'> {
  /** Number of a shard among the shards of its own dataset. */
  selection(pass: number): Selection;
  orderOf(pass: number): EpochOrder;
  readonly passesAnEpoch: number;
  /** Number of samples of all datasets that are read by the time that `samples` of this dataset's passes are read. */
  positionOf(samples: number): number;
}

/** `all`: samples of all datasets in an epoch. */
export function passesOf(source: OrderSource, all: number): SourcePasses {
  const { subset, seed, samples } = source;
  return {
    ...source,
    selection: (pass) => subset.draw({ seed, epoch: pass }),
    orderOf: (pass) => epochOrder({ ...source, counts: subset.draw({ seed, epoch: pass }).counts, epoch: pass }),
    passesAnEpoch: source.passSamples === 0 ? 0 : samples / source.passSamples,
    // The samples of a dataset are spread evenly over those of all datasets.
    positionOf: (count) => (samples === 0 ? Number.POSITIVE_INFINITY : (count * all) / samples),
  };
}

/**
 * Number of passes per dataset whose samples are kept. Around the end of a pass, samples of two or three passes are in
 * use.
 */
const KEPT_PASSES = 4;

/** Returns a function that finds the samples of a pass. It caches the passes that were requested last. */
export function samplesOfSources(sources: readonly OrderSource[]): SamplesOf {
  const kept = sources.map(() => new Map<number, PassSamples>());
  const made = new WeakMap<Selection, PassSamples>();
  return (d, pass) => {
    const known = kept[d]!.get(pass);
    if (known !== undefined) return known;
    const { subset, seed, firstShard } = sources[d]!;
    const selection = subset.draw({ seed, epoch: pass });
    const samples = made.get(selection) ?? passSamples(selection, firstShard);
    made.set(selection, samples);
    const [oldest] = kept[d]!.keys();
    if (kept[d]!.size >= KEPT_PASSES) kept[d]!.delete(oldest!);
    kept[d]!.set(pass, samples);
    return samples;
  };
}

/** Returns one selection that consists of the selections of all datasets in sequence. */
export function unionOf(sources: readonly OrderSource[], of: (source: OrderSource) => Selection): Selection {
  const parts = sources.map((source) => of(source));
  if (parts.length === 1) return parts[0]!;
  const first = sources.map(({ firstShard }) => firstShard);
  return {
    counts: joined(
      parts.map(({ counts }) => counts),
      Float64Array,
    ),
    rows(shard) {
      const d = lastAtMost(first, shard);
      return parts[d]!.rows(shard - first[d]!);
    },
  };
}
