/**
 * Resizes 16-bit integers and floats with any number of channels in a shared WebAssembly.Memory: the wrapper around
 * assembly/wide-resize/kernel.ts. Sums have 64 bits; integers are rounded once, halves up.
 */

import { AxisTables } from './axis-tables.js';
import { type ExactTaps, exactTaps } from './exact-taps.js';
import type { KernelMemory } from './kernel-memory.js';
import type { Allocate, PixelResize, PixelResizeKernel } from './pixel-resize.js';
import { readKernel } from './read-kernel.js';

/** Numbers that the kernel knows dtypes by. */
const DTYPES = { uint16: 0, int16: 1, float32: 2 } as const;
/** The dtypes of pixels that this kernel resizes. */
type WideDtype = keyof typeof DTYPES;

const BLOCK_ROWS = 8;
/** Size of a value in a block of rows in bytes: floats of all rows. */
export const WIDE_BLOCK_BYTES = BLOCK_ROWS * 4;
/** Values that are written after a block, because rows are read four values at a time. */
const BLOCK_MARGIN = 3;
/** Largest number of weights that are kept: 8 MiB. */
const MOST_WEIGHTS = 2 ** 20;

type KernelExports = Record<'alongRows' | 'alongColumns', (...numbers: number[]) => void>;

let compiled: WebAssembly.Module | undefined;

/** The kernel of one worker. */
export class WideResizeKernel implements PixelResizeKernel {
  readonly #memory: KernelMemory;
  readonly #kernel: KernelExports;
  readonly #dtype: WideDtype;
  readonly #taps = new AxisTables<ExactTaps>(
    (axis) => exactTaps(axis, false),
    ({ weights }) => weights.length,
    MOST_WEIGHTS,
  );

  constructor(memory: KernelMemory, dtype: WideDtype) {
    compiled ??= new WebAssembly.Module(readKernel(new URL('./wide-resize.wasm', import.meta.url)));
    this.#kernel = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#memory = memory;
    this.#dtype = dtype;
  }

  /**
   * Writes x.count * y.count pixels, and nothing else outside of working memory. Up to 12 bytes after each source row are read,
   * without influence on the result.
   */
  resize({ source, target, x, y, channels }: PixelResize, allocate: Allocate): void {
    const columns = this.#taps.of(x);
    const rows = this.#taps.of(y);
    const sourceRows = rows.hi - rows.lo;
    const sourceValues = (columns.hi - columns.lo) * channels;
    const values = x.count * channels;
    const pitch = Math.ceil(values / BLOCK_ROWS) * BLOCK_ROWS * 4;
    const dtype = DTYPES[this.#dtype];
    const block = allocate((sourceValues + BLOCK_MARGIN) * WIDE_BLOCK_BYTES);
    const middle = allocate(pitch * Math.ceil(sourceRows / BLOCK_ROWS) * BLOCK_ROWS);
    const spare = allocate(32);
    this.#kernel.alongRows(
      ...[source.address, source.stride, sourceRows, sourceValues, channels],
      ...[x.count, ...this.#place(columns, allocate), columns.taps, block, middle, pitch, dtype],
    );
    this.#kernel.alongColumns(
      ...[middle, pitch, y.count, values, ...this.#place(rows, allocate), rows.taps],
      ...[target.address, target.stride, spare, dtype],
    );
  }

  /** Writes starts and weights to working memory, and returns their addresses. */
  #place({ starts, weights }: ExactTaps, allocate: Allocate): [number, number] {
    const addresses: [number, number] = [allocate(starts.byteLength), allocate(weights.byteLength)];
    new Int32Array(this.#memory.buffer, addresses[0], starts.length).set(starts);
    new Float64Array(this.#memory.buffer, addresses[1], weights.length).set(weights);
    return addresses;
  }
}
