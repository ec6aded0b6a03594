import { joined, lastAtMost } from '@shardtool/base';
import type { FieldColumns, LoadedIndex } from '@shardtool/format';
import { consecutive } from '../../dataset/consecutive.js';
import type { CropColumns } from '../../dataset/crop-columns.js';
import type { PlannedBlock } from '../../order/batches.js';
import { occurrenceOf, type SamplesOf } from '../../selection/pass-samples.js';
import type { Part } from '../ring/extra-fields.js';
import { UNCHECKED } from '../ring/job.js';
import { placeWithin, type Stretch } from './readers/stretches.js';

/** The interface by which batches request blocks. */
export interface BlockReader {
  /** Returns the block, synchronously if this item of it is in memory. Calls must be in the order of first use. */
  get(ordinal: number, item: number): Block | Promise<Block>;
  /**
   * Reads the bytes of an item again into the same place, bypassing every cache. Returns false if that would only read
   * the same bytes from the same disk.
   */
  fetchAgain?(block: Block, item: number): Promise<boolean>;
  /** Called when the last row of the block is finished. Its memory is then free. */
  release(block: Block): void;
  /** Ends reading. Resolves when no read is in progress. Callers that wait for a block get an error. */
  close(): Promise<void>;
}

/** One shard's part of a load: its index, and the bytes that are loaded. */
export interface LoadedShard {
  readonly index: LoadedIndex;
  readonly stretches: readonly Stretch[];
  /** The columns and bytes of its crop index. Null if the shard has none, or if it is not used. */
  readonly crops: { readonly columns: CropColumns; readonly stretches: readonly Stretch[] } | null;
}

/**
 * A block of the order, whose bytes can be read. Columns have one entry per item, in the order in which items are
 * consumed.
 */
export interface Block {
  /** The reader that has read the block and frees its memory. */
  readonly reader: BlockReader;
  readonly ordinal: number;
  /** The pass over the samples. Together with the seed, it determines their random numbers. */
  readonly pass: number;
  readonly items: number;
  readonly shard: Int32Array;
  readonly row: Uint32Array;
  /** Higher than 0 if a sample is repeated in the epoch. */
  readonly occurrence: Uint32Array;
  readonly shards: ReadonlyMap<number, LoadedShard>;
  /** True if the bytes are not in memory: workers read them from the shards. Offsets are then those in the shard. */
  readonly inShards: boolean;
  /** Number of rows that will still refer to this block. */
  left: number;
  /** Offset of its stretches in the arena. It changes when the arena is compacted. */
  place: number;
  /** Length of the block's own memory; 0 if it has none. */
  readonly bytes: number;
  /** Resolves when the whole block is in memory, or no longer needed. Rejects with the error of its read. Absent if it is in memory. */
  readonly whole?: Promise<void>;
}

/** The offset in the arena of a byte of one of the shards of the block. */
export function placeOf(block: Block, stretches: readonly Stretch[], offset: number): number {
  return block.place + placeWithin(stretches, offset);
}

/** The sample that each item of a block is, in the order in which items are consumed. */
export type BlockItems = Pick<Block, 'shard' | 'row' | 'occurrence'>;

/** Makes a block of `reader` that owns no memory. */
export function blockWithoutMemory(
  reader: BlockReader,
  planned: PlannedBlock,
  samplesOf: SamplesOf,
  { shards, inShards }: Pick<Block, 'shards' | 'inShards'>,
): Block {
  return {
    ...blockItems(planned, samplesOf),
    reader,
    ordinal: planned.ordinal,
    pass: planned.pass,
    items: planned.samples.length,
    shards,
    inShards,
    left: planned.uses,
    place: 0,
    bytes: 0,
  };
}

/** Rows of a shard's index, in the order of the line. A row may occur more than once. */
export interface ShardRows {
  readonly shard: number;
  readonly rows: Uint32Array;
}

/** Converts sample numbers of a planned block to rows of shards. */
export function blockItems(planned: PlannedBlock, samplesOf: SamplesOf): BlockItems {
  const { first, firstShard, rows: rowsOf } = samplesOf(planned.source, planned.pass);
  const items = planned.samples.length;
  const shard = new Int32Array(items);
  const row = new Uint32Array(items);
  const occurrence = new Uint32Array(items);
  for (let i = 0; i < items; i++) {
    const number = planned.samples[i]!;
    const k = lastAtMost(first, number);
    const rows = rowsOf(k);
    const at = number - first[k]!;
    shard[i] = firstShard + k;
    row[i] = rows === null ? at : rows[at]!;
    occurrence[i] = rows === null ? 0 : occurrenceOf(rows, at);
    // Different random numbers for every repetition of every occurrence.
    if (planned.repeats !== undefined) occurrence[i] = occurrence[i]! * planned.repeats.each + planned.repeats.of[i]!;
  }
  return { shard, row, occurrence };
}

/** The rows that a block consists of, shard by shard. */
export function blockRows(planned: PlannedBlock, samplesOf: SamplesOf): ShardRows[] {
  const { firstShard, rows } = samplesOf(planned.source, planned.pass);
  const byShard = new Map<number, Uint32Array[]>();
  for (const { shard: own, first, count } of planned.pieces) {
    const shard = firstShard + own;
    const part = rows(own)?.subarray(first, first + count) ?? consecutive(first, count);
    const parts = byShard.get(shard);
    if (parts === undefined) byShard.set(shard, [part]);
    else parts.push(part);
  }
  return Array.from(byShard, ([shard, parts]) => ({
    shard,
    rows: parts.length === 1 ? parts[0]! : joined(parts, Uint32Array),
  }));
}

/** Where a sample is: the index of its shard, its row there, and the bytes of the shard that are loaded. */
export interface LocatedSample extends Pick<LoadedShard, 'index' | 'stretches'> {
  readonly indexRow: number;
}

export function locate(block: Block, item: number): LocatedSample {
  const { index, stretches } = block.shards.get(block.shard[item]!)!;
  return { index, indexRow: block.row[item]!, stretches };
}

/**
 * Where a field of a sample is in memory, and its crc32 if that is checked. The sample must have the field: the offset
 * of the column is 0 or higher.
 */
export function partOf(
  block: Block,
  { indexRow, stretches }: LocatedSample,
  column: FieldColumns,
  isChecked: boolean,
): Part {
  return {
    offset: placeOf(block, stretches, column.offset[indexRow]!),
    bytes: column.bytes[indexRow]!,
    crc32: (isChecked ? column.crc32?.[indexRow] : undefined) ?? UNCHECKED,
    msgpack: column.msgpack?.[indexRow] === 1,
  };
}

export function keyOf(block: Block, item: number): string {
  const { index, indexRow } = locate(block, item);
  return index.key[indexRow]!;
}
