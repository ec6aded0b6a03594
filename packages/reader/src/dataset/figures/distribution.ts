/** How some number is spread over the samples that have it. */
export interface DistributionSummary {
  /** How many numbers there are; the others are 0 where there are none. */
  readonly count: number;
  readonly smallest: number;
  readonly largest: number;
  readonly mean: number;
  /** To within 1/32 of itself. */
  readonly median: number;
  /** Without empty ends. A number is in the bin whose `from` it reaches and whose `to` it does not. */
  readonly histogram: readonly Bin[];
}

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Cells to a doubling: a number stands for all of its cell. */
const CELLS = 32;
const CELL_BITS = 5;
/** Up to 2^53. */
const OCTAVES = 54;

/** Takes any number of whole numbers from 0 on in a few kilobytes: small ones are counted each, larger ones by ranges. */
export class Distribution {
  #count = 0;
  #sum = 0;
  #smallest = Number.POSITIVE_INFINITY;
  #largest = 0;
  readonly #cells = new Float64Array(OCTAVES * CELLS);

  add(value: number): void {
    this.#count++;
    this.#sum += value;
    if (value < this.#smallest) this.#smallest = value;
    if (value > this.#largest) this.#largest = value;
    this.#cells[cellOf(value)]!++;
  }

  /** `most` bins at most, each of one doubling or of several. */
  summary(most = 12): DistributionSummary {
    if (this.#count === 0) return { count: 0, smallest: 0, largest: 0, mean: 0, median: 0, histogram: [] };
    return {
      count: this.#count,
      smallest: this.#smallest,
      largest: this.#largest,
      mean: this.#sum / this.#count,
      median: Math.min(this.#largest, Math.max(this.#smallest, this.#median())),
      histogram: this.#bins(most),
    };
  }

  #median(): number {
    let below = 0;
    let cell = 0;
    while (below + this.#cells[cell]! <= (this.#count - 1) / 2) below += this.#cells[cell++]!;
    return startOf(cell);
  }

  /** Halvings and doublings of a cell's length until there are few enough. */
  #bins(most: number): Bin[] {
    const first = cellOf(this.#smallest);
    const last = cellOf(this.#largest);
    let width = 1;
    while (Math.floor(last / width) - Math.floor(first / width) >= most) width *= 2;
    const bins: Bin[] = [];
    for (let cell = first - (first % width); cell <= last; cell += width) {
      const count = this.#cells.subarray(cell, cell + width).reduce((sum, cells) => sum + cells, 0);
      bins.push({ from: startOf(cell), to: startOf(cell + width), count });
    }
    return bins;
  }
}

/** Numbers below 32 have cells of their own; from there on there are 32 between a power of two and the next. */
function cellOf(value: number): number {
  if (value < CELLS) return value;
  const octave = Math.floor(Math.log2(value)) - CELL_BITS;
  // Rounding may lift a number just below a power of two onto it.
  const exact = value < 2 ** (octave + CELL_BITS) ? octave - 1 : octave;
  return (exact + 1) * CELLS + Math.floor(value / 2 ** exact) - CELLS;
}

/** The smallest number of a cell. */
function startOf(cell: number): number {
  if (cell < CELLS) return cell;
  const octave = Math.floor(cell / CELLS) - 1;
  return ((cell % CELLS) + CELLS) * 2 ** octave;
}
