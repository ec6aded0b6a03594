import { OptionError, range } from '@shardtool/base';
import { greatestCommonDivisor, STREAMS } from '../order/defaults.js';

/** Minimum number of groups in a batch if possible, so that its shares are fine enough. */
const GROUPS_PER_BATCH = 16;

/**
 * Number of consecutive samples of a source: the largest divisor of the streams and the global batch that is at most a
 * sixteenth of the batch, or the smallest larger one that the ranks divide. Throws {@link OptionError} if there is
 * none.
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
 * Number of streams of a source that has `samples` of the `all` samples of an epoch: its share of `streams` (by default
 * those of one dataset), rounded up to a multiple of the group. So all sources together buffer as much as one dataset,
 * plus at most one group each.
 */
export function defaultSourceStreams(samples: number, all: number, group: number, streams = STREAMS): number {
  return group * Math.max(1, Math.ceil((streams * samples) / all / group));
}
