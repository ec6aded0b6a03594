import { partitionPoint } from '@shardtool/base';
import type { ReadCosts } from '@shardtool/storage';

/** Bytes of a shard that are kept in memory without a gap. */
export interface Stretch {
  /** Offset of the first byte in the shard; `bytes` is the length. */
  readonly offset: number;
  readonly bytes: number;
  /** Offset within the data that is loaded together. */
  readonly at: number;
}

/** One read of a shard: one stretch, or several with the gaps between them. */
export interface StretchRead {
  readonly offset: number;
  readonly bytes: number;
  readonly stretches: readonly Stretch[];
}

/** Samples closer than this (a page of LMDB) stay together in memory, if the gap is not longer than the sample. */
const KEPT_GAP_BYTES = 4096;
/** Longer stretches are divided between samples, because an allocation cannot be longer than a segment of memory. */
export const STRETCH_BYTES = 16 * 2 ** 20;
/** On local disks, stretches closer than this are read together, because a gap costs less than a second read. */
const NEAR = { gapBytes: 64 * 1024 };
/** Maximum length of a read in units of the largest gap: if reading gaps is worthwhile, longer reads are, too. */
const LONGEST_GAPS = 4;
/** Reads with gaps go through a buffer of this size, which fits into a processor's cache. */
const GAPPED_READ_BYTES = 2 ** 20;

/** Offsets and lengths of rows in a file. */
export interface RowSpans {
  readonly offset: Float64Array;
  readonly bytes: ArrayLike<number>;
}

/**
 * Returns the stretches that contain `rows` of a shard, rising and disjoint. In memory, they follow each other from
 * `at` on. Gaps take at most as much memory as samples.
 */
export function stretchesOf(index: RowSpans, rows: Uint32Array, at = 0): Stretch[] {
  const stretches: Stretch[] = [];
  let from = -1;
  let to = -1;
  let last = 0;
  for (const row of inOrderOnDisk(index, rows)) {
    const offset = index.offset[row]!;
    const end = offset + index.bytes[row]!;
    const goesOn = offset - to <= Math.min(KEPT_GAP_BYTES, last) && (offset < to || end - from <= STRETCH_BYTES);
    if (from >= 0 && goesOn) to = Math.max(to, end);
    else {
      if (from >= 0) at = pushStretch(stretches, from, to, at);
      from = offset;
      to = end;
    }
    last = end - offset;
  }
  if (from >= 0) pushStretch(stretches, from, to, at);
  return stretches;
}

/** Bytes of a file, from `offset` on. */
export type Span = Pick<Stretch, 'offset' | 'bytes'>;

/** Removes these spans from stretches. The rest stays at the same offsets in memory. */
export function stretchesWithout(stretches: readonly Stretch[], spans: readonly Span[]): Stretch[] {
  const rising = spans.filter(({ bytes }) => bytes > 0).sort((a, b) => a.offset - b.offset);
  const left: Stretch[] = [];
  for (const stretch of stretches) {
    const end = endOf(stretch);
    let from = stretch.offset;
    const keep = (to: number): void => {
      if (to > from) left.push({ offset: from, bytes: to - from, at: stretch.at + (from - stretch.offset) });
    };
    for (const span of rising) {
      if (span.offset >= end) break;
      keep(span.offset);
      from = Math.max(from, endOf(span));
    }
    keep(end);
  }
  return left;
}

/** Bytes of memory that stretches take. */
export function stretchBytes(stretches: readonly Stretch[]): number {
  let bytes = 0;
  for (const stretch of stretches) bytes += stretch.bytes;
  return bytes;
}

/**
 * Returns the offset of a byte of the shard within the data that is loaded together. A stretch has to contain the byte.
 */
export function placeWithin(stretches: readonly Stretch[], offset: number): number {
  const after = partitionPoint(1, stretches.length, (index) => stretches[index]!.offset <= offset);
  const stretch = stretches[after - 1]!;
  return stretch.at + (offset - stretch.offset);
}

/** Plans the reads that load the stretches of a shard. */
export function readsOf(stretches: readonly Stretch[], costs: Pick<ReadCosts, 'gapBytes'> = NEAR): StretchRead[] {
  const reads: StretchRead[] = [];
  for (let from = 0; from < stretches.length; ) {
    const { offset } = stretches[from]!;
    let next = from + 1;
    while (next < stretches.length && belongTogether(offset, stretches[next - 1]!, stretches[next]!, costs)) next++;
    const end = endOf(stretches[next - 1]!);
    reads.push({ offset, bytes: end - offset, stretches: stretches.slice(from, next) });
    from = next;
  }
  return reads;
}

function belongTogether(
  offset: number,
  before: Stretch,
  next: Stretch,
  { gapBytes }: Pick<ReadCosts, 'gapBytes'>,
): boolean {
  const most = Math.max(GAPPED_READ_BYTES, LONGEST_GAPS * gapBytes);
  // Two long stretches are read separately, which needs no copy.
  const isShort = Math.min(before.bytes, next.bytes) < gapBytes;
  return isShort && next.offset - endOf(before) <= gapBytes && endOf(next) - offset <= most;
}

function endOf({ offset, bytes }: Span): number {
  return offset + bytes;
}

function pushStretch(stretches: Stretch[], from: number, to: number, at: number): number {
  stretches.push({ offset: from, bytes: to - from, at });
  return at + (to - from);
}

function inOrderOnDisk({ offset }: RowSpans, rows: Uint32Array): Uint32Array {
  for (let i = 1; i < rows.length; i++) {
    if (offset[rows[i]!]! < offset[rows[i - 1]!]!) return rows.slice().sort((a, b) => offset[a]! - offset[b]!);
  }
  return rows;
}
