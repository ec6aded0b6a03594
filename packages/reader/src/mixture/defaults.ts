import { OptionError, range } from '@shardtool/base';
import { greatestCommonDivisor, STREAMS } from '../order/defaults.js';

/** Minimum number of groups in a batch if possible, so that its shares are fine enough. */
const GROUPS_PER_BATCH = 16;

/**
 * Samples of a source that follow each other: the largest divisor of the streams and the global batch up to a sixteenth
 * of the batch, or the least above that the ranks divide. Throws {@link OptionError} where there is none.
 */
export function defaultGroup(globalBatch: number, worldSize = 1): number {
  const streams = (STREAMS / greatestCommonDivisor(STREAMS, worldSize)) * worldSize;
  const most = greatestCommonDivisor(streams, globalBatch);
  const divisors = range(most + 1).filter((m) => most % m === 0);
  const usual = divisors.filter((m) => m <= Math.max(1, globalBatch / GROUPS_PER_BATCH)).at(-1)!;
  const group = usual % worldSize === 0 ? usual : divisors.find((m) => m % worldSize === 0);
  if (group !== undefined) return group;
  throw new OptionError(
    {},
    `${worldSize} ranks cannot share batches of ${globalBatch} rows evenly: use a multiple of ${worldSize}.`,
  );
}

/**
 * Streams of a source with `samples` of the epoch's `all`: its share of `streams`, by default those that one dataset has, rounded up
 * to a multiple of the group. So all sources together hold what one dataset does, and a group each beyond it.
 */
export function defaultSourceStreams(samples: number, all: number, group: number, streams = STREAMS): number {
  return group * Math.max(1, Math.ceil((streams * samples) / all / group));
}
