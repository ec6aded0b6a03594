import { escapeControls } from '@shardtool/base/text';
import { formatCount, formatSize } from './size.js';

/** Work that wrote shards. */
export interface WrittenWork {
  readonly samples: number;
  /** Bytes that were read or written, as the line above the rate counts them. */
  readonly bytes: number;
  readonly seconds: number;
  /** Whether an earlier run did a part of the work. The rate of this run is unknown then. */
  readonly isResumed: boolean;
  /** The next command; undefined if the dataset is not complete. */
  readonly next: string | undefined;
}

/** The duration and rate of writing shards, and the next command. */
export function timeLine({ samples, bytes, seconds, isResumed, next }: WrittenWork): string {
  const time = `${seconds < 10 ? seconds.toFixed(1) : formatCount(Math.round(seconds))} s`;
  const perSecond = (amount: number) => Math.round(amount / Math.max(seconds, 1e-3));
  const rate = isResumed ? '' : ` (${formatCount(perSecond(samples))} samples/s, ${formatSize(perSecond(bytes))}/s)`;
  return `Took ${time}${rate}.${next === undefined ? '' : ` Next: ${escapeControls(next)}`}`;
}
