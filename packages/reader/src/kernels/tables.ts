/**
 * Coefficient tables in the memory of the kernel (assembly/table.ts), kept from one image to the next: sizes recur, and
 * making a table takes a quarter of the time of a whole resize.
 */
import { type Axis, type AxisTaps, axisTaps, mirrored } from './taps.js';

/** A table in memory, and what the caller of the kernel must know about it. */
export interface Table {
  readonly axis: Axis;
  /** In bytes. */
  readonly address: number;
  readonly lo: number;
  readonly hi: number;
  readonly taps: number;
}

/** Bytes of one pixel in a block of 8 rows: 3 channels. */
const BLOCK_PIXEL_BYTES = 24;
const HEADER_WORDS = 4;

/** Results of the horizontal pass are made 16 pixels at a time. */
export function padded(count: number): number {
  return (count + 15) & ~15;
}

/** Bytes of a table of `count` pixels, a multiple of 16. */
export function tableBytes(count: number, taps: number): number {
  return HEADER_WORDS * 4 + padded(count) * (4 + taps * 2);
}

/** The most taps that `count` pixels made of `range` source pixels can have. */
export function mostTaps(range: number, count: number): number {
  return Math.min(range + 1, 2 * Math.ceil(range / count) + 2);
}

/** A table for the horizontal pass: starts in bytes of a block. */
export function columnTable(axis: Axis): AxisTaps {
  const taps = axisTaps(axis);
  return { ...taps, starts: taps.starts.map((start) => start * BLOCK_PIXEL_BYTES) };
}

/** A table for the vertical pass: starts in rows, ascending. Where it flips, the source is read from its last row up. */
export function rowTable(axis: Axis): AxisTaps {
  const taps = axisTaps(axis);
  return axis.flip ? mirrored(taps) : taps;
}

/** Tables of one axis in a stretch of memory. When it is full it is emptied: the tables in use come back soon. */
export class TableCache {
  readonly #words: Int32Array;
  readonly #halves: Int16Array;
  readonly #address: number;
  readonly #make: (axis: Axis) => AxisTaps;
  readonly #tables = new Map<number, Table>();
  #usedBytes = 0;

  /** `address` is a multiple of 16. */
  constructor(memory: WebAssembly.Memory, address: number, bytes: number, make: (axis: Axis) => AxisTaps) {
    this.#words = new Int32Array(memory.buffer, address, bytes >> 2);
    this.#halves = new Int16Array(memory.buffer, address, bytes >> 1);
    this.#address = address;
    this.#make = make;
  }

  /** The table of an axis. It stays where it is until the next call. */
  get(axis: Axis): Table {
    const hash = hashAxis(axis);
    const known = this.#tables.get(hash);
    if (known && sameAxis(known.axis, axis)) return known;
    const table = this.#lay(axis, this.#make(axis));
    this.#tables.set(hash, table);
    return table;
  }

  #lay(axis: Axis, filters: AxisTaps): Table {
    const bytes = tableBytes(axis.count, filters.taps);
    if (this.#usedBytes + bytes > this.#words.byteLength) {
      this.#tables.clear();
      this.#usedBytes = 0;
    }
    const starts = (this.#usedBytes >> 2) + HEADER_WORDS;
    const count = padded(axis.count);
    const weights = (starts + count) * 2;
    this.#words.set([axis.count, count, filters.taps, filters.bits], starts - HEADER_WORDS);
    this.#words.fill(0, starts + axis.count, starts + count);
    this.#words.set(filters.starts, starts);
    this.#halves.fill(0, weights + filters.weights.length, weights + count * filters.taps);
    this.#halves.set(filters.weights, weights);
    const address = this.#address + this.#usedBytes;
    this.#usedBytes += bytes;
    return { axis, address, lo: filters.lo, hi: filters.hi, taps: filters.taps };
  }
}

/** A small integer that differs for most axes. */
function hashAxis(axis: Axis): number {
  let hash = axis.source;
  hash = Math.imul(hash, 31) + axis.output;
  hash = Math.imul(hash, 31) + axis.first;
  hash = Math.imul(hash, 31) + axis.count;
  hash = Math.imul(hash, 31) + Math.round((axis.boxStart ?? 0) * 8);
  hash = Math.imul(hash, 31) + Math.round((axis.boxLength ?? 0) * 8);
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
    a.boxLength === b.boxLength
  );
}
