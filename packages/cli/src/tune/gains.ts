import type { LoaderOptions } from '@shardtool/reader';
import type { PackOptions } from '@shardtool/writer';

/** Something that may make a loader faster, and how the sample is packed and read to try it. */
export interface Remedy {
  readonly what: 'core' | 'crop index' | 'resized copy' | 'decode fast';
  /** What the user does. */
  readonly how: string;
  readonly pack?: PackOptions;
  readonly loader?: LoaderOptions;
  /** Workers of the trial, if they are other than the loader's. */
  readonly workers?: number;
}

export interface Gain {
  readonly what: Remedy['what'] | 'faster storage';
  /** The new rate by today's. */
  readonly times: number;
  readonly how: string;
}

/** Images per second: of the dataset where it is, of its storage without decoding, and of images in memory. */
export interface Rates {
  readonly here: number;
  readonly read: number;
  readonly decoded: number;
}

/** Whether a loader waits for storage: reading alone is slower than decoding alone. */
export function readingLimits({ read, decoded }: Rates): boolean {
  return read < decoded;
}

/** A remedy that was tried on the sample, beside a loader with `workers` workers. */
export interface Tried {
  readonly remedy: Remedy;
  readonly workers: number;
  readonly rate: number;
}

/**
 * What each remedy brings for the dataset where it is, the largest first. Reading and decoding run side by side, so the
 * rate is that of the slower one: a remedy of the one brings nothing where the other limits.
 */
export function gainsOf({ here, read, decoded }: Rates, tried: readonly Tried[]): Gain[] {
  const times = (decoding: number, reading: number) => Math.max(1, Math.min(decoding, reading) / here);
  // The dataset where it is cannot be read or decoded more slowly than it was just read and decoded.
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

/** How much faster the sample was. One core less stands for one more: the difference that the last one made. */
function factorOf({ remedy, workers, rate }: Tried, decoded: number): number {
  const isLess = remedy.workers !== undefined && remedy.workers < workers;
  return isLess ? Math.max(1, 2 - rate / decoded) : rate / decoded;
}
