import { OptionError, optionName, sentence, total } from '@shardtool/base';

/**
 * The source at which an epoch ends: the one whose samples are used up first or last, or the source with this number.
 */
export type MixtureEnd = 'first' | 'last' | number;

/**
 * Number of samples of each source in an epoch. At most one of `repeat`, `weights` and `perBatch` may be set, with an
 * entry for each source. Without any of them, every sample of all sources occurs once.
 */
export interface MixturePolicy {
  /** Number of passes over each source in an epoch: 2, 0.5. */
  readonly repeat?: readonly number[] | undefined;
  /** Shares of the epoch, exact as written in decimal: 0.7 and 0.3 are 7 and 3. */
  readonly weights?: readonly number[] | undefined;
  /** Rows of each source in every global batch. */
  readonly perBatch?: readonly number[] | undefined;
  /** When an epoch ends, for `weights` or `perBatch`. Default: `first`. */
  readonly end?: MixtureEnd | undefined;
  /** Number of samples of an epoch, instead of `end`. */
  readonly epochSamples?: number | undefined;
}

/**
 * Number of samples of each source in one epoch, which determines the order of a mixture. `sizes` are the numbers of
 * samples of the sources. `sums` are the sums of the weights of their samples, which are the shares of the sources if
 * no others are set. Throws {@link OptionError} for an empty source, a share that is not above 0, or contradicting
 * options.
 */
export function epochCounts(
  sizes: readonly number[],
  policy: MixturePolicy = {},
  sums: readonly number[] | null = null,
): number[] {
  checkPolicy(sizes, policy);
  const counts = countsOf(sizes, policy, sums);
  if (counts.some((count) => count > 0)) return counts;
  const { perBatch, epochSamples } = policy;
  if (perBatch === undefined) {
    throw new OptionError(
      {},
      'repeat leaves no sample of any dataset in an epoch: set a larger number for at least one dataset.',
    );
  }
  const rows = total(perBatch);
  if (epochSamples !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('samplesPerEpoch')} is ${epochSamples}, and ${optionName('perBatch')} makes batches of ${rows} rows: set it to at least ${rows}.`,
    );
  }
  const short = typeof policy.end === 'number' ? policy.end : sizes.findIndex((size, d) => size < perBatch[d]!);
  throw new OptionError(
    {},
    sentence`${optionName('perBatch')} takes ${perBatch[short]} rows of dataset ${short} for each batch, but that dataset has only ${sizes[short]} samples: take fewer rows, or set end to 'last' or to a larger dataset.`,
  );
}

function countsOf(sizes: readonly number[], policy: MixturePolicy, sums: readonly number[] | null): number[] {
  const { repeat, weights, perBatch, epochSamples, end = 'first' } = policy;
  if (perBatch !== undefined) {
    const batches = batchesOf(sizes, perBatch, end, epochSamples);
    return perBatch.map((rows) => rows * batches);
  }
  if (weights === undefined && repeat === undefined && sums !== null) {
    return largestRemainder(epochSamples ?? total(sizes), someShares(sums));
  }
  if (weights === undefined) {
    const [once, ...times] = wholeShares([1, ...sizes.map((_, d) => repeat?.[d] ?? 1)]);
    const shares = sizes.map((size, d) => BigInt(size) * times[d]!);
    return epochSamples === undefined
      ? shares.map((share) => roundHalfUp(share, once!))
      : largestRemainder(epochSamples, shares);
  }
  const shares = wholeShares(weights);
  if (epochSamples !== undefined) return largestRemainder(epochSamples, shares);
  const last = endingSource(sizes, shares, end);
  return sizes.map((size, d) => (d === last ? size : roundHalfUp(BigInt(sizes[last]!) * shares[d]!, shares[last]!)));
}

/**
 * Converts decimal numbers to the smallest whole numbers in the same proportion, exactly. Throws {@link OptionError}
 * unless they are above 0.
 */
export function wholeShares(shares: readonly number[]): bigint[] {
  const parts = shares.map((share) => {
    const match = /^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/.exec(String(share));
    if (match === null || !(share > 0) || !Number.isFinite(share)) {
      throw new OptionError({}, `A weight of a mixture is ${share}: it must be a number above 0.`);
    }
    const [, whole, fraction, exponent = '0'] = match;
    return { digits: BigInt(whole! + fraction!), exponent: Number(exponent) - fraction!.length };
  });
  const least = Math.min(...parts.map(({ exponent }) => exponent));
  const whole = parts.map(({ digits, exponent }) => digits * 10n ** BigInt(exponent - least));
  const divisor = whole.reduce(greatestCommonDivisor);
  return whole.map((share) => share / divisor);
}

/** Like {@link wholeShares} for shares that may be 0. */
function someShares(shares: readonly number[]): bigint[] {
  const whole = wholeShares(shares.filter((share) => share > 0));
  return shares.map((share) => (share > 0 ? whole.shift()! : 0n));
}

/**
 * Divides `count` in proportion to `shares`: first the whole parts, then one more each for the largest remainders. Of
 * equal remainders, the first comes first.
 */
export function largestRemainder(count: number, shares: readonly bigint[]): number[] {
  const all = shares.reduce((a, b) => a + b, 0n);
  const counts = shares.map((share) => Number((BigInt(count) * share) / all));
  const remainders = shares.map((share, d) => ({ d, rest: (BigInt(count) * share) % all }));
  remainders.sort((a, b) => (a.rest === b.rest ? a.d - b.d : a.rest > b.rest ? -1 : 1));
  const left = count - total(counts);
  for (const { d } of remainders.slice(0, left)) counts[d]!++;
  return counts;
}

function checkPolicy(sizes: readonly number[], policy: MixturePolicy): void {
  const hasShares = (policy.weights ?? policy.perBatch) !== undefined;
  const empty = hasShares ? sizes.findIndex((size) => size < 1) : -1;
  if (sizes.length === 0) throw new OptionError({}, 'A mixture needs at least one dataset.');
  if (empty >= 0) {
    throw new OptionError(
      {},
      `Dataset ${empty} of the mixture has no samples: remove it, or select other samples of it.`,
    );
  }
  const ways = (['repeat', 'weights', 'perBatch'] as const).filter((way) => policy[way] !== undefined);
  if (ways.length > 1) throw new OptionError({}, `A mixture has ${ways.join(' and ')}: set only one of them.`);
  const [way] = ways;
  if (way !== undefined && policy[way]!.length !== sizes.length) {
    throw new OptionError(
      {},
      `${way} has ${policy[way]!.length} entries for ${sizes.length} datasets: give one entry per dataset.`,
    );
  }
  const { end, epochSamples } = policy;
  if (end !== undefined && (way === undefined || way === 'repeat')) {
    throw new OptionError(
      {},
      sentence`${optionName('end')} sets where an epoch with weights or ${optionName('perBatch')} ends: set one of those too, or remove ${optionName('end')}.`,
    );
  }
  if (end !== undefined && epochSamples !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('end')} and ${optionName('samplesPerEpoch')} both set the length of an epoch: set only one of them.`,
    );
  }
  if (typeof end === 'number' && !(Number.isInteger(end) && end >= 0 && end < sizes.length)) {
    throw new OptionError(
      {},
      sentence`${optionName('end')} is ${end}: the datasets of this mixture are 0 to ${sizes.length - 1}.`,
    );
  }
  if (epochSamples !== undefined && !(Number.isSafeInteger(epochSamples) && epochSamples >= 1)) {
    throw new OptionError(
      {},
      sentence`${optionName('samplesPerEpoch')} is ${epochSamples}: it must be a whole number of at least 1.`,
    );
  }
  const wrong = policy.perBatch?.find((rows) => !(Number.isSafeInteger(rows) && rows >= 1));
  if (wrong !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('perBatch')} has ${wrong}: the numbers of rows must be whole numbers of at least 1.`,
    );
  }
}

function batchesOf(
  sizes: readonly number[],
  perBatch: readonly number[],
  end: MixtureEnd,
  epochSamples: number | undefined,
): number {
  if (epochSamples !== undefined) return Math.floor(epochSamples / total(perBatch));
  if (typeof end === 'number') return Math.floor(sizes[end]! / perBatch[end]!);
  return end === 'first'
    ? Math.min(...sizes.map((size, d) => Math.floor(size / perBatch[d]!)))
    : Math.max(...sizes.map((size, d) => Math.ceil(size / perBatch[d]!)));
}

/** The source with the smallest or the largest ratio of size to share. Of equal ratios, the first. */
function endingSource(sizes: readonly number[], shares: readonly bigint[], end: MixtureEnd): number {
  if (typeof end === 'number') return end;
  let last = 0;
  for (let d = 1; d < sizes.length; d++) {
    const later = BigInt(sizes[d]!) * shares[last]! - BigInt(sizes[last]!) * shares[d]!;
    if (end === 'first' ? later < 0n : later > 0n) last = d;
  }
  return last;
}

function roundHalfUp(numerator: bigint, denominator: bigint): number {
  return Number((2n * numerator + denominator) / (2n * denominator));
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestCommonDivisor(b, a % b);
}
