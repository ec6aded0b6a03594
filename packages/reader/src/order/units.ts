import { lastAtMost, OptionError, optionName, sentence, shuffle } from '@shardtool/base';
import { type Randomness, UNITS_STREAM } from './words.js';

/** The unit that is permuted as a whole: single samples, whole shards, or chunks of consecutive samples of a shard. */
export type Unit = 'sample' | 'shard' | 'chunk';

/** Sample numbers, as float64 if there are 2^32 samples or more. */
export type SampleNumbers = Uint32Array | Float64Array;

/** Consecutive samples of a shard: one sequential read. */
export interface Piece {
  readonly shard: number;
  /** Index of the first sample in the shard. */
  readonly first: number;
  readonly count: number;
  /** Number of the first sample: the samples of all shards before, plus `first`. */
  readonly number: number;
}

/** All samples of an epoch in one line: the units in their permuted order, each with its samples as on disk. */
export interface Line {
  readonly unit: Unit;
  readonly samples: number;
  /** Returns the samples at the offsets `from` to `to - 1`, as reads. */
  pieces(from: number, to: number): Piece[];
  /** Returns the offset of a sample: the inverse of {@link pieces}. */
  placeOf(number: number): number;
}

export interface LineOptions extends Randomness {
  /** Number of samples of each shard. */
  readonly counts: ArrayLike<number>;
  readonly unit: Unit;
  /** Number of samples in a chunk. */
  readonly blockSamples: number;
  /** If false, the units stay in the order on disk. */
  readonly shuffle: boolean;
  /**
   * Sample number at each offset, each number once. The line is then this list, and nothing is permuted. `unit`
   * determines how it is read.
   */
  readonly numbers?: Uint32Array | undefined;
}

/**
 * Returns the unit that fits the sizes (docs/format.md, order of an epoch): single samples if all fit the shuffle
 * buffers, whole shards if there are at least two per stream, otherwise chunks of shards.
 */
export function unitOf(counts: ArrayLike<number>, streams: number, blockSamples: number): Unit {
  let samples = 0;
  for (let k = 0; k < counts.length; k++) samples += counts[k]!;
  if (samples <= streams * blockSamples) return 'sample';
  return counts.length >= 2 * streams ? 'shard' : 'chunk';
}

/**
 * Lays out the samples in the order of the permuted units. The time is proportional to the number of units, not of
 * samples.
 */
export function layLine(options: LineOptions): Line {
  const first = firstNumbers(options.counts);
  const { unit, numbers } = options;
  if (numbers !== undefined) return sampleLine(first, numbers, unit);
  if (unit === 'sample') return sampleLine(first, permutation(first[options.counts.length]!, options), unit);
  return unit === 'shard' ? shardLine(first, options) : chunkLine(first, options);
}

/** Returns the number of each shard's first sample, and the number of all samples at the end. */
export function firstNumbers(counts: ArrayLike<number>): Float64Array {
  const first = new Float64Array(counts.length + 1);
  for (let k = 0; k < counts.length; k++) first[k + 1] = first[k]! + counts[k]!;
  return first;
}

function sampleLine(first: Float64Array, order: Uint32Array, unit: Unit): Line {
  const inverse = lazily(() => inverseOf(order));
  return {
    unit,
    samples: order.length,
    pieces(from, to) {
      const pieces: Piece[] = [];
      for (let place = from; place < to; place++) {
        const number = order[place]!;
        const shard = lastAtMost(first, number);
        pieces.push({ shard, first: number - first[shard]!, count: 1, number });
      }
      return pieces;
    },
    placeOf: (number) => inverse()[number]!,
  };
}

function shardLine(first: Float64Array, options: LineOptions): Line {
  const shards = first.length - 1;
  const order = permutation(shards, options);
  const starts = new Float64Array(shards + 1);
  for (let q = 0; q < shards; q++) starts[q + 1] = starts[q]! + options.counts[order[q]!]!;
  const inverse = lazily(() => inverseOf(order));
  return {
    unit: 'shard',
    samples: first[shards]!,
    pieces(from, to) {
      const pieces: Piece[] = [];
      for (let place = from, q = lastAtMost(starts, from); place < to; q++) {
        const end = Math.min(to, starts[q + 1]!);
        const shard = order[q]!;
        const within = place - starts[q]!;
        if (end > place) pieces.push({ shard, first: within, count: end - place, number: first[shard]! + within });
        place = end;
      }
      return pieces;
    },
    placeOf(number) {
      const shard = lastAtMost(first, number);
      return starts[inverse()[shard]!]! + number - first[shard]!;
    },
  };
}

/**
 * A shard without samples has no chunk. Chunks have consecutive numbers, so that only their permutation is kept in
 * memory.
 */
function chunkLine(first: Float64Array, options: LineOptions): Line {
  const { counts, blockSamples } = options;
  const shards = first.length - 1;
  const chunksOf = Float64Array.from({ length: shards }, (_, k) => Math.ceil(counts[k]! / blockSamples));
  const firstChunk = firstNumbers(chunksOf);
  const chunks = firstChunk[shards]!;
  const order = permutation(chunks, options);
  const short = shortChunks(first, firstChunk, order, blockSamples);
  const inverse = lazily(() => inverseOf(order));
  /** Offset of the q-th chunk: the offset if all chunks were full, minus what the short chunks before it lack. */
  const startOf = (q: number) => q * blockSamples - short.lacking[lastAtMost(short.before, q)]!;
  const chunkAt = (place: number) => {
    const i = lastAtMost(short.places, place);
    return Math.min(chunks - 1, Math.floor((place + short.lacking[i]!) / blockSamples));
  };
  return {
    unit: 'chunk',
    samples: first[shards]!,
    pieces(from, to) {
      const pieces: Piece[] = [];
      if (from >= to) return pieces;
      for (let place = from, q = chunkAt(from); place < to; q++) {
        const chunk = order[q]!;
        const shard = lastAtMost(firstChunk, chunk);
        const begin = (chunk - firstChunk[shard]!) * blockSamples;
        const size = Math.min(blockSamples, counts[shard]! - begin);
        const within = place - startOf(q);
        const count = Math.min(to - place, size - within);
        pieces.push({ shard, first: begin + within, count, number: first[shard]! + begin + within });
        place += count;
      }
      return pieces;
    },
    placeOf(number) {
      const shard = lastAtMost(first, number);
      const within = number - first[shard]!;
      const chunk = firstChunk[shard]! + Math.floor(within / blockSamples);
      return startOf(inverse()[chunk]!) + (within % blockSamples);
    },
  };
}

/**
 * Returns the chunks that are shorter than a block, at most one per shard, in the permuted order. Entry i + 1 of each
 * list belongs to the i-th such chunk: the number of chunks up to and including it, the offset of its end, and how many
 * samples all short chunks up to it lack.
 */
function shortChunks(first: Float64Array, firstChunk: Float64Array, order: Uint32Array, blockSamples: number) {
  const isShort = new Uint8Array(order.length);
  let found = 0;
  for (let k = 0; k + 1 < first.length; k++) {
    if ((first[k + 1]! - first[k]!) % blockSamples === 0) continue;
    isShort[firstChunk[k + 1]! - 1] = 1;
    found++;
  }
  const before = new Float64Array(found + 1);
  const places = new Float64Array(found + 1);
  const lacking = new Float64Array(found + 1);
  let i = 0;
  for (let q = 0; q < order.length; q++) {
    const chunk = order[q]!;
    if (isShort[chunk] === 0) continue;
    const shard = lastAtMost(firstChunk, chunk);
    const size = (first[shard + 1]! - first[shard]!) % blockSamples;
    lacking[i + 1] = lacking[i]! + blockSamples - size;
    before[i + 1] = q + 1;
    places[i + 1] = (q + 1) * blockSamples - lacking[i + 1]!;
    i++;
  }
  return { before, places, lacking };
}

function permutation(units: number, options: LineOptions): Uint32Array {
  if (units >= 2 ** 32) {
    throw new OptionError(
      {},
      sentence`The order would have ${units} units (${options.unit}), more than 2^32: use the default of ${optionName('shuffleUnit')}.`,
    );
  }
  const order = new Uint32Array(units);
  for (let i = 0; i < units; i++) order[i] = i;
  if (options.shuffle) shuffle(order, units, options.seed, options.epoch, UNITS_STREAM, 0);
  return order;
}

function inverseOf(order: Uint32Array): Uint32Array {
  const inverse = new Uint32Array(order.length);
  for (let q = 0; q < order.length; q++) inverse[order[q]!] = q;
  return inverse;
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
