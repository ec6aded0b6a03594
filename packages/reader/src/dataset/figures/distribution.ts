/** Distribution of a number over the samples that have it. */
export interface DistributionSummary {
  /** Count of the numbers. If it is 0, the other values are 0, too. */
  readonly count: number;
  readonly smallest: number;
  readonly largest: number;
  readonly mean: number;
  /** Exact to within 1/32 of its value. */
  readonly median: number;
  /** Bins without empty ones at the ends. A number is in a bin if it is at least `from` and less than `to`. */
  readonly histogram: readonly Bin[];
}

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Cells per doubling. All numbers of a cell count as equal. */
const CELLS = 32;
const CELL_BITS = 5;
/** Numbers go up to 2^53. */
const OCTAVES = 54;

/** Counts any amount of non-negative whole numbers in a few kilobytes: small numbers exactly, larger ones by ranges. */
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

  /** Returns the distribution with at most `most` bins. A bin spans one or more doublings. */
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

  /** Widens the bins until there are few enough. */
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

/**
 * Returns the cell of a number. Numbers below 32 have a cell each. Above, there are 32 cells between two powers of two.
 */
function cellOf(value: number): number {
  if (value < CELLS) return value;
  const octave = Math.floor(Math.log2(value)) - CELL_BITS;
  // For a number just below a power of two, the logarithm may be rounded up.
  const exact = value < 2 ** (octave + CELL_BITS) ? octave - 1 : octave;
  return (exact + 1) * CELLS + Math.floor(value / 2 ** exact) - CELLS;
}

/** Returns the smallest number of a cell. */
function startOf(cell: number): number {
  if (cell < CELLS) return cell;
  const octave = Math.floor(cell / CELLS) - 1;
  return ((cell % CELLS) + CELLS) * 2 ** octave;
}
