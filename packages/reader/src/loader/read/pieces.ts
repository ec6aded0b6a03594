import { createHash } from 'node:crypto';
import { lastAtMost, lowerBound } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import { shownLocation } from '@shardtool/storage';
import type { ShardFile } from '../../dataset/shards/shard-file.js';
import { nextUse, type Readers } from '../../order/next-use.js';
import { firstNumbers, type Unit } from '../../order/units.js';
import type { Selection } from '../../selection/selection.js';

/** Size of a piece if the unit is a whole shard, which a stream reads from start to end. */
const STRETCH_BYTES = 8 << 20;
/**
 * Time of the next use of samples that are all in memory. They are needed when the next run begins, and that time is
 * unknown.
 */
const SOME_DAY = 14_000_000_000;

/** The shards of one dataset in a cache. A mixture has several. */
export interface CutDataset {
  /** Number of its first shard among the shards of all datasets. */
  readonly firstShard: number;
  readonly unit: Unit;
  readonly blockSamples: number;
  /** Null if the next use of fetched data is unknown. The cache then keeps the data that was fetched first. */
  readonly readers: Readers | null;
  selection(pass: number): Selection;
  readonly passesAnEpoch: number;
  /** Number of samples of all datasets that are read by the time that `samples` of this dataset's passes are read. */
  positionOf(samples: number): number;
}

/** A part of a shard that is kept as a file. */
export interface Piece {
  readonly name: string;
  /** Number of the shard among the shards of all datasets. */
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  /** Rows that begin in it. */
  readonly from: number;
  readonly to: number;
}

/** A shard that is divided into pieces. */
export interface CutShard {
  readonly shard: number;
  /** Identifies the file and its contents: see {@link fileMark}. */
  readonly mark: string;
  readonly index: LoadedIndex;
}

/** Version of the format and the names of pieces. Pieces of another version are not found. */
const PIECE_VERSION = 2;

/**
 * Returns a name for a file from its location, size and version. No other file, and no file that replaced it, has the
 * same name. `otherwise` is used if neither the manifest nor the storage reports a version.
 */
export function fileMark({ path, name, bytes, crc32, version }: ShardFile, otherwise: string): string {
  const facts = [PIECE_VERSION, shownLocation(path), name, bytes, crc32, crc32 === undefined && (version ?? otherwise)];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}

/**
 * The pieces that contain some of the `bytes` bytes from `offset` on, in ascending order. If the unit is a chunk, a
 * piece is the bytes of a chunk; otherwise it is an aligned stretch of the shard.
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
  // A view of a file, such as one of decompressed pages, may be longer or shorter than the file.
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
 * Returns the eviction key of a piece that was just used in `pass` (null: in none); the largest key is evicted first.
 * The key is when this machine needs the piece again, in samples of all datasets from the beginning of the first pass.
 */
export function keyOf({ shard, from, to }: Piece, source: CutDataset, pass: number | null): number {
  const { firstShard, unit, blockSamples, readers, positionOf } = source;
  if (pass === null || readers === null) return SOME_DAY;
  const chosen = source.selection(pass);
  // If the unit is a sample, some samples of the piece are always needed soon, unless all samples are in memory.
  if (unit === 'sample') return positionOf(pass * readers.orderOf(pass).samples);
  const own = shard - firstShard;
  const rows = chosen.rows(own);
  const first = firstNumbersOf(chosen)[own]!;
  // With a selection, rows are numbered by their positions among the selected rows.
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

/** If at least this share of a piece is needed now, fetching the whole piece costs hardly more. */
const WHOLE_SHARE = 0.9;

/**
 * Returns how much later than this piece another piece must be needed to be evicted for it, in samples of all datasets.
 * It is 0 if the whole piece is needed now. If only a part is needed now, the rest is fetched for later. That is only
 * worthwhile if it replaces a piece that is needed at least an epoch later. Otherwise a cache in which each piece is
 * used once per epoch would fetch pieces again and again without saving more.
 */
export function marginOf({ bytes }: Piece, source: CutDataset, pass: number | null, wanted: number): number {
  const { readers, passesAnEpoch, positionOf } = source;
  if (pass === null || readers === null || wanted >= bytes * WHOLE_SHARE) return 0;
  return positionOf(readers.orderOf(pass).samples * passesAnEpoch);
}

const numbersOf = new WeakMap<Selection, Float64Array>();

/** The number of the first sample of each shard in a selection. It is computed once for each selection. */
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

/** Returns the offsets of the samples, if they are in the order of their rows. */
function risingOffsets(index: LoadedIndex): Float64Array | null {
  let rising = risingOf.get(index);
  if (rising === undefined) {
    const { offset, bytes } = index;
    rising = offset.every((at, row) => row === 0 || at >= offset[row - 1]! + bytes[row - 1]!) ? offset : null;
    risingOf.set(index, rising);
  }
  return rising;
}
