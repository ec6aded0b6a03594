import { modulo } from '../order/legs.js';
import type { Order, PlannedBlock, RankPart, RowColumns, RowSource } from '../order/order.js';
import type { MixtureOrder } from './mixture-order.js';

/** Several orders, and the turns that they take. */
export interface MixOptions {
  /** The order of each source. It has all samples of the source in the epoch. */
  readonly orders: readonly Order[];
  /** The source at each position. */
  readonly turns: MixtureOrder;
  /** Number of samples of a turn. The number of ranks must divide it. */
  readonly group: number;
}

/** Consecutive rows of one source in a rank's part. */
interface Run {
  readonly source: number;
  readonly rows: number;
  /** Another stretch begins when the epoch is repeated to fill the last batch. */
  readonly stretch: Stretch;
  /** After the last turn: the sample's number in its source's order. `rows` is then 1. */
  readonly single?: number;
}

/** Positions of the epoch, starting at `from`. The rank owns the positions that are `lane` modulo worldSize. */
interface Stretch {
  readonly from: number;
  readonly first: number;
  readonly lane: number;
  readonly rows: number;
  readonly valid: boolean;
}

/**
 * Returns one order in which several orders take turns. Each source keeps its position between its turns, so a rank's part of a
 * source is a part of the source's own order.
 */
export function mix(options: MixOptions): Order {
  const { orders, turns } = options;
  return {
    length: turns.samples,
    at(position) {
      const { source, index } = turns.at(position);
      return orders[source]!.at(index);
    },
    single(position) {
      const { source, index } = turns.at(position);
      return orders[source]!.single(index);
    },
    rows: (part, ordinals = { next: 0 }) => new MixedRows(options, part, ordinals),
    blocks: (part) => mixedBlocks(options, part),
    liveBlocks: (worldSize) => orders.reduce((sum, order) => sum + order.liveBlocks(worldSize), 0),
  };
}

/** The rows of a rank, over all sources. */
class MixedRows implements RowSource {
  readonly #runs: Generator<Run, undefined>;
  readonly #walk: SourceWalk;
  #run: Run | undefined;
  #done = 0;

  constructor(options: MixOptions, part: RankPart, ordinals: { next: number }) {
    this.#runs = runsOf(options, part);
    this.#walk = new SourceWalk(options, part.worldSize, ordinals);
  }

  take(columns: RowColumns, from: number, count: number): void {
    for (let row = from, end = from + count; row < end; ) {
      if (this.#run === undefined || this.#done === this.#run.rows) {
        this.#run = this.#runs.next().value!;
        this.#done = 0;
      }
      const taken = Math.min(end - row, this.#run.rows - this.#done);
      this.#walk.take(this.#run, columns, row, taken);
      columns.valid.fill(this.#run.stretch.valid ? 1 : 0, row, row + taken);
      row += taken;
      this.#done += taken;
    }
  }
}

function* mixedBlocks(options: MixOptions, part: RankPart): Generator<PlannedBlock, undefined> {
  const { orders, group } = options;
  const ordinals = { next: 0 };
  const walk = new SourceWalk(options, part.worldSize, ordinals);
  const columns = { block: new Int32Array(group), item: new Int32Array(group), valid: new Uint8Array(group) };
  let stretch: Stretch | undefined;
  let planned: Generator<PlannedBlock, undefined>[] = [];
  let ordinal = 0;
  for (const run of runsOf(options, part)) {
    const { source, single } = run;
    if (run.stretch !== stretch) {
      stretch = run.stretch;
      planned = orders.map((order, d) => order.blocks(partOf(options, run.stretch, d, part.worldSize)));
    }
    walk.take(run, columns, 0, run.rows);
    if (single !== undefined) {
      yield { ...orders[source]!.single(single), ordinal: ordinal++ };
      continue;
    }
    for (; ordinal < ordinals.next; ordinal++) yield { ...planned[source]!.next().value!, ordinal };
  }
}

/** The position of a rank in each source. */
class SourceWalk {
  readonly #options: MixOptions;
  readonly #worldSize: number;
  readonly #ordinals: { next: number };
  #stretch: Stretch | undefined;
  #rows: (RowSource | undefined)[] = [];

  constructor(options: MixOptions, worldSize: number, ordinals: { next: number }) {
    this.#options = options;
    this.#worldSize = worldSize;
    this.#ordinals = ordinals;
  }

  take({ source, stretch, single }: Run, columns: RowColumns, row: number, count: number): void {
    if (single !== undefined) {
      columns.block[row] = this.#ordinals.next++;
      columns.item[row] = 0;
      return;
    }
    if (stretch !== this.#stretch) {
      this.#stretch = stretch;
      this.#rows = [];
    }
    const part = () => partOf(this.#options, stretch, source, this.#worldSize);
    this.#rows[source] ??= this.#options.orders[source]!.rows(part(), this.#ordinals);
    this.#rows[source].take(columns, row, count);
  }
}

/** Yields the rank's rows, turn by turn. After the end of the epoch, it is repeated. */
function* runsOf({ turns, group }: MixOptions, part: RankPart): Generator<Run, undefined> {
  const { worldSize } = part;
  let left = part.rows;
  for (let round = 0; left > 0; round++) {
    const from = round === 0 ? part.position : 0;
    const lane = modulo(part.rank - round * turns.samples, worldSize);
    const first = from + modulo(lane - from, worldSize);
    const rows = Math.min(left, Math.max(0, Math.ceil((turns.samples - first) / worldSize)));
    const stretch: Stretch = { from, first, lane, rows, valid: round === 0 };
    const end = first + rows * worldSize;
    for (let p = first; p < end; ) {
      if (p >= turns.tail) {
        const { source, index } = turns.at(p);
        yield { source, rows: 1, stretch, single: index };
        p += worldSize;
        continue;
      }
      const turn = Math.floor(p / group);
      const count = Math.ceil((Math.min((turn + 1) * group, end) - p) / worldSize);
      yield { source: turns.sourceOfTurn(turn), rows: count, stretch };
      p += count * worldSize;
    }
    left -= rows;
  }
}

/** Returns a rank's part of a source in the turns of a stretch. */
function partOf(
  { orders, turns, group }: MixOptions,
  { from, first, lane, rows }: Stretch,
  d: number,
  worldSize: number,
): RankPart {
  const { length } = orders[d]!;
  const inTurns = length - (length % group);
  const position = Math.min(inTurns, turns.before(from)[d]!);
  const behind = rows === 0 ? from : first + (rows - 1) * worldSize + 1;
  const end = Math.min(inTurns, turns.before(behind)[d]!);
  const own = Math.max(0, Math.ceil((end - position - modulo(lane - position, worldSize)) / worldSize));
  return { rank: lane, worldSize, position, rows: own };
}
