import { philox } from '@shardtool/base';

/** Version of the order. A change that moves any sample needs a new version. */
export const ORDER_VERSION = 1;
/** Version of the order of a mixture, which consists of orders of version 1. */
export const MIXTURE_VERSION = 2;

/** Numbers of streams are from 0 to this minus 1. */
export const MAX_STREAMS = 65_536;

/*
 * Sequences for other purposes use numbers far above every stream in the Philox counter, so that no word is used twice.
 * Numbers from 2^31 on are the samples' own random numbers (transform/random.ts). The highest numbers are these.
 */

/** The permutation of the units. */
export const UNITS_STREAM = 0xffffffff;
/**
 * How often a weighted sample is repeated, in runs that an earlier version began. Block and i are the upper and lower
 * half of the sample's number in the dataset.
 */
export const WEIGHTS_STREAM = 0xfffffffd;
/** Which weighted samples occur once more in a pass. */
export const WEIGHTED_STREAM = 0xfffffffa;

/** The values that determine the random words: seed from 0 to 2^53 - 1, epoch below 2^32. */
export interface Randomness {
  readonly seed: number;
  readonly epoch: number;
}

const WORDS = new Uint32Array(4);

/**
 * Returns word i of a block of a stream: output i mod 4 of Philox4x32-10 for the counter (i / 4, block, stream, epoch)
 * with the key `seed`.
 */
export function word({ seed, epoch }: Randomness, stream: number, block: number, i: number): number {
  philox(Math.floor(i / 4), block, stream, epoch, seed | 0, Math.floor(seed / 2 ** 32), WORDS);
  return WORDS[i & 3]!;
}
