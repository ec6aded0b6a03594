import { inTurn, OptionError, optionName, sentence } from '@shardtool/base';
import type { PartOfIndex } from '@shardtool/format';
import type { Size } from '../codec/codec.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { Selection } from '../selection/selection.js';
import type { Buckets } from './options.js';
import { bucketOf, nameOf, usedSizes } from './sizes.js';

/** The size of each sample of a dataset, and the number of samples per size. */
export interface SizedSamples {
  /** Sizes in use, the narrowest first. */
  readonly sizes: readonly Size[];
  /** By size: the number of samples, each counted once. `kept` is the mean share of an image's pixels that is kept. */
  readonly perSize: readonly number[];
  readonly kept: readonly number[];
  /**
   * Sizes of a rule that are excluded because too few samples are nearest to them, with the number of those samples.
   */
  readonly leftOut: readonly (Size & { readonly samples: number })[];
  /** Number of the size by sample index; {@link NO_SIZE} for samples that are not selected. */
  readonly of: Uint8Array;
}

export const NO_SIZE = 255;
/** Number of indexes of which these columns are read at a time. */
const INDEXES_AT_ONCE = 8;

interface SizeColumns extends PartOfIndex<'width' | 'height' | 'orientation'> {
  readonly shard: number;
}

/** A sample of a size that has too few samples so far. */
interface Rare {
  readonly number: number;
  readonly width: number;
  readonly height: number;
}

/**
 * Finds the size of each selected sample. Only widths, heights and orientations are read from the indexes, and nothing
 * is decoded. `turns`: images are rotated by their EXIF orientation. Throws {@link OptionError} for a sample without
 * width and height, and for a size of a list that no sample is nearest to.
 */
export async function countSizes(
  dataset: StoredDataset,
  selection: Selection,
  { sizes, isComputed }: Buckets,
  turns: boolean,
): Promise<SizedSamples> {
  const { firstSample } = dataset.files;
  if (leastOf(selection) === 0)
    throw new OptionError(
      { path: dataset.location },
      `${dataset.location} has no samples, so there are no batches to make.`,
    );
  const of = new Uint8Array(dataset.size).fill(NO_SIZE);
  const tally = new Tally(sizes);
  const least = isComputed ? leastOf(selection) : 0;
  const rare: Rare[][] = sizes.map(() => []);
  for await (const columns of sizeColumns(dataset, selection)) {
    const { shard } = columns;
    const rows = selection.rows(shard);
    const count = rows?.length ?? dataset.files.samples[shard]!;
    for (let i = 0; i < count; i++) {
      const row = rows === null ? i : rows[i]!;
      // With weights, a row may occur more than once.
      if (rows !== null && i > 0 && rows[i - 1] === row) continue;
      const isTurned = turns && columns.orientation[row]! >= 5;
      const width = (isTurned ? columns.height : columns.width)[row]!;
      const height = (isTurned ? columns.width : columns.height)[row]!;
      if (width <= 0 || height <= 0) throw await withoutSize(dataset, shard, row);
      const bucket = bucketOf(width, height, sizes);
      const number = firstSample[shard]! + row;
      of[number] = bucket;
      tally.add(bucket, width, height);
      // If this size is excluded, the sample goes to one of two neighbouring sizes.
      if (tally.samples[bucket]! * 1000 < least) rare[bucket]!.push({ number, width, height });
      else rare[bucket]!.length = 0;
    }
  }
  if (!isComputed) {
    const empty = sizes.filter((_, b) => tally.samples[b] === 0);
    if (empty.length > 0) throw withoutSamples(empty);
    return { sizes, ...tally.summary(), leftOut: [], of };
  }
  const used = usedSizes(sizes, tally.samples);
  if (used.length === sizes.length) return { sizes, ...tally.summary(), leftOut: [], of };
  const leftOut = sizes.flatMap((size, b) => (used.includes(size) ? [] : [{ ...size, samples: tally.samples[b]! }]));
  return { ...moved({ sizes, used, tally, rare: rare.flat(), of }), leftOut };
}

/** Returns the minimum number of samples of a size: a thousandth of all. */
function leastOf({ counts, rows }: Selection): number {
  let samples = 0;
  for (let shard = 0; shard < counts.length; shard++) {
    const chosen = rows(shard);
    samples += chosen === null ? counts[shard]! : new Set(chosen).size;
  }
  return samples;
}

/** Returns the counts with only the sizes in use: each sample goes to the nearest size in use. */
function moved(all: {
  sizes: readonly Size[];
  used: readonly Size[];
  tally: Tally;
  rare: readonly Rare[];
  of: Uint8Array;
}): Omit<SizedSamples, 'leftOut'> {
  const { sizes, used, tally, rare, of } = all;
  const to = Uint8Array.from({ length: NO_SIZE + 1 }, (_, b) => {
    const now = b < sizes.length ? used.indexOf(sizes[b]!) : -1;
    return now < 0 ? NO_SIZE : now;
  });
  for (let number = 0; number < of.length; number++) of[number] = to[of[number]!]!;
  const now = tally.of(used);
  for (const { number, width, height } of rare) {
    if (of[number] !== NO_SIZE) continue;
    of[number] = bucketOf(width, height, used);
    now.add(of[number]!, width, height);
  }
  return { sizes: used, ...now.summary(), of };
}

/** Counts the samples of each size, and how much of their images is kept. */
class Tally {
  readonly samples: Float64Array;
  readonly #kept: Float64Array;
  readonly #sizes: readonly Size[];

  constructor(sizes: readonly Size[]) {
    this.#sizes = sizes;
    this.samples = new Float64Array(sizes.length);
    this.#kept = new Float64Array(sizes.length);
  }

  add(bucket: number, width: number, height: number): void {
    const size = this.#sizes[bucket]!;
    const wider = (width * size.height) / (height * size.width);
    this.samples[bucket]!++;
    this.#kept[bucket]! += wider > 1 ? 1 / wider : wider;
  }

  /** Returns the counts of some of the sizes. */
  of(sizes: readonly Size[]): Tally {
    const tally = new Tally(sizes);
    sizes.forEach((size, b) => {
      const before = this.#sizes.indexOf(size);
      tally.samples[b] = this.samples[before]!;
      tally.#kept[b] = this.#kept[before]!;
    });
    return tally;
  }

  summary(): Pick<SizedSamples, 'perSize' | 'kept'> {
    return {
      perSize: Array.from(this.samples),
      kept: Array.from(this.#kept, (kept, b) => (this.samples[b] === 0 ? 1 : kept / this.samples[b]!)),
    };
  }
}

/** Yields the columns of the shards from which samples are selected, in their order. Some are read ahead. */
function sizeColumns({ shards }: StoredDataset, selection: Selection): AsyncGenerator<SizeColumns> {
  const chosen = Array.from(shards.keys()).filter((shard) => selection.counts[shard]! > 0);
  return inTurn(chosen, INDEXES_AT_ONCE, async (shard) => ({
    ...(await shards[shard]!.loadParts(['width', 'height', 'orientation'])),
    shard,
  }));
}

async function withoutSize(dataset: StoredDataset, shard: number, row: number): Promise<OptionError> {
  const { name } = dataset.shards[shard]!;
  const key = (await dataset.files.index(shard)).key[row]!;
  return new OptionError(
    { shard: name, key },
    `${name}: the index has no width and height for sample "${key}", so it fits no aspect bucket: select only samples that ` +
      'have them (where: "width > 0"), or run "shardtool index" on the dataset.',
  );
}

function withoutSamples(empty: readonly Size[]): OptionError {
  return new OptionError(
    {},
    sentence`${optionName('aspectBuckets')}: no sample is nearest to ${empty.map(nameOf).join(', ')} (width x height), so no batch would have this size: remove it from the list.`,
  );
}
