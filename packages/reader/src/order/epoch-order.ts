import { OptionError, optionName, sentence, shuffle } from '@shardtool/base';
import { type Line, layLine, type Piece, type SampleNumbers, type Unit, unitOf } from './units.js';
import { MAX_STREAMS } from './words.js';

/** The values that determine the order of an epoch. It depends on nothing else. */
export interface OrderOptions {
  /**
   * Number of samples of each shard (0 is allowed), in the order of the manifest. With a selection, only selected
   * samples count.
   */
  readonly counts: ArrayLike<number>;
  /** The seed, from 0 to 2^53 - 1. */
  readonly seed: number;
  /** The epoch; less than 2^32. */
  readonly epoch: number;
  /** Number of streams over all ranks that are read in parallel, at most 65,536. */
  readonly streams: number;
  /** Number of samples of a stream that are shuffled together. */
  readonly blockSamples: number;
  /**
   * Default: the unit that fits the sizes. If weights change the counts from epoch to epoch, a run determines the unit
   * once.
   */
  readonly unit?: Unit | undefined;
  /** If false, nothing is permuted. Streams still take turns, so only one stream gives the order on disk. */
  readonly shuffle?: boolean | undefined;
  /** Sample number at each position of a pass, each number once: a custom order that replaces the permutation. */
  readonly positions?: Uint32Array | undefined;
}

/**
 * How the line of all samples is divided into streams, and streams into blocks. Indices count from the start of a
 * stream.
 */
export interface StreamCut {
  readonly samples: number;
  readonly streams: number;
  readonly blockSamples: number;
}

/** Returns the number of samples of stream s: equal shares, and one more for the first `samples % streams`. */
export function streamLength({ samples, streams }: StreamCut, s: number): number {
  return Math.floor(samples / streams) + (s < samples % streams ? 1 : 0);
}

/** Returns the offset of stream s in the line. */
export function streamStart({ samples, streams }: StreamCut, s: number): number {
  return s * Math.floor(samples / streams) + Math.min(s, samples % streams);
}

/**
 * Returns how much shorter the first block of stream s is. The lengths are staggered, so that not all streams need
 * their next block at the same time.
 */
export function stagger({ streams, blockSamples }: StreamCut, s: number): number {
  return Math.floor((s * blockSamples) / streams);
}

/** Returns the block of stream s that contains index i. */
export function blockAt(cut: StreamCut, s: number, i: number): number {
  return Math.floor((i + stagger(cut, s)) / cut.blockSamples);
}

/** Returns the first index of a block. */
export function blockStart(cut: StreamCut, s: number, block: number): number {
  return Math.max(0, block * cut.blockSamples - stagger(cut, s));
}

/** Returns the index after the last one of a block. */
export function blockEnd(cut: StreamCut, s: number, block: number): number {
  return Math.min(streamLength(cut, s), (block + 1) * cut.blockSamples - stagger(cut, s));
}

/** The samples of one block, and its reads. */
export interface BlockSamples {
  /** The samples, in the order in which they are consumed. */
  readonly samples: SampleNumbers;
  /** The pieces, in the order of the line. */
  readonly pieces: readonly Piece[];
}

/**
 * The order of one pass over the samples. A sample's number is the number of samples in all shards before its own, plus
 * its index there.
 */
export interface EpochOrder extends StreamCut {
  readonly line: Line;
  /** Returns block `block` of stream s. */
  block(s: number, block: number): BlockSamples;
}

/** Checks the options and computes the permuted line of the epoch. Throws {@link OptionError}. */
export function epochOrder(options: OrderOptions): EpochOrder {
  const { counts, seed, epoch, streams, blockSamples, positions } = options;
  checkOrderOptions(options);
  const isShuffled = positions === undefined && (options.shuffle ?? true);
  const unit = options.unit ?? unitOf(counts, streams, blockSamples);
  const numbers = positions && placesOf(positions, streams);
  const line = layLine({ counts, seed, epoch, unit, blockSamples, shuffle: isShuffled, numbers });
  const cut: StreamCut = { samples: line.samples, streams, blockSamples };
  const Numbers = line.samples < 2 ** 32 ? Uint32Array : Float64Array;

  return {
    ...cut,
    line,
    block(s, block) {
      const from = blockStart(cut, s, block);
      const size = blockEnd(cut, s, block) - from;
      const place = streamStart(cut, s) + from;
      const pieces = line.pieces(place, place + size);
      const samples = new Numbers(size);
      let i = 0;
      for (const piece of pieces) for (let j = 0; j < piece.count; j++) samples[i++] = piece.number + j;
      if (isShuffled) shuffle(samples, size, seed, epoch, s, block);
      return { samples, pieces };
    },
  };
}

/** Rearranges positions, so that streams that take turns give each position its sample. */
function placesOf(positions: Uint32Array, streams: number): Uint32Array {
  if (streams === 1) return positions;
  const numbers = new Uint32Array(positions.length);
  let place = 0;
  for (let s = 0; s < streams; s++) {
    for (let at = s; at < positions.length; at += streams) numbers[place++] = positions[at]!;
  }
  return numbers;
}

/** Returns the sample at a position of the global order, which takes the streams in turn. */
export function sampleAt(order: EpochOrder, position: number): number {
  const s = position % order.streams;
  const i = (position - s) / order.streams;
  const block = blockAt(order, s, i);
  return order.block(s, block).samples[i - blockStart(order, s, block)]!;
}

/** Returns the position of a sample in the global order: the inverse of {@link sampleAt}. */
export function positionOf(order: EpochOrder, number: number): number {
  const place = order.line.placeOf(number);
  const s = streamAt(order, place);
  const block = blockAt(order, s, place - streamStart(order, s));
  const i = blockStart(order, s, block) + order.block(s, block).samples.indexOf(number);
  return i * order.streams + s;
}

/** Returns the stream that contains an offset of the line. */
export function streamAt({ samples, streams }: StreamCut, place: number): number {
  const share = Math.floor(samples / streams);
  const longer = samples % streams;
  const s = Math.floor(place / (share + 1));
  return s < longer ? s : longer + Math.floor((place - longer * (share + 1)) / share);
}

/** Throws {@link OptionError} with the name of the value that is out of range. */
export function checkOrderOptions({ counts, seed, epoch, streams, blockSamples }: OrderOptions): void {
  checkWhole('seed', seed, 0, Number.MAX_SAFE_INTEGER);
  checkWhole('epoch', epoch, 0, 2 ** 32 - 1);
  checkWhole('streams', streams, 1, MAX_STREAMS);
  checkWhole('blockSamples', blockSamples, 1, 2 ** 31 - 1);
  for (let k = 0; k < counts.length; k++) {
    if (!Number.isSafeInteger(counts[k]) || counts[k]! < 0) checkWhole(`counts[${k}]`, counts[k]!, 0);
  }
}

/** Throws {@link OptionError} if a value is not a whole number within the limits. */
export function checkWhole(name: string, value: number, least: number, most: number = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`;
  throw new OptionError({}, sentence`${optionName(name)} is ${value}: it must be a whole number ${range}.`);
}
