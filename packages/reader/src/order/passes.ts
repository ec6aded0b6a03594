import { plannedBlocks, type RowRange } from './blocks.js';
import { blockAt, blockStart, type EpochOrder, epochOrder, type OrderOptions, sampleAt } from './epoch-order.js';
import { type EpochSpan, locate } from './legs.js';
import type { Order, PlannedBlock, RankPart } from './order.js';
import { rememberLast } from './remember-last.js';
import { RowWalk } from './rows.js';

/** All values that the passes over a dataset depend on. */
export interface PassesOptions extends Omit<OrderOptions, 'epoch'> {
  /** Returns the samples of each shard in a pass, if they differ from pass to pass. All passes have the same total. */
  readonly countsOf?: ((pass: number) => OrderOptions['counts']) | undefined;
}

/** Returns the order of one epoch over a dataset: a part of its passes. Pass k is shuffled with k as its epoch. */
export function passesOver(options: PassesOptions, span: EpochSpan, source = 0): Order {
  const { streams, blockSamples } = options;
  const orderOf = orderOfPasses(options);
  const cut = { samples: span.passSamples, streams, blockSamples };
  const rangeOf = ({ position, ...part }: RankPart): RowRange => ({ ...part, span, start: position, cut });
  return {
    length: span.samples,
    at(at) {
      const { pass, position } = locate(span, at);
      return { source, pass, number: sampleAt(orderOf(pass), position) };
    },
    single(at) {
      const { pass, position } = locate(span, at);
      return { ...blockOfOne(orderOf(pass), position), source, pass };
    },
    blocks: (part) => plannedBlocks(rangeOf(part), orderOf, source),
    rows: (part, ordinals = { next: 0 }) => new RowWalk(rangeOf(part), ordinals),
    liveBlocks: (worldSize) => streams / worldSize,
  };
}

/** Returns a function that makes the order of a pass. An order holds the permuted line, so only the latest is kept. */
export function orderOfPasses({ countsOf, ...options }: PassesOptions): (pass: number) => EpochOrder {
  return rememberLast((pass) => epochOrder({ ...options, counts: countsOf?.(pass) ?? options.counts, epoch: pass }));
}

/** The sample at a position of a pass as a block. */
export function blockOfOne(
  order: EpochOrder,
  position: number,
): Pick<PlannedBlock, 'samples' | 'from' | 'pieces' | 'uses'> {
  const s = position % order.streams;
  const i = (position - s) / order.streams;
  const block = blockAt(order, s, i);
  const number = order.block(s, block).samples[i - blockStart(order, s, block)]!;
  const place = order.line.placeOf(number);
  const pieces = order.line.pieces(place, place + 1);
  return { samples: Float64Array.of(number), from: 0, pieces, uses: 1 };
}
