import { philox } from '@shardtool/base';

/** The version of the order. A change that moves any sample needs a new one. */
export const ORDER_VERSION = 1;
/** That of the order of several datasets, which is made of orders of version 1. */
export const MIXTURE_VERSION = 2;

/** Streams are numbered from 0 below this. */
export const MAX_STREAMS = 65_536;

/*
 * Sequences of another purpose stand in the stream's place of the Philox counter, far above every stream, so that no word
 * is ever used twice. From 2^31 on are the samples' own random numbers (transform/random.ts); the uppermost are these.
 */

/** The permutation of the units. */
export const UNITS_STREAM = 0xffffffff;
/**
 * How often a weighted sample comes in runs that an earlier version began; block and i are the upper and lower half of the sample's
 * number in the dataset.
 */
export const WEIGHTS_STREAM = 0xfffffffd;
/** Which weighted samples come once more in a pass. */
export const WEIGHTED_STREAM = 0xfffffffa;

/** What decides the random words: seed from 0 to 2^53 - 1, epoch below 2^32. */
export interface Randomness {
  readonly seed: number;
  readonly epoch: number;
}

const WORDS = new Uint32Array(4);

/** Word i of a block of a stream: output i mod 4 of Philox4x32-10 for the counter (i / 4, block, stream, epoch) under the key `seed`. */
export function word({ seed, epoch }: Randomness, stream: number, block: number, i: number): number {
  philox(Math.floor(i / 4), block, stream, epoch, seed | 0, Math.floor(seed / 2 ** 32), WORDS);
  return WORDS[i & 3]!;
}
