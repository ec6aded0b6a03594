import { philox, shuffle } from '@shardtool/base';
import { rememberLast } from '../order/remember-last.js';
import { turnsBefore } from './turns.js';

/* Value for the stream in the Philox counter, larger than the number of any stream: see order/words.ts. */
/** The seeds of the sources. */
const SEEDS_STREAM = 0xfffffffb;
/** The turns within a window. */
const TURNS_STREAM = 0xfffffffc;
/** Value for the block in the Philox counter, for the samples after the last turn. */
const TAIL_BLOCK = 0xffffffff;

/** The values that determine the order of an epoch of a mixture, in addition to the orders of its sources. */
export interface MixtureOrderOptions {
  /** Samples of each source in the epoch. */
  readonly samples: readonly number[];
  /** 0 to 2^53 - 1. */
  readonly seed: number;
  /** The epoch; less than 2^32. */
  readonly epoch: number;
  /** Number of consecutive samples of a source, which are a turn. */
  readonly group: number;
  /** Number of turns that are shuffled together. */
  readonly window: number;
}

/**
 * The source of each position of an epoch. The samples of a source in the epoch are numbered from 0, in the order in
 * which they come.
 */
export interface MixtureOrder {
  /** Samples of the epoch, over all sources. */
  readonly samples: number;
  /** The position after the last turn. From here on, samples come one by one. */
  readonly tail: number;
  /** The source of a turn. Fast if turns are requested in sequence. */
  sourceOfTurn(turn: number): number;
  /** The source at a position, and the number of its sample within the source. */
  at(position: number): { readonly source: number; readonly index: number };
  /** Number of samples of each source before a position. */
  before(position: number): number[];
}

/** A few turns or samples of several sources in shuffled order. */
interface Arrangement {
  readonly source: Uint32Array;
  /** For each position: the number of earlier positions here with the same source. */
  readonly earlier: Uint32Array;
}

/**
 * The order of one epoch of a mixture, version 2 of the order. Turns of `group` samples are lined up by `turnsBefore`,
 * and each window of them is shuffled. Then the samples that do not fill a turn come one by one. A change that moves
 * any sample must be version 3.
 */
export function mixtureOrder({ samples, seed, epoch, group, window }: MixtureOrderOptions): MixtureOrder {
  const turns = samples.map((count) => Math.floor(count / group));
  const allTurns = turns.reduce((a, b) => a + b, 0);
  const tail = allTurns * group;
  const arrange = (counts: readonly number[], block: number): Arrangement => {
    const source = new Uint32Array(counts.reduce((a, b) => a + b, 0));
    let place = 0;
    counts.forEach((count, d) => {
      source.fill(d, place, place + count);
      place += count;
    });
    shuffle(source, source.length, seed, epoch, TURNS_STREAM, block);
    const seen = counts.map(() => 0);
    return { source, earlier: source.map((d) => seen[d]!++) };
  };
  const windowAt = rememberLast((v) => {
    const before = turnsBefore(turns, v * window);
    const after = turnsBefore(turns, Math.min(allTurns, (v + 1) * window));
    const counts = after.map((n, d) => n - before[d]!);
    return { before, ...arrange(counts, v) };
  });
  const end = arrange(
    samples.map((count) => count % group),
    TAIL_BLOCK,
  );

  return {
    samples: samples.reduce((a, b) => a + b, 0),
    tail,
    sourceOfTurn: (turn) => windowAt(Math.floor(turn / window)).source[turn % window]!,
    at(position) {
      if (position >= tail) {
        const source = end.source[position - tail]!;
        return { source, index: turns[source]! * group + end.earlier[position - tail]! };
      }
      const turn = Math.floor(position / group);
      const { before, source: sources, earlier } = windowAt(Math.floor(turn / window));
      const source = sources[turn % window]!;
      const turnsOfSource = before[source]! + earlier[turn % window]!;
      return { source, index: turnsOfSource * group + (position % group) };
    },
    before(position) {
      if (position >= tail) {
        const counts = turns.map((n) => n * group);
        for (let place = 0; place < position - tail; place++) counts[end.source[place]!]!++;
        return counts;
      }
      const turn = Math.floor(position / group);
      const { before, source } = windowAt(Math.floor(turn / window));
      const counts = before.map((n) => n * group);
      for (let place = 0; place < turn % window; place++) counts[source[place]!]! += group;
      counts[source[turn % window]!]! += position % group;
      return counts;
    },
  };
}

const WORDS = new Uint32Array(4);

/**
 * The seed for the order of a source and for the random numbers of its samples. The first source has the seed of the
 * mixture, so that a mixture of one dataset has the order of that dataset. The others have different seeds, so that a
 * dataset that is listed twice has two different orders.
 */
export function sourceSeed(seed: number, source: number): number {
  if (source === 0) return seed;
  philox(0, source, SEEDS_STREAM, 0, seed | 0, Math.floor(seed / 2 ** 32), WORDS);
  return WORDS[0]! + (WORDS[1]! % 2 ** 21) * 2 ** 32;
}
