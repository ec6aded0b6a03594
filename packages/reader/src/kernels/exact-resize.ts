/**
 * Resizes bytes with any number of channels in a shared WebAssembly.Memory, with the bits of Pillow: the wrapper around
 * assembly/exact-resize/kernel.ts.
 */

import { AxisTables } from './axis-tables.js';
import { exactTaps } from './exact-taps.js';
import type { KernelMemory } from './kernel-memory.js';
import type { Allocate, PixelResize, PixelResizeKernel } from './pixel-resize.js';
import { readKernel } from './read-kernel.js';
import type { Axis } from './taps.js';

/**
 * The table of an axis as the kernel reads it: the start of each pixel, then for every two taps the high words and the low words of
 * their weights.
 */
interface ExactTable {
  readonly lo: number;
  readonly hi: number;
  readonly count: number;
  readonly pairs: number;
  readonly words: Int32Array;
}

function exactTable(axis: Axis): ExactTable {
  const { lo, hi, taps, starts, weights } = exactTaps(axis, true);
  const { count } = axis;
  const pairs = Math.ceil(taps / 2);
  const words = new Int32Array(count * (1 + 2 * pairs));
  words.set(starts);
  const halves = new Int16Array(words.buffer, count * 4);
  for (let i = 0; i < count; i++) {
    for (let k = 0; k < taps; k++) {
      const weight = weights[i * taps + k]!;
      const at = (i * pairs + (k >> 1)) * 4 + (k & 1);
      halves[at] = weight >> LOW_BITS;
      halves[at + 2] = weight & (2 ** LOW_BITS - 1);
    }
  }
  return { lo, hi, count, pairs, words };
}

const LOW_BITS = 8;
const BLOCK_ROWS = 8;
/** Margin after a buffer in bytes: blocks are processed 16 columns at a time, and the last tap may have no weight. */
const MARGIN_BYTES = 256;
/** Largest number of words of tables that are kept: 4 MiB. */
const MOST_TABLE_WORDS = 2 ** 20;

function roundUp(bytes: number): number {
  return Math.ceil(bytes / 16) * 16;
}

type KernelExports = Record<'alongRows' | 'alongColumns', (...numbers: number[]) => void>;

let compiled: WebAssembly.Module | undefined;

/** The kernel of one worker. */
export class ExactResizeKernel implements PixelResizeKernel {
  readonly #words: Int32Array;
  readonly #kernel: KernelExports;
  readonly #tables = new AxisTables(exactTable, ({ words }) => words.length, MOST_TABLE_WORDS);

  constructor(memory: KernelMemory) {
    compiled ??= new WebAssembly.Module(readKernel(new URL('./exact-resize.wasm', import.meta.url)));
    this.#kernel = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#words = new Int32Array(memory.buffer);
  }

  /**
   * Writes x.count * y.count pixels, and nothing else outside of working memory. Up to 16 bytes after each source row are read,
   * without influence on the result.
   */
  resize({ source, target, x, y, channels }: PixelResize, allocate: Allocate): void {
    const columns = this.#tables.of(x);
    const rows = this.#tables.of(y);
    const sourceRows = rows.hi - rows.lo;
    const sourceBytes = (columns.hi - columns.lo) * channels;
    const bytes = x.count * channels;
    const pitch = roundUp(bytes);
    const block = allocate(roundUp(sourceBytes) * BLOCK_ROWS + BLOCK_ROWS * channels + MARGIN_BYTES);
    const resized = allocate(pitch * BLOCK_ROWS);
    const middle = allocate(pitch * (Math.ceil(sourceRows / BLOCK_ROWS) * BLOCK_ROWS + 1));
    const spare = allocate(16);
    const columnTable = this.#place(columns, allocate);
    const rowTable = this.#place(rows, allocate);
    this.#kernel.alongRows(
      ...[source.address, source.stride, sourceRows, sourceBytes, channels],
      ...[x.count, columnTable, columnTable + x.count * 4, columns.pairs, block, resized, middle, pitch],
    );
    this.#kernel.alongColumns(
      ...[middle, pitch, y.count, bytes, rowTable, rowTable + y.count * 4, rows.pairs],
      ...[target.address, target.stride, spare],
    );
  }

  #place({ words }: ExactTable, allocate: Allocate): number {
    const address = allocate(words.byteLength);
    this.#words.set(words, address >>> 2);
    return address;
  }
}
