import { OptionError, optionName, sentence } from '@shardtool/base';

/**
 * An epoch's positions as a stretch of the endless sequence of passes over the samples. Without `epochSamples` an epoch
 * is one pass and begins it.
 */
export interface EpochSpan {
  /** Samples in one pass. */
  readonly passSamples: number;
  /** Samples in the epoch. */
  readonly samples: number;
  /** Number of the pass in which the epoch begins, and the position there. */
  readonly pass: number;
  readonly offset: number;
}

/** Consecutive positions of one pass, and whose they are. */
export interface Leg {
  readonly pass: number;
  /** From this position of the pass ... */
  readonly from: number;
  /** ... up to, not including, this one. */
  readonly to: number;
  /** The rank owns the positions that are this modulo worldSize. */
  readonly lane: number;
  /** False behind the end of the epoch, where its first samples come again to fill the last batch. */
  readonly valid: boolean;
}

/**
 * Epoch e of `epochSamples` samples is the stretch from e * epochSamples on, so that short epochs, one after the other,
 * still see every sample once a pass. Throws {@link OptionError} where there are no samples or too many passes.
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
    throw new OptionError({}, `Epoch ${epoch} of ${epochSamples} samples lies beyond pass 2^32: take a smaller one.`);
  }
  return { passSamples, samples: epochSamples, pass, offset };
}

/** Which pass, and which position of it, a position of the epoch is. Behind its end the epoch begins again. */
export function locate(span: EpochSpan, position: number): { readonly pass: number; readonly position: number } {
  const place = span.offset + (position % span.samples);
  return { pass: span.pass + Math.floor(place / span.passSamples), position: place % span.passSamples };
}

/** The positions `start` to `end - 1` of the epoch, cut where a pass or the epoch ends. */
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

/** The remainder that is never negative. */
export function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
