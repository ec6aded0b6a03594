import type { ShardIndex } from '@shardtool/format';
import type { PlannedBlock } from '../order/batches.js';
import { lastAtMost } from '../order/units.js';
import type { Selection } from '../selection/selection.js';

/** What batches ask for blocks. */
export interface BlockReader {
  /** The block, at once where it is in memory. Asked in rising order of first use. */
  get(ordinal: number): Block | Promise<Block>;
  /** The block's last row is done with: its memory is free. */
  release(block: Block): void;
  /** Ends reading; resolves when no read is under way. */
  close(): Promise<void>;
}

/** A stretch of a shard that is read at once into the arena. */
export interface Stretch {
  /** From this byte of the shard, so many bytes. */
  readonly offset: number;
  readonly bytes: number;
  /** Where it lies in the arena. */
  place: number;
}

/** Rows of a shard's index, in the order of the line; a row may come more than once. */
export interface ShardRows {
  readonly shard: number;
  readonly rows: Uint32Array;
}

/** Spans closer than this are read as one stretch: a gap costs less than a second read. */
const JOIN_GAP_BYTES = 64 * 1024;

/** The stretches that hold `rows` of a shard, rising and disjoint. Their places are not yet given (-1). */
export function stretchesOf(index: ShardIndex, rows: Uint32Array): Stretch[] {
  const spans = Array.from(rows, (row) => ({ from: index.offset[row]!, to: index.offset[row]! + index.bytes[row]! }));
  if (spans.some((span, i) => i > 0 && span.from < spans[i - 1]!.from)) spans.sort((a, b) => a.from - b.from);
  const stretches: Stretch[] = [];
  let from = -1;
  let to = -1;
  for (const span of spans) {
    if (from >= 0 && span.from <= to + JOIN_GAP_BYTES) {
      to = Math.max(to, span.to);
      continue;
    }
    if (from >= 0) stretches.push({ offset: from, bytes: to - from, place: -1 });
    from = span.from;
    to = span.to;
  }
  if (from >= 0) stretches.push({ offset: from, bytes: to - from, place: -1 });
  return stretches;
}

/** The place in the arena of a byte of the shard; the stretches hold it. */
export function placeOf(stretches: readonly Stretch[], offset: number): number {
  let low = 0;
  let high = stretches.length;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    if (stretches[middle]!.offset <= offset) low = middle;
    else high = middle;
  }
  const stretch = stretches[low]!;
  return stretch.place + (offset - stretch.offset);
}

/** One shard's part in what is loaded: its index and where its bytes are. */
export interface LoadedShard {
  readonly index: ShardIndex;
  readonly stretches: readonly Stretch[];
}

/**
 * A block of the order whose bytes are in memory. Columns have one entry an item, in the order in which items are
 * consumed.
 */
export interface Block {
  /** Who read it and takes its memory back. */
  readonly reader: BlockReader;
  readonly ordinal: number;
  /** The pass over the samples: with the seed the origin of their random numbers. */
  readonly pass: number;
  readonly items: number;
  readonly shard: Int32Array;
  readonly row: Uint32Array;
  /** 0, or higher where a sample comes more than once in the epoch. */
  readonly occurrence: Uint32Array;
  readonly shards: ReadonlyMap<number, LoadedShard>;
  /** Rows that are still to refer to this block. */
  left: number;
  /** Place and length of the block's own memory; length 0 where it has none. */
  readonly place: number;
  readonly bytes: number;
}

/** Which dataset rows a planned block consists of, per shard, and which of them each item is. */
export interface BlockRows {
  readonly shard: Int32Array;
  readonly row: Uint32Array;
  readonly occurrence: Uint32Array;
  readonly perShard: readonly ShardRows[];
}

/**
 * From numbers on the line to rows of shards. `first[k]` is the number of shard k's first sample on the line
 * ({@link firstNumbers}).
 */
export function blockRows(planned: PlannedBlock, first: Float64Array, selection: Selection): BlockRows {
  const items = planned.samples.length;
  const shard = new Int32Array(items);
  const row = new Uint32Array(items);
  const occurrence = new Uint32Array(items);
  for (let i = 0; i < items; i++) {
    const number = planned.samples[i]!;
    const k = lastAtMost(first, number);
    const rows = selection.rows(k);
    const at = number - first[k]!;
    shard[i] = k;
    row[i] = rows === null ? at : rows[at]!;
    occurrence[i] = rows === null ? 0 : occurrenceOf(rows, at);
  }
  const byShard = new Map<number, Uint32Array[]>();
  for (const piece of planned.pieces) {
    const rows = selection.rows(piece.shard);
    const part =
      rows === null
        ? Uint32Array.from({ length: piece.count }, (_, i) => piece.first + i)
        : rows.subarray(piece.first, piece.first + piece.count);
    const parts = byShard.get(piece.shard);
    if (parts === undefined) byShard.set(piece.shard, [part]);
    else parts.push(part);
  }
  return {
    shard,
    row,
    occurrence,
    perShard: Array.from(byShard, ([k, parts]) => ({ shard: k, rows: parts.length === 1 ? parts[0]! : concat(parts) })),
  };
}

/** How many equal rows stand right before this one: weights repeat a row in place. */
function occurrenceOf(rows: Uint32Array, at: number): number {
  let before = 0;
  while (before < at && rows[at - before - 1] === rows[at]) before++;
  return before;
}

function concat(parts: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
