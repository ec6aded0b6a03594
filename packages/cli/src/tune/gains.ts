import type { LoaderOptions } from '@shardtool/reader';
import type { PackOptions } from '@shardtool/writer';
import { quantile } from '../bench/bench.js';

/** Something that may make a loader faster, and how the sample is packed and read to try it. */
export interface Remedy {
  readonly what: 'core' | 'crop index' | 'resized copy' | 'decode fast';
  /** Command, option or action that applies the remedy. */
  readonly how: string;
  readonly pack?: PackOptions;
  readonly loader?: LoaderOptions;
  /** Number of workers of the trial, if it differs from the loader's. */
  readonly workers?: number;
}

export interface Gain {
  readonly what: Remedy['what'] | 'faster storage';
  /** The rate with the remedy, divided by the present rate: the median of the turns. */
  readonly times: number;
  /** The smallest and the largest gain of a turn. */
  readonly least: number;
  readonly most: number;
  readonly how: string;
}

/** Images per second: from the dataset in its location, from there without decoding, and from memory. */
export interface Rates {
  readonly here: number;
  readonly read: number;
  readonly decoded: number;
}

/** Whether a loader waits for storage: reading alone is slower than decoding alone. */
export function readingLimits({ read, decoded }: Rates): boolean {
  return read < decoded;
}

/** A remedy that was tried on the sample, in turns with the loader as it is, which has `workers` workers. */
export interface Tried {
  readonly remedy: Remedy;
  readonly workers: number;
  /** For each turn, the rate with the remedy, divided by that of the loader as it is just before. */
  readonly ratios: readonly number[];
  /** Size of an image with the remedy, divided by the present size. */
  readonly size: number;
}

/**
 * The gain of each remedy for the dataset in its location, the largest first. Reading and decoding run concurrently, so
 * the slower of the two sets the rate. A remedy for the faster one has no gain.
 */
export function gainsOf({ here, read, decoded }: Rates, tried: readonly Tried[]): Gain[] {
  const isReading = readingLimits({ here, read, decoded });
  // If decoding is the limit, the sample and the dataset have the same rate. Where they differ, the machine has changed in
  // the meantime, which must not count as a gain.
  const decoding = (ratio: number) => (isReading ? (Math.max(decoded, here) * ratio) / here : ratio);
  const times = (ratio: number, size: number) =>
    Math.max(1, Math.min(decoding(ratio), Math.max(read, here) / size / here));
  const gains: Gain[] = tried.map(({ remedy, workers, ratios, size }) => {
    const all = ratios.map((ratio) => times(factorOf(remedy, workers, ratio), size)).sort((a, b) => a - b);
    return { what: remedy.what, times: quantile(all, 0.5), least: all[0]!, most: all.at(-1)!, how: remedy.how };
  });
  const storage = isReading ? Math.max(1, decoding(1)) : 1;
  const how = 'a local copy, or --cache FOLDER for a remote dataset';
  gains.push({ what: 'faster storage', times: storage, least: storage, most: storage, how });
  return gains.sort((a, b) => b.times - a.times);
}

/** How much faster the sample was. A trial with one worker less estimates one core more: both make the same difference. */
function factorOf(remedy: Remedy, workers: number, ratio: number): number {
  const isLess = remedy.workers !== undefined && remedy.workers < workers;
  return isLess ? Math.max(1, 2 - ratio) : ratio;
}
