import { blockAt, blockEnd, blockStart, type EpochOrder, type StreamCut, stagger } from './epoch-order.js';
import { type EpochSpan, type Leg, legsOf, modulo } from './legs.js';
import type { PlannedBlock } from './order.js';

/** A rank's rows: its own positions of the epoch, starting at `start`. */
export interface RowRange {
  readonly span: EpochSpan;
  readonly start: number;
  readonly rows: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly cut: StreamCut;
}

/** Yields the parts of passes that the rows of a range cover. */
export function legsOfRange({ span, start, rows, rank, worldSize }: RowRange): Generator<Leg, undefined> {
  const end = rows === 0 ? start : start + modulo(rank - start, worldSize) + (rows - 1) * worldSize + 1;
  return legsOf(span, start, end, rank, worldSize);
}

/** Returns the rank's own positions in a leg: every worldSize-th position from `first`, `rows` of them. */
export function ownPositions({ from, to, lane }: Leg, worldSize: number): { first: number; rows: number } {
  const first = from + modulo(lane - from, worldSize);
  return { first, rows: Math.max(0, Math.ceil((to - first) / worldSize)) };
}

export function* plannedBlocks(
  range: RowRange,
  orderOf: (pass: number) => EpochOrder,
  source: number,
): Generator<PlannedBlock, undefined> {
  const { cut } = range;
  let ordinal = 0;
  for (const leg of legsOfRange(range)) {
    for (const position of firstNeeds(leg, cut, range.worldSize)) {
      const s = position % cut.streams;
      const i = (position - s) / cut.streams;
      const block = blockAt(cut, s, i);
      const end = Math.min(blockEnd(cut, s, block), Math.ceil((leg.to - s) / cut.streams));
      const { samples, pieces } = orderOf(leg.pass).block(s, block);
      yield { ordinal, source, pass: leg.pass, samples, from: i - blockStart(cut, s, block), pieces, uses: end - i };
      ordinal++;
    }
  }
}

/**
 * Yields the positions at which this rank needs a new block, rising: first one for each of its streams, in turn. After
 * that, blocks begin at fixed indices, so the streams follow each other in the same cycle every blockSamples indices.
 */
function* firstNeeds(leg: Leg, cut: StreamCut, worldSize: number): Generator<number, undefined> {
  const { streams, blockSamples } = cut;
  const { first, rows } = ownPositions(leg, worldSize);
  const visits = Math.min(rows, streams / worldSize);
  for (let visit = 0; visit < visits; visit++) yield first + visit * worldSize;
  if (rows === visits) return;
  const phase = (s: number) => (blockSamples - stagger(cut, s)) % blockSamples;
  const own = Array.from({ length: streams / worldSize }, (_, n) => leg.lane + n * worldSize);
  const cycle = own.map((s) => ({ s, phase: phase(s) })).sort((a, b) => a.phase - b.phase || a.s - b.s);
  const firstIndex = Math.floor(first / streams);
  for (let base = firstIndex - (firstIndex % blockSamples); ; base += blockSamples) {
    for (const { s, phase } of cycle) {
      const position = (base + phase) * streams + s;
      if (position >= leg.to) return;
      if (position >= first + streams) yield position;
    }
  }
}
