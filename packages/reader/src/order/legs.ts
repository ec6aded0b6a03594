import { OptionError, optionName, sentence } from '@shardtool/base';

/**
 * An epoch as a range of the endless sequence of passes over the samples. Without `epochSamples`, an epoch is exactly
 * one pass.
 */
export interface EpochSpan {
  /** Number of samples in one pass. */
  readonly passSamples: number;
  /** Number of samples in the epoch. */
  readonly samples: number;
  /** Number of the pass in which the epoch begins, and the position in that pass. */
  readonly pass: number;
  readonly offset: number;
}

/** Consecutive positions of one pass, and the rank that owns them. */
export interface Leg {
  readonly pass: number;
  /** First position in the pass. */
  readonly from: number;
  /** Position after the last one. */
  readonly to: number;
  /** A rank owns the positions that are equal to this modulo worldSize. */
  readonly lane: number;
  /** False after the end of the epoch, where its first samples are repeated to fill the last batch. */
  readonly valid: boolean;
}

/**
 * Returns the range of an epoch. Epoch e of `epochSamples` samples begins at e * epochSamples, so that consecutive
 * short epochs cover every sample once per pass. Throws {@link OptionError} if there are no samples or too many passes.
 */
export function epochSpan(passSamples: number, epoch: number, epochSamples?: number): EpochSpan {
  if (epochSamples === undefined) return { passSamples, samples: passSamples, pass: epoch, offset: 0 };
  if (passSamples === 0) {
    throw new OptionError(
      {},
      sentence`${optionName('samplesPerEpoch')} is ${epochSamples}, but there are no samples to take them from.`,
    );
  }
  const start = BigInt(epoch) * BigInt(epochSamples);
  const pass = Number(start / BigInt(passSamples));
  const offset = Number(start % BigInt(passSamples));
  if (pass + (offset + epochSamples) / passSamples >= 2 ** 32) {
    throw new OptionError(
      {},
      `Epoch ${epoch} of ${epochSamples} samples is beyond the 2^32 possible passes over the dataset: use a smaller epoch.`,
    );
  }
  return { passSamples, samples: epochSamples, pass, offset };
}

/** Returns the pass, and the position in it, of a position of the epoch. After its end, the epoch begins again. */
export function locate(span: EpochSpan, position: number): { readonly pass: number; readonly position: number } {
  const place = span.offset + (position % span.samples);
  return { pass: span.pass + Math.floor(place / span.passSamples), position: place % span.passSamples };
}

/** Yields the positions `start` to `end - 1` of the epoch, divided where a pass or the epoch ends. */
export function* legsOf(
  span: EpochSpan,
  start: number,
  end: number,
  rank: number,
  worldSize: number,
): Generator<Leg, undefined> {
  for (let position = start; position < end; ) {
    const at = locate(span, position);
    const epochLeft = span.samples - (position % span.samples);
    const length = Math.min(end - position, epochLeft, span.passSamples - at.position);
    yield {
      pass: at.pass,
      from: at.position,
      to: at.position + length,
      lane: modulo(rank + at.position - position, worldSize),
      valid: position < span.samples,
    };
    position += length;
  }
}

/** Returns the remainder, which is never negative. */
export function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
