import { createHash } from 'node:crypto';
import { lastAtMost, lowerBound } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import { shownLocation } from '@shardtool/storage';
import type { ShardFile } from '../../dataset/shard-file.js';
import { nextUse, type Readers } from '../../order/next-use.js';
import { firstNumbers, type Unit } from '../../order/units.js';
import type { Selection } from '../../selection/selection.js';

/** Of a shard as a unit so many bytes are kept together: a stream walks through them from front to back. */
const STRETCH_BYTES = 8 << 20;
/** Samples that are all in memory are needed when the next run begins, which nobody knows. */
const SOME_DAY = 14_000_000_000;

/** The shards of one dataset, as a cache keeps them: a mixture has several. */
export interface CutDataset {
  /** Among the shards of all datasets, the number of its first. */
  readonly firstShard: number;
  readonly unit: Unit;
  readonly blockSamples: number;
  /** Null: nobody knows when what was fetched is needed again, and what came first stays. */
  readonly readers: Readers | null;
  selection(pass: number): Selection;
  readonly passesAnEpoch: number;
  /** Of samples of its passes, how many of all datasets have come by then. */
  positionOf(samples: number): number;
}

/** A part of a shard that is kept as a file. */
export interface Piece {
  readonly name: string;
  /** Among the shards of all datasets. */
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  /** Rows that begin in it. */
  readonly from: number;
  readonly to: number;
}

/** A shard as it is cut. */
export interface CutShard {
  readonly shard: number;
  /** Names its file, and what is in it: see {@link fileMark}. */
  readonly mark: string;
  readonly index: LoadedIndex;
}

/** Of the way in which pieces are named and read: pieces of another one are not found. */
const PIECE_VERSION = 2;

/**
 * Names a file by its location, size and version, so that no other file, and none that replaced it, ever has the same pieces.
 * `otherwise` is its version if neither a manifest nor its storage says one.
 */
export function fileMark({ path, name, bytes, crc32, version }: ShardFile, otherwise: string): string {
  const facts = [PIECE_VERSION, shownLocation(path), name, bytes, crc32, crc32 === undefined && (version ?? otherwise)];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}

/**
 * The pieces that have some of `bytes` bytes from `offset` on, rising: of chunks as units the chunk's own bytes, else aligned
 * stretches of the shard.
 */
export function piecesOf(
  { unit, blockSamples }: CutDataset,
  { shard, mark, index }: CutShard,
  offset: number,
  bytes: number,
): Piece[] {
  const rising = risingOffsets(index);
  const pieces: Piece[] = [];
  if (unit === 'chunk' && rising !== null) {
    const ends = (row: number) => index.offset[row]! + index.bytes[row]!;
    let chunk = Math.floor(Math.max(0, lastAtMost(rising, offset)) / blockSamples);
    for (; chunk * blockSamples < index.samples; chunk++) {
      const from = chunk * blockSamples;
      const to = Math.min(index.samples, from + blockSamples);
      const start = index.offset[from]!;
      if (start >= offset + bytes) break;
      const length = ends(to - 1) - start;
      pieces.push({ name: nameOf(mark, start, length), shard, offset: start, bytes: length, from, to });
    }
    return pieces;
  }
  // A view of a file, such as that of pages that are unpacked, is longer or shorter than the file.
  const size = endOf(index);
  for (let k = Math.floor(offset / STRETCH_BYTES); k * STRETCH_BYTES < Math.min(size, offset + bytes); k++) {
    const start = k * STRETCH_BYTES;
    const length = Math.min(STRETCH_BYTES, size - start);
    const from = rising === null ? 0 : lowerBound(rising, start);
    const to = rising === null ? index.samples : lowerBound(rising, start + length);
    pieces.push({ name: nameOf(mark, start, length), shard, offset: start, bytes: length, from, to });
  }
  return pieces;
}

function nameOf(mark: string, offset: number, bytes: number): string {
  return `${mark}.${offset}-${bytes}`;
}

/**
 * When this machine needs a piece again that it has just used in `pass` (null: in none), in samples of all datasets from the
 * beginning of the first pass on: the key by which it is evicted, largest first.
 */
export function keyOf({ shard, from, to }: Piece, source: CutDataset, pass: number | null): number {
  const { firstShard, unit, blockSamples, readers, positionOf } = source;
  if (pass === null || readers === null) return SOME_DAY;
  const chosen = source.selection(pass);
  // Single samples of it are wanted all the time, where they are not all in memory.
  if (unit === 'sample') return positionOf(pass * readers.orderOf(pass).samples);
  const own = shard - firstShard;
  const rows = chosen.rows(own);
  const first = firstNumbersOf(chosen)[own]!;
  // Under a selection rows have the numbers of their places among the chosen.
  const begin = rows === null ? from : lowerBound(rows, from);
  const end = rows === null ? to : lowerBound(rows, to);
  if (begin >= end) return Number.POSITIVE_INFINITY;
  if (unit === 'shard') return positionOf(nextUse(readers, pass, first + begin, end - begin));
  let key = Number.POSITIVE_INFINITY;
  for (let at = begin; at < end; ) {
    const next = Math.min(end, (Math.floor(at / blockSamples) + 1) * blockSamples);
    key = Math.min(key, nextUse(readers, pass, first + at, next - at));
    at = next;
  }
  return positionOf(key);
}

/** Of a piece so much has to be wanted at once that fetching all of it costs nothing more. */
const WHOLE_SHARE = 0.9;

/**
 * How much later than this piece another one has to be needed to make room for it, in samples of all datasets. Nothing, where
 * all of it is wanted now. Where a part is, all of it is fetched for later, and that is worth it only for what is needed an
 * epoch later: a cache in which each piece comes once an epoch would be fetched anew again and again, and save no more.
 */
export function marginOf({ bytes }: Piece, source: CutDataset, pass: number | null, wanted: number): number {
  const { readers, passesAnEpoch, positionOf } = source;
  if (pass === null || readers === null || wanted >= bytes * WHOLE_SHARE) return 0;
  return positionOf(readers.orderOf(pass).samples * passesAnEpoch);
}

const numbersOf = new WeakMap<Selection, Float64Array>();

/** The numbers of a selection's first samples, shard by shard: counted once for each selection. */
function firstNumbersOf(selection: Selection): Float64Array {
  let numbers = numbersOf.get(selection);
  if (numbers === undefined) {
    numbers = firstNumbers(selection.counts);
    numbersOf.set(selection, numbers);
  }
  return numbers;
}

const risingOf = new WeakMap<LoadedIndex, Float64Array | null>();

const endsOf = new WeakMap<LoadedIndex, number>();

/** The end of the last sample. */
function endOf(index: LoadedIndex): number {
  let end = endsOf.get(index);
  if (end === undefined) {
    end = index.offset.reduce((most, at, row) => Math.max(most, at + index.bytes[row]!), 0);
    endsOf.set(index, end);
  }
  return end;
}

/** Where the samples begin, if they lie in the order of their rows. */
function risingOffsets(index: LoadedIndex): Float64Array | null {
  let rising = risingOf.get(index);
  if (rising === undefined) {
    const { offset, bytes } = index;
    rising = offset.every((at, row) => row === 0 || at >= offset[row - 1]! + bytes[row - 1]!) ? offset : null;
    risingOf.set(index, rising);
  }
  return rising;
}
