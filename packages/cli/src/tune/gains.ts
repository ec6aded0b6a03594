import type { LoaderOptions } from '@shardtool/reader';
import type { PackOptions } from '@shardtool/writer';

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
  /** The rate with the remedy, divided by the present rate. */
  readonly times: number;
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
  readonly rate: number;
}

/**
 * The gain of each remedy for the dataset in its location, the largest first. Reading and decoding run concurrently, so
 * the slower of the two sets the rate. A remedy for the faster one has no gain.
 */
export function gainsOf({ here, read, decoded }: Rates, tried: readonly Tried[]): Gain[] {
  const times = (decoding: number, reading: number) => Math.max(1, Math.min(decoding, reading) / here);
  // Both reading and decoding are at least as fast as the whole loader was.
  const [decoding, reading] = [Math.max(decoded, here), Math.max(read, here)];
  const gains: Gain[] = tried.map((one) => ({
    what: one.remedy.what,
    times: times(decoding * factorOf(one, decoded), reading),
    how: one.remedy.how,
  }));
  const how = 'a local copy, or --cache FOLDER for a remote dataset';
  gains.push({ what: 'faster storage', times: readingLimits({ here, read, decoded }) ? decoding / here : 1, how });
  return gains.sort((a, b) => b.times - a.times);
}

/** How much faster the sample was. A trial with one worker less estimates one core more: both make the same difference. */
function factorOf({ remedy, workers, rate }: Tried, decoded: number): number {
  const isLess = remedy.workers !== undefined && remedy.workers < workers;
  return isLess ? Math.max(1, 2 - rate / decoded) : rate / decoded;
}
