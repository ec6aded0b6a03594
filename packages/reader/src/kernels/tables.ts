import { ShardtoolError } from '@shardtool/base';
import { FILTERS, type Filter } from './filters.js';
import type { KernelMemory } from './kernel-memory.js';
import { type Axis, type AxisTaps, axisTaps, mirrored, NARROW_BITS, sourceRange } from './taps.js';

/** A resize needs more working memory than its kernel has. */
export class DecodeBufferError extends ShardtoolError {
  static override readonly kind: string = 'DecodeBufferError';
}

/** A table in memory, with the properties that the caller of the kernel needs. */
export interface Table {
  readonly axis: Axis;
  /** Address of the table in bytes. */
  readonly address: number;
  readonly lo: number;
  readonly hi: number;
  readonly taps: number;
}

/** Size of a pixel in a block of 8 rows with 3 channels, in bytes. */
const BLOCK_PIXEL_BYTES = 24;
const HEADER_WORDS = 4;

/** Rounds up to a multiple of 16, because the horizontal pass makes 16 pixels at a time. */
export function padded(count: number): number {
  return (count + 15) & ~15;
}

/** Bytes per narrow weight. A table holds each narrow weight twice; assembly/resize/table.ts explains why. */
const NARROW_WEIGHT_BYTES = 4;
const WIDE_WEIGHT_BYTES = 2;

/** Size of a table in bytes, a multiple of 16. */
function tableBytes(count: number, taps: number, weightBytes: number): number {
  return HEADER_WORDS * 4 + padded(count) * (4 + taps * weightBytes);
}

/** Upper bound for the taps of `count` pixels that are computed from `range` source pixels by a filter of this half width. */
export function maxTaps(range: number, count: number, halfWidth: number): number {
  return Math.min(range + 1, 2 * Math.ceil(halfWidth * Math.max(1, range / count)) + 2);
}

/** Makes a table for the horizontal pass. Its starts are in bytes of a block. */
export function columnTable(axis: Axis): AxisTaps {
  const taps = axisTaps(axis);
  return { ...taps, starts: taps.starts.map((start) => start * BLOCK_PIXEL_BYTES) };
}

/** Makes a table for the vertical pass. Its starts are in rows, ascending. With a flip, the source is read from its last row up. */
export function rowTable(axis: Axis): AxisTaps {
  const taps = axisTaps(axis);
  return axis.flip ? mirrored(taps) : taps;
}

/** A cache of the tables of one axis, in a region of memory. When it is full it is cleared; tables in use are soon made again. */
export class TableCache {
  readonly #words: Int32Array;
  readonly #address: number;
  readonly #make: (axis: Axis) => AxisTaps;
  readonly #tables = new Map<number, Table>();
  #usedBytes = 0;

  /** `address` is a multiple of 16. */
  constructor(memory: KernelMemory, address: number, bytes: number, make: (axis: Axis) => AxisTaps) {
    this.#words = new Int32Array(memory.buffer, address, bytes >> 2);
    this.#address = address;
    this.#make = make;
  }

  /** The table of an axis, valid until the next call. Throws {@link DecodeBufferError} if it is too large. */
  get(axis: Axis): Table {
    const hash = hashAxis(axis);
    const known = this.#tables.get(hash);
    if (known && sameAxis(known.axis, axis)) return known;
    this.#checkSize(axis);
    const table = this.#store(axis, this.#make(axis));
    this.#tables.set(hash, table);
    return table;
  }

  /** Checks the size before the table is made, because making it takes the same amount of memory. Narrow tables are never too large. */
  #checkSize(axis: Axis): void {
    const { lo, hi } = sourceRange(axis);
    const bytes = tableBytes(
      axis.count,
      maxTaps(hi - lo, axis.count, FILTERS[axis.filter ?? 'bilinear'].halfWidth),
      WIDE_WEIGHT_BYTES,
    );
    if (bytes <= this.#words.byteLength) return;
    throw new DecodeBufferError(
      {},
      `a resize from ${axis.source} to ${axis.output} pixels needs a table of ${bytes} bytes, more than ` +
        `${this.#words.byteLength}: crop before the resize, or pack smaller images`,
    );
  }

  #store(axis: Axis, filters: AxisTaps): Table {
    const { taps, bits } = filters;
    const narrow = bits === NARROW_BITS;
    const bytes = tableBytes(axis.count, taps, narrow ? NARROW_WEIGHT_BYTES : WIDE_WEIGHT_BYTES);
    if (this.#usedBytes + bytes > this.#words.byteLength) {
      this.#tables.clear();
      this.#usedBytes = 0;
    }
    const count = padded(axis.count);
    const words = this.#words.subarray(this.#usedBytes >> 2, (this.#usedBytes + bytes) >> 2);
    words.fill(0);
    words.set([axis.count, count, taps, bits]);
    words.set(filters.starts, HEADER_WORDS);
    const weights = HEADER_WORDS + count;
    if (narrow) words.set(doubled(filters.weights), weights);
    else new Int16Array(words.buffer, words.byteOffset + weights * 4).set(filters.weights);
    const address = this.#address + this.#usedBytes;
    this.#usedBytes += bytes;
    return { axis, address, lo: filters.lo, hi: filters.hi, taps };
  }
}

/** Repeats each weight in both halves of a word of 32 bits. */
function doubled(weights: Int16Array): Int32Array {
  const result = new Int32Array(weights.length);
  for (let i = 0; i < weights.length; i++) result[i] = weights[i]! * 0x1_0001;
  return result;
}

const FILTER_NUMBERS = Object.fromEntries(Object.keys(FILTERS).map((name, i) => [name, i])) as Record<Filter, number>;

/** A hash of an axis: a small integer. */
function hashAxis(axis: Axis): number {
  let hash = axis.source;
  hash = Math.imul(hash, 31) + axis.output;
  hash = Math.imul(hash, 31) + axis.first;
  hash = Math.imul(hash, 31) + axis.count;
  hash = Math.imul(hash, 31) + Math.round((axis.boxStart ?? 0) * 8);
  hash = Math.imul(hash, 31) + Math.round((axis.boxLength ?? 0) * 8);
  if (axis.filter !== undefined) hash = Math.imul(hash, 31) + FILTER_NUMBERS[axis.filter];
  return ((hash << 1) | (axis.flip ? 1 : 0)) & 0x3fffffff;
}

function sameAxis(a: Axis, b: Axis): boolean {
  return (
    a.source === b.source &&
    a.output === b.output &&
    a.first === b.first &&
    a.count === b.count &&
    a.flip === b.flip &&
    a.boxStart === b.boxStart &&
    a.boxLength === b.boxLength &&
    a.filter === b.filter
  );
}
