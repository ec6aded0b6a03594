import { legsOfRange, ownPositions, type RowRange } from './blocks.js';
import { blockAt, blockEnd, blockStart, type EpochOrder, sampleAt } from './epoch-order.js';
import { type EpochSpan, type Leg, locate, modulo } from './legs.js';
import type { Order, PlannedBlock, RankPart, RowColumns, RowSource } from './order.js';
import { blockOfOne, orderOfPasses, type PassesOptions } from './passes.js';
import type { Piece } from './units.js';

/**
 * Returns the order of one epoch in which every sample of a pass comes `repeats` times in a row, so that ranks, which
 * take the positions in turn, get different repetitions of a sample: position p of a pass is the sample at position
 * floor(p / repeats) of the order without repetitions. Every rank needs samples of all streams, and reads of their
 * blocks only those that it delivers. `span` counts repetitions. Repeated augmentation: M. Berman et al., MultiGrain
 * (2019), and E. Hoffer et al., Augment Your Batch (2020).
 */
export function repeatedPasses(options: PassesOptions, span: EpochSpan, repeats: number): Order {
  const { streams, blockSamples } = options;
  const orderOf = orderOfPasses(options);
  const cut = { samples: span.passSamples / repeats, streams, blockSamples };
  const rangeOf = ({ position, ...part }: RankPart): RowRange => ({ ...part, span, start: position, cut });
  return {
    length: span.samples,
    at(at) {
      const { pass, position } = locate(span, at);
      return { source: 0, pass, number: sampleAt(orderOf(pass), Math.floor(position / repeats)) };
    },
    single(at) {
      const { pass, position } = locate(span, at);
      const of = Uint32Array.of(position % repeats);
      return {
        ...blockOfOne(orderOf(pass), Math.floor(position / repeats)),
        source: 0,
        pass,
        repeats: { each: repeats, of },
      };
    },
    blocks: (part) => repeatedBlocks(rangeOf(part), repeats, orderOf),
    rows: (part, ordinals = { next: 0 }) => new RepeatedRows(rangeOf(part), repeats, ordinals),
    liveBlocks: () => streams,
  };
}

/** Where a position of a leg is in the order without repetitions: stream, index in the stream, and block. */
function placeAt({ cut }: RowRange, repeats: number, position: number): { s: number; i: number; block: number } {
  const at = Math.floor(position / repeats);
  const s = at % cut.streams;
  const i = (at - s) / cut.streams;
  return { s, i, block: blockAt(cut, s, i) };
}

/** Each item of a block is one row of the rank: a sample comes as often as the rank delivers it from this block. */
function* repeatedBlocks(
  range: RowRange,
  repeats: number,
  orderOf: (pass: number) => EpochOrder,
): Generator<PlannedBlock, undefined> {
  const { cut, worldSize } = range;
  let ordinal = 0;
  for (const leg of legsOfRange(range)) {
    const current = new Float64Array(cut.streams).fill(-1);
    const { first, rows } = ownPositions(leg, worldSize);
    for (let row = 0; row < rows; row++) {
      const position = first + row * worldSize;
      const { s, i, block } = placeAt(range, repeats, position);
      // A rank visits the blocks of a stream in their order.
      if (current[s] === block) continue;
      current[s] = block;
      const order = orderOf(leg.pass);
      const { samples, pieces } = order.block(s, block);
      const start = blockStart(cut, s, block);
      const items = ownItems(range, leg, repeats, { s, from: i, to: blockEnd(cut, s, block) });
      const numbers = items.index.map((index) => samples[index - start]!);
      yield {
        ordinal: ordinal++,
        source: 0,
        pass: leg.pass,
        samples: samples instanceof Uint32Array ? Uint32Array.from(numbers) : Float64Array.from(numbers),
        from: 0,
        pieces: piecesOf(pieces, new Set(numbers)),
        uses: numbers.length,
        repeats: { each: repeats, of: Uint32Array.from(items.repeat) },
      };
    }
  }
}

/** The positions of a rank in a leg that are samples `from` to `to - 1` of a stream: their indices and repetitions. */
function ownItems(
  { cut, worldSize }: RowRange,
  leg: Leg,
  repeats: number,
  { s, from, to }: { readonly s: number; readonly from: number; readonly to: number },
): { readonly index: number[]; readonly repeat: number[] } {
  const [index, repeat]: [number[], number[]] = [[], []];
  for (let i = from; i < to; i++) {
    const first = (i * cut.streams + s) * repeats;
    for (let r = modulo(leg.lane - first, worldSize); r < repeats; r += worldSize) {
      if (first + r < leg.from) continue;
      if (first + r >= leg.to) break;
      index.push(i);
      repeat.push(r);
    }
  }
  return { index, repeat };
}

/** The reads of some of the samples of a block. */
function piecesOf(pieces: readonly Piece[], numbers: ReadonlySet<number>): Piece[] {
  const cut: Piece[] = [];
  for (const piece of pieces) {
    for (let at = 0; at < piece.count; at++) {
      if (!numbers.has(piece.number + at)) continue;
      let end = at + 1;
      while (end < piece.count && numbers.has(piece.number + end)) end++;
      cut.push({ shard: piece.shard, first: piece.first + at, count: end - at, number: piece.number + at });
      at = end;
    }
  }
  return cut;
}

/** The rows of a range, which refer to the blocks of {@link repeatedBlocks}: both count in the order of first need. */
class RepeatedRows implements RowSource {
  readonly #range: RowRange;
  readonly #repeats: number;
  readonly #ordinals: { next: number };
  readonly #legs: Generator<Leg, undefined>;
  #valid = false;
  /** The rank's next position in the leg, and the number of positions that it has left there. */
  #position = 0;
  #left = 0;
  /** By stream: the block of the last row, its ordinal, and the next item in it. */
  readonly #block: Float64Array;
  readonly #ordinal: Int32Array;
  readonly #item: Int32Array;

  constructor(range: RowRange, repeats: number, ordinals: { next: number }) {
    const { streams } = range.cut;
    this.#range = range;
    this.#repeats = repeats;
    this.#ordinals = ordinals;
    this.#legs = legsOfRange(range);
    this.#block = new Float64Array(streams).fill(-1);
    this.#ordinal = new Int32Array(streams);
    this.#item = new Int32Array(streams);
  }

  take({ block, item, valid }: RowColumns, from: number, count: number): void {
    for (let row = from; row < from + count; row++) {
      while (this.#left === 0) this.#enter(this.#legs.next().value!);
      const place = placeAt(this.#range, this.#repeats, this.#position);
      if (this.#block[place.s] !== place.block) {
        this.#block[place.s] = place.block;
        this.#ordinal[place.s] = this.#ordinals.next++;
        this.#item[place.s] = 0;
      }
      block[row] = this.#ordinal[place.s]!;
      item[row] = this.#item[place.s]!++;
      if (this.#valid) valid[row] = 1;
      this.#position += this.#range.worldSize;
      this.#left--;
    }
  }

  #enter(leg: Leg): void {
    const { first, rows } = ownPositions(leg, this.#range.worldSize);
    this.#valid = leg.valid;
    this.#position = first;
    this.#left = rows;
    this.#block.fill(-1);
  }
}
