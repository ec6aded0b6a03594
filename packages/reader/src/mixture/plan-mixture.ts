import { OptionError } from '@shardtool/base';
import { type LastBatch, rowsOf } from '../order/batches.js';
import { type PlannedBlock, plannedBlocks, type RowRange } from '../order/blocks.js';
import {
  blockAt,
  blockStart,
  checkOrderOptions,
  checkWhole,
  type EpochOrder,
  epochOrder,
  type OrderOptions,
  sampleAt,
} from '../order/epoch-order.js';
import { type EpochSpan, epochSpan, locate, modulo } from '../order/legs.js';
import { rememberLast } from '../order/remember-last.js';
import { type PlannedBatch, RowWalk } from '../order/rows.js';
import { unitOf } from '../order/units.js';
import { greatestCommonDivisor } from './defaults.js';
import { type MixtureOrder, mixtureOrder, sourceSeed } from './mixture-order.js';

/** One dataset of a mixture: what its own order depends on. Its seed and its passes come from the mixture. */
export type MixtureSource = Pick<OrderOptions, 'counts' | 'streams' | 'blockSamples' | 'unit' | 'shuffle'>;

export interface MixturePlanOptions {
  readonly sources: readonly MixtureSource[];
  /** Samples of each source in an epoch: see `epochCounts`. */
  readonly samples: readonly number[];
  /** Samples of each source that came before this epoch. By default epoch times `samples`. */
  readonly base?: readonly number[] | undefined;
  readonly seed: number;
  readonly epoch: number;
  /** Samples of a source that follow each other. `worldSize` must divide it. */
  readonly group: number;
  /** Groups that are shuffled together. */
  readonly window: number;
  readonly rank?: number | undefined;
  readonly worldSize?: number | undefined;
  /** Rows of a batch over all ranks. */
  readonly globalBatch: number;
  readonly lastBatch?: LastBatch | undefined;
  /** Samples of the epoch that are already delivered, over all ranks and sources. */
  readonly position?: number | undefined;
  /** As in `PlanOptions`. */
  readonly ownOnly?: boolean | undefined;
}

/** A block of one source. Its pieces and sample numbers count within that source. */
export interface MixtureBlock extends PlannedBlock {
  readonly source: number;
}

/** A sample by its source, the pass over that, and its number there. */
export interface MixtureSample {
  readonly source: number;
  readonly pass: number;
  readonly number: number;
}

/** What one rank reads and delivers in the rest of an epoch of a mixture. As `EpochPlan`, but for the sources. */
export interface MixturePlan {
  readonly samples: number;
  readonly batches: number;
  readonly isEmpty: boolean;
  readonly batchSize: number;
  readonly lastBatch: LastBatch;
  /** Blocks in memory at once, the one that is being read with them; samples behind the last turn are blocks of their own. */
  readonly maxLiveBlocks: number;
  blocks(): Generator<MixtureBlock, undefined>;
  rows(): Generator<PlannedBatch, undefined>;
  at(position: number): MixtureSample;
  /** Samples of each source that come before a position, over all passes and epochs: `base` of a mixture that continues there. */
  taken(position: number): number[];
}

/** Rows of one source that follow each other in a rank's part. */
interface Run {
  readonly source: number;
  readonly rows: number;
  /** The stretch of the epoch that it is in: another one begins where the epoch begins again to fill the last batch. */
  readonly stretch: Stretch;
  /** Behind the last turn: the sample's number among its source's of the epoch. `rows` is 1 then. */
  readonly single?: number;
}

/** Positions of the epoch from `from` on, of which the rank owns those that are `lane` modulo worldSize. */
interface Stretch {
  readonly from: number;
  readonly first: number;
  readonly lane: number;
  readonly rows: number;
  readonly valid: boolean;
}

/**
 * Plans one rank's part of an epoch of a mixture. Between turns each source keeps its position, so a rank's part of a
 * source is a range of rows of that source's own order, and is planned as such. Throws {@link OptionError} for values that
 * are not allowed.
 */
export function planMixture(options: MixturePlanOptions): MixturePlan {
  const { sources, seed, epoch, group, window, globalBatch, rank = 0, worldSize = 1, position = 0 } = options;
  check(options);
  const order = mixtureOrder({ samples: options.samples, seed, epoch, group, window });
  checkWhole('position', position, 0, order.samples);
  const lastBatch = options.lastBatch ?? (worldSize === 1 ? 'partial' : 'pad');
  const left = order.samples - position;
  const batches = lastBatch === 'drop' ? Math.floor(left / globalBatch) : Math.ceil(left / globalBatch);
  const batchSize = globalBatch / worldSize;
  const first = position + modulo(rank - position, worldSize);
  const owned = Math.max(0, Math.ceil((order.samples - first) / worldSize));
  const rows = options.ownOnly === true ? owned : rowsOf(lastBatch, batches, batchSize, owned);

  const spans = sources.map((source, d) => sourceSpan(source, options, d));
  const orders = sources.map((source, d) => {
    const unit = source.unit ?? unitOf(source.counts, source.streams, source.blockSamples);
    const own = sourceSeed(seed, d);
    return rememberLast((pass) => epochOrder({ ...source, unit, seed: own, epoch: pass }));
  });
  const rangeOf = (stretch: Stretch, d: number) => sourceRange(order, spans[d]!, sources[d]!, stretch, d, options);
  const runs = () => runsOf(order, { position, rank, worldSize, group, rows });
  const find = (source: number, index: number) => locate({ ...spans[source]!, samples: Infinity }, index);
  return {
    samples: order.samples,
    batches,
    isEmpty: batches === 0,
    batchSize,
    lastBatch,
    maxLiveBlocks: 1 + sources.reduce((sum, { streams }) => sum + streams / worldSize, 0),
    *rows(): Generator<PlannedBatch, undefined> {
      const walk = new MixtureWalk(rangeOf);
      const follow = runs();
      let run = follow.next().value;
      let done = 0;
      let total = 0;
      for (let index = 0; index < batches; index++) {
        const size = Math.min(batchSize, rows - total);
        const columns = { block: new Int32Array(size), item: new Int32Array(size), valid: new Uint8Array(size) };
        for (let row = 0; row < size; ) {
          const count = Math.min(size - row, run!.rows - done);
          walk.take(run!, columns, row, count);
          columns.valid.fill(run!.stretch.valid ? 1 : 0, row, row + count);
          row += count;
          done += count;
          if (done < run!.rows) continue;
          run = follow.next().value;
          done = 0;
        }
        total += size;
        yield { index, ...columns, position: Math.min(order.samples, position + (index + 1) * globalBatch) };
      }
    },
    *blocks(): Generator<MixtureBlock, undefined> {
      const walk = new MixtureWalk(rangeOf);
      const columns = { block: new Int32Array(group), item: new Int32Array(group), valid: new Uint8Array(group) };
      let stretch: Stretch | undefined;
      let planned: Generator<PlannedBlock, undefined>[] = [];
      let ordinal = 0;
      for (const run of runs()) {
        const { source, single } = run;
        if (run.stretch !== stretch) {
          stretch = run.stretch;
          planned = sources.map((_, d) => plannedBlocks(rangeOf(run.stretch, d), orders[d]!));
        }
        walk.take(run, columns, 0, run.rows);
        if (single !== undefined) {
          const { pass, position } = find(source, single);
          yield { ...blockOfOne(orders[source]!(pass), position), ordinal: ordinal++, pass, source };
          continue;
        }
        for (; ordinal < walk.blocks; ordinal++) yield { ...planned[source]!.next().value!, ordinal, source };
      }
    },
    at(at) {
      const { source, index } = order.at(at);
      const { pass, position } = find(source, index);
      return { source, pass, number: sampleAt(orders[source]!(pass), position) };
    },
    taken: (at) =>
      order.before(at).map((count, d) => spans[d]!.pass * spans[d]!.passSamples + spans[d]!.offset + count),
  };
}

/** Where the rows of a rank are in each source. */
class MixtureWalk {
  readonly #rangeOf: (stretch: Stretch, source: number) => RowRange;
  readonly #ordinals = { next: 0 };
  #stretch: Stretch | undefined;
  #walks: (RowWalk | undefined)[] = [];

  constructor(rangeOf: (stretch: Stretch, source: number) => RowRange) {
    this.#rangeOf = rangeOf;
  }

  /** Blocks that the rows so far have needed. */
  get blocks(): number {
    return this.#ordinals.next;
  }

  take(
    { source, stretch, single }: Run,
    columns: Pick<PlannedBatch, 'block' | 'item' | 'valid'>,
    row: number,
    count: number,
  ): void {
    if (single !== undefined) {
      columns.block[row] = this.#ordinals.next++;
      columns.item[row] = 0;
      return;
    }
    if (stretch !== this.#stretch) {
      this.#stretch = stretch;
      this.#walks = [];
    }
    this.#walks[source] ??= new RowWalk(this.#rangeOf(stretch, source), this.#ordinals);
    this.#walks[source].take(columns, row, count);
  }
}

/** The rank's rows, `rows` in all, turn by turn. Behind the end of the epoch it begins again. */
function* runsOf(
  order: MixtureOrder,
  part: { position: number; rank: number; worldSize: number; group: number; rows: number },
): Generator<Run, undefined> {
  const { worldSize, group } = part;
  let left = part.rows;
  for (let round = 0; left > 0; round++) {
    const from = round === 0 ? part.position : 0;
    const lane = modulo(part.rank - round * order.samples, worldSize);
    const first = from + modulo(lane - from, worldSize);
    const rows = Math.min(left, Math.max(0, Math.ceil((order.samples - first) / worldSize)));
    const stretch: Stretch = { from, first, lane, rows, valid: round === 0 };
    const end = first + rows * worldSize;
    for (let p = first; p < end; ) {
      if (p >= order.tail) {
        const { source, index } = order.at(p);
        yield { source, rows: 1, stretch, single: index };
        p += worldSize;
        continue;
      }
      const turn = Math.floor(p / group);
      const count = Math.ceil((Math.min((turn + 1) * group, end) - p) / worldSize);
      yield { source: order.sourceOfTurn(turn), rows: count, stretch };
      p += count * worldSize;
    }
    left -= rows;
  }
}

/** The epoch's turns of a source, as a stretch of its endless sequence of passes. */
function sourceSpan(
  { counts }: MixtureSource,
  { samples, base, epoch, group }: MixturePlanOptions,
  d: number,
): EpochSpan {
  let passSamples = 0;
  for (let k = 0; k < counts.length; k++) passSamples += counts[k]!;
  const inTurns = samples[d]! - (samples[d]! % group);
  if (base === undefined) return { ...epochSpan(passSamples, epoch, samples[d]!), samples: inTurns };
  return {
    passSamples,
    samples: inTurns,
    pass: Math.floor(base[d]! / passSamples),
    offset: base[d]! % passSamples,
  };
}

/** A rank's rows of a source in the turns of a stretch. */
function sourceRange(
  order: MixtureOrder,
  span: EpochSpan,
  { streams, blockSamples }: MixtureSource,
  { from, first, lane, rows }: Stretch,
  d: number,
  { worldSize = 1 }: MixturePlanOptions,
): RowRange {
  const start = Math.min(span.samples, order.before(from)[d]!);
  const behind = rows === 0 ? from : first + (rows - 1) * worldSize + 1;
  const end = Math.min(span.samples, order.before(behind)[d]!);
  const own = Math.max(0, Math.ceil((end - start - modulo(lane - start, worldSize)) / worldSize));
  return { span, start, rows: own, rank: lane, worldSize, cut: { samples: span.passSamples, streams, blockSamples } };
}

/** The sample at a position, as a block of its own: behind the last turn streams do not belong to ranks. */
function blockOfOne(order: EpochOrder, position: number): Omit<PlannedBlock, 'ordinal' | 'pass'> {
  const s = position % order.streams;
  const i = (position - s) / order.streams;
  const block = blockAt(order, s, i);
  const number = order.block(s, block).samples[i - blockStart(order, s, block)]!;
  const place = order.line.placeOf(number);
  const pieces = order.line.pieces(place, place + 1);
  return { samples: Float64Array.of(number), from: 0, pieces, uses: 1 };
}

function check(options: MixturePlanOptions): void {
  const { sources, samples, base, seed, epoch, group, window, globalBatch, rank = 0, worldSize = 1 } = options;
  for (const source of sources) checkOrderOptions({ ...source, seed, epoch });
  checkWhole('group', group, 1);
  checkWhole('window', window, 1);
  checkWhole('worldSize', worldSize, 1);
  checkWhole('rank', rank, 0, worldSize - 1);
  checkWhole('globalBatch', globalBatch, 1);
  if (samples.length !== sources.length || (base !== undefined && base.length !== sources.length)) {
    throw new OptionError({}, `A mixture of ${sources.length} datasets needs as many numbers of samples.`);
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

/** The numbers of ranks under which every rank reads streams of its own, rising: under each the order is the same. */
export function legalMixtureWorldSizes(
  options: Pick<MixturePlanOptions, 'sources' | 'group' | 'globalBatch'>,
): number[] {
  const most = options.sources.reduce(
    (divisor, { streams }) => greatestCommonDivisor(divisor, streams),
    greatestCommonDivisor(options.group, options.globalBatch),
  );
  return Array.from({ length: most }, (_, i) => i + 1).filter((w) => most % w === 0);
}
