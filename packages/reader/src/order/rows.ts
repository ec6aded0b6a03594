import { legsOfRange, ownPositions, type RowRange } from './blocks.js';
import { blockAt, blockEnd, blockStart, type StreamCut, streamLength } from './epoch-order.js';
import type { Leg } from './legs.js';
import type { RowColumns, RowSource } from './order.js';

/**
 * The rows of a range without their samples. They follow from the streams taking turns and from the positions at which each
 * stream begins its next block. Blocks have the same numbers as in plannedBlocks, because both count in the order of
 * first need.
 */
export class RowWalk implements RowSource {
  readonly #range: RowRange;
  readonly #legs: Generator<Leg, undefined>;
  readonly #ordinals: { next: number };
  #leg: LegRows | undefined;

  constructor(range: RowRange, ordinals: { next: number }) {
    this.#range = range;
    this.#legs = legsOfRange(range);
    this.#ordinals = ordinals;
  }

  take({ block, item, valid }: RowColumns, from: number, count: number): void {
    const { cut, worldSize } = this.#range;
    for (let row = from, end = from + count; row < end; ) {
      if (this.#leg === undefined || this.#leg.left === 0) {
        this.#leg = new LegRows(this.#legs.next().value!, cut, worldSize, this.#ordinals);
        continue;
      }
      const taken = this.#leg.take(block, item, row, end - row);
      if (this.#leg.valid) valid.fill(1, row, row + taken);
      row += taken;
    }
  }
}

/** The position of a rank in each of its streams, in the order in which it visits them. */
class LegRows {
  readonly valid: boolean;
  /** Number of remaining rows. */
  left: number;
  readonly #cut: StreamCut;
  readonly #ordinals: { next: number };
  readonly #first: number;
  readonly #worldSize: number;
  readonly #visits: number;
  /**
   * By visit: ordinal of the current block, the next item in it, remaining items, and the samples of the stream after
   * the block.
   */
  readonly #block: Int32Array;
  readonly #item: Int32Array;
  readonly #itemsLeft: Int32Array;
  readonly #behind: Float64Array;
  #visit = 0;

  constructor(leg: Leg, cut: StreamCut, worldSize: number, ordinals: { next: number }) {
    const { first, rows } = ownPositions(leg, worldSize);
    this.valid = leg.valid;
    this.left = rows;
    this.#cut = cut;
    this.#ordinals = ordinals;
    this.#first = first;
    this.#worldSize = worldSize;
    this.#visits = Math.min(rows, cut.streams / worldSize);
    this.#block = new Int32Array(this.#visits);
    this.#item = new Int32Array(this.#visits);
    this.#itemsLeft = new Int32Array(this.#visits);
    this.#behind = new Float64Array(this.#visits).fill(-1);
  }

  /** Fills up to `wanted` rows starting at `row`, and returns their number. */
  take(block: Int32Array, item: Int32Array, row: number, wanted: number): number {
    const count = Math.min(wanted, this.left);
    const [blocks, items, itemsLeft, visits] = [this.#block, this.#item, this.#itemsLeft, this.#visits];
    let visit = this.#visit;
    for (let end = row + count; row < end; row++) {
      if (itemsLeft[visit] === 0) this.#nextBlock(visit);
      block[row] = blocks[visit]!;
      item[row] = items[visit]!++;
      itemsLeft[visit]!--;
      if (++visit === visits) visit = 0;
    }
    this.#visit = visit;
    this.left -= count;
    return count;
  }

  #nextBlock(visit: number): void {
    const behind = this.#behind[visit]!;
    if (behind < 0) this.#enterStream(visit);
    else {
      const items = Math.min(this.#cut.blockSamples, behind);
      this.#item[visit] = 0;
      this.#itemsLeft[visit] = items;
      this.#behind[visit] = behind - items;
    }
    this.#block[visit] = this.#ordinals.next++;
  }

  #enterStream(visit: number): void {
    const position = this.#first + visit * this.#worldSize;
    const s = position % this.#cut.streams;
    const i = (position - s) / this.#cut.streams;
    const current = blockAt(this.#cut, s, i);
    const end = blockEnd(this.#cut, s, current);
    this.#item[visit] = i - blockStart(this.#cut, s, current);
    this.#itemsLeft[visit] = end - i;
    this.#behind[visit] = streamLength(this.#cut, s) - end;
  }
}
