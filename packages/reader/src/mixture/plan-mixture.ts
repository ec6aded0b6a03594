import { OptionError, range } from '@shardtool/base';
import { type BatchOptions, checkBatches, type EpochPlan, planBatches } from '../order/batches.js';
import { greatestCommonDivisor } from '../order/defaults.js';
import { checkOrderOptions, checkWhole } from '../order/epoch-order.js';
import { type EpochSpan, epochSpan } from '../order/legs.js';
import { type PassesOptions, passesOver } from '../order/passes.js';
import { unitOf } from '../order/units.js';
import { mix } from './mix.js';
import { mixtureOrder, sourceSeed } from './mixture-order.js';

/** One dataset of a mixture: all values that its own order depends on, except its seed, which depends on the mixture's. */
export type MixtureSource = Omit<PassesOptions, 'seed' | 'positions'>;

/** `position` counts over all sources. `worldSize` must divide `group`. */
export interface MixturePlanOptions extends BatchOptions {
  readonly sources: readonly MixtureSource[];
  /** Samples of each source in an epoch: see `epochCounts`. */
  readonly samples: readonly number[];
  /** Number of samples of each source before this epoch. Default: epoch times `samples`. */
  readonly base?: readonly number[] | undefined;
  readonly seed: number;
  readonly epoch: number;
  /** Number of consecutive samples of a source. */
  readonly group: number;
  /** Number of groups that are shuffled together. */
  readonly window: number;
}

/** A plan of a mixture. Each sample after the last turn is a block, which `maxLiveBlocks` does not count. */
export interface MixturePlan extends EpochPlan {
  /** Returns the number of samples of each source before a position, over all epochs: `base` of a mixture that resumes there. */
  taken(position: number): number[];
}

/** Plans one rank's part of an epoch of a mixture. Throws {@link OptionError} for values that are not allowed. */
export function planMixture(options: MixturePlanOptions): MixturePlan {
  const { sources, samples, seed, epoch, group, window } = options;
  check(options);
  const turns = mixtureOrder({ samples, seed, epoch, group, window });
  const spans = sources.map((source, d) => sourceSpan(source, options, d));
  const units = sources.map(({ unit, counts, streams, blockSamples }) => unit ?? unitOf(counts, streams, blockSamples));
  const orders = sources.map((source, d) =>
    passesOver({ ...source, unit: units[d], seed: sourceSeed(seed, d) }, spans[d]!, d),
  );
  const unit = units.every((one) => one === 'sample') ? 'sample' : 'chunk';
  return {
    ...planBatches(mix({ orders, turns, group }), unit, options),
    taken: (at) =>
      turns.before(at).map((count, d) => spans[d]!.pass * spans[d]!.passSamples + spans[d]!.offset + count),
  };
}

/** Returns the epoch's samples of a source, as a part of its endless sequence of passes. */
function sourceSpan({ counts }: MixtureSource, { samples, base, epoch }: MixturePlanOptions, d: number): EpochSpan {
  let passSamples = 0;
  for (let k = 0; k < counts.length; k++) passSamples += counts[k]!;
  // A selection may exclude all samples of a source.
  if (passSamples === 0 && samples[d] === 0) return { passSamples, samples: 0, pass: 0, offset: 0 };
  if (base === undefined) return epochSpan(passSamples, epoch, samples[d]!);
  return {
    passSamples,
    samples: samples[d]!,
    pass: Math.floor(base[d]! / passSamples),
    offset: base[d]! % passSamples,
  };
}

function check(options: MixturePlanOptions): void {
  const { sources, samples, base, seed, epoch, group, window, globalBatch, worldSize = 1 } = options;
  for (const source of sources) checkOrderOptions({ ...source, seed, epoch });
  checkWhole('group', group, 1);
  checkWhole('window', window, 1);
  checkBatches(options);
  if (samples.length !== sources.length || (base !== undefined && base.length !== sources.length)) {
    throw new OptionError(
      {},
      `A mixture of ${sources.length} datasets needs ${sources.length} numbers of samples, one for each.`,
    );
  }
  for (const count of [...samples, ...(base ?? [])]) checkWhole('samples', count, 0);
  const legal = legalMixtureWorldSizes(options);
  if (legal.includes(worldSize)) return;
  throw new OptionError(
    {},
    `${worldSize} ranks cannot share groups of ${group} samples, batches of ${globalBatch} rows and ` +
      `${sources.map(({ streams }) => streams).join(', ')} streams evenly: use ${legal.join(', ')} ranks, or another batch size.`,
  );
}

/** World sizes, in ascending order, with which every rank reads separate streams. With each of them, the order is the same. */
export function legalMixtureWorldSizes(
  options: Pick<MixturePlanOptions, 'sources' | 'group' | 'globalBatch'>,
): number[] {
  const most = options.sources.reduce(
    (divisor, { streams }) => greatestCommonDivisor(divisor, streams),
    greatestCommonDivisor(options.group, options.globalBatch),
  );
  return range(most + 1).filter((w) => most % w === 0);
}
