import { OptionError } from '@shardtool/base';
import type { MixtureSource } from '../../mixture/plan-mixture.js';
import type { MixedDataset, MixtureSettings } from '../../mixture/settings.js';
import type { PlannedBlock } from '../../order/batches.js';
import { firstNumbers } from '../../order/units.js';
import { selectableOf } from '../../selection/selectable.js';
import { type Selection, selectSamples } from '../../selection/selection.js';

/** A dataset of the mixture, as the order sees it. */
export interface Source extends MixtureSource {
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

/** Selects the samples of a dataset. Reads its indexes only if there is a selection. Throws {@link OptionError}. */
export async function select(
  { name, dataset, selection: request }: MixedDataset,
  i: number,
  { datasets }: MixtureSettings,
) {
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
    meanSampleBytes: dataset.meanSampleBytes,
    firstSample: dataset.files.firstSample.subarray(0, dataset.shards.length),
  };
}

/** All datasets as one line of samples: shards and numbers count through them. */
export function unionOf(sources: readonly Source[]) {
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

export function concat(parts: readonly Float64Array[]): Float64Array {
  return Float64Array.from(parts.flatMap((part) => Array.from(part)));
}
