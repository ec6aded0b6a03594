/**
 * Resizes pixels in a shared WebAssembly.Memory: the wrapper around assembly/resize/kernel.ts, which explains the algorithm.
 */

import type { KernelMemory } from './kernel-memory.js';
import { readKernel } from './read-kernel.js';
import { columnTable, DecodeBufferError, maxTaps, padded, rowTable, type Table, TableCache } from './tables.js';
import type { Axis } from './taps.js';

export { DecodeBufferError };

/** The layout of a result: `uint8-nhwc` is [height, width, 3], `uint8-nchw` and `float32-nchw` are [3, height, width]. */
export type PixelLayout = 'uint8-nhwc' | 'uint8-nchw' | 'float32-nchw';

/** The conversion of bytes to floats: (byte / 255 - mean) / std, per channel. */
export interface Normalization {
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

/** One resize of 8-bit RGB. Addresses are in bytes from the start of the memory. */
export interface Resize {
  /**
   * Address of the pixel at column `lo` of the {@link sourceRange} of x and row `lo` of that of y. Up to {@link SOURCE_SLACK_BYTES}
   * bytes after the last pixel of the range are read, without influence on the result.
   */
  readonly source: number;
  /** Number of bytes from one source row to the next. */
  readonly stride: number;
  readonly x: Axis;
  readonly y: Axis;
  readonly layout: PixelLayout;
  /** Only for float32. If it is omitted, values are byte / 255. */
  readonly normalization?: Normalization | null;
  /** Address of the result, which has no gaps between rows. For floats, a multiple of 4. */
  readonly target: number;
}

/** Working memory of one kernel, in bytes. */
export interface Scratch {
  /** Start of the memory, a multiple of 16. */
  readonly offset: number;
  readonly bytes: number;
}

/** The largest resize that a kernel must support: source pixels that it reads, and the size of the result. */
export interface LargestResize {
  readonly sourceColumns: number;
  readonly sourceRows: number;
  readonly width: number;
  readonly height: number;
  /** Half width of the widest filter, in source pixels. Default: 1, bilinear. */
  readonly halfWidth?: number;
}

/** The longest side that a JPEG can have, in pixels. Working memory is for sources of up to this length. */
export const LONGEST_SIDE = 65_535;

/** Number of bytes after the last source pixel that may be read. They must be inside the memory. */
export const SOURCE_SLACK_BYTES = 16;

/**
 * Memory for the tables of each axis in bytes: enough for all sizes of random crops of 500-pixel photos, and for the largest table
 * of a source of 65,535 pixels.
 */
const TABLES_BYTES = 4 << 20;

/** Number of rows of the band beyond those that one output row needs. The band is moved to its front once per this number of rows. */
const BAND_SPARE_ROWS = 32;

const BLOCK_ROWS = 8;
const JOB_BYTES = 64;
const NORMALIZATION_BYTES = 32;
/** Margin after a buffer in bytes: vectors are read and written beyond its end, by up to 15 pixels of a block. */
const MARGIN_BYTES = 512;

const NO_NORMALIZATION: Normalization = { mean: [0, 0, 0], std: [1, 1, 1] };

/** Offsets of the buffers of one resize, in bytes from the start of the working memory. */
interface Buffers {
  readonly block: number;
  readonly resized: number;
  readonly band: number;
  readonly bandRows: number;
  readonly spare: number;
  readonly end: number;
}

function placeBuffers(sourceColumns: number, sourceRows: number, width: number, rowTaps: number): Buffers {
  const rowBytes = padded(width) * 3;
  const bandRows = Math.min(roundUp(sourceRows, BLOCK_ROWS), roundUp(rowTaps, BLOCK_ROWS) + BAND_SPARE_ROWS);
  const block = JOB_BYTES + NORMALIZATION_BYTES;
  const resized = block + roundUp(sourceColumns * 3, 16) * BLOCK_ROWS + MARGIN_BYTES;
  const band = resized + rowBytes * BLOCK_ROWS;
  // One more row than the band has, for the tap of a wide filter that has no weight.
  const spare = band + rowBytes * (bandRows + 1);
  return { block, resized, band, bandRows, spare, end: spare + padded(width) * 4 + MARGIN_BYTES };
}

export function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** Size of the working memory in bytes, a multiple of 16, for this resize and for resizes of fewer source pixels to the same size. */
export function scratchBytes({ sourceColumns, sourceRows, width, height, halfWidth = 1 }: LargestResize): number {
  return 2 * TABLES_BYTES + placeBuffers(sourceColumns, sourceRows, width, maxTaps(sourceRows, height, halfWidth)).end;
}

/** The functions of the compiled kernel. Those that resize take the address of a job. */
type KernelExports = Record<'resizeInterleaved' | 'resizePlanar' | 'resizeNormalized', (job: number) => void> &
  Record<'copyRows' | 'fillPixels', (...numbers: number[]) => void>;

/** Rows of RGB bytes: the address of the first one, and the number of bytes from one row to the next. */
interface RgbRows {
  readonly offset: number;
  readonly stride: number;
}

let compiled: WebAssembly.Module | undefined;

function instantiate(memory: KernelMemory): KernelExports {
  compiled ??= new WebAssembly.Module(readKernel(new URL('./resize.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
}

/**
 * The resize kernel of one worker. Any number of kernels can use one memory, which must be shared and have a maximum. Each kernel has
 * separate working memory, which nothing else may write to.
 */
export class ResizeKernel {
  readonly #kernel: KernelExports;
  readonly #run: Readonly<Record<PixelLayout, (job: number) => void>>;
  readonly #columns: TableCache;
  readonly #rows: TableCache;
  readonly #job: Uint32Array;
  readonly #normalization: Float32Array;
  readonly #buffers: number;
  readonly #buffersBytes: number;

  constructor(memory: KernelMemory, { offset, bytes }: Scratch) {
    const kernel = instantiate(memory);
    this.#kernel = kernel;
    this.#run = {
      'uint8-nhwc': kernel.resizeInterleaved,
      'uint8-nchw': kernel.resizePlanar,
      'float32-nchw': kernel.resizeNormalized,
    };
    this.#columns = new TableCache(memory, offset, TABLES_BYTES, columnTable);
    this.#rows = new TableCache(memory, offset + TABLES_BYTES, TABLES_BYTES, rowTable);
    this.#buffers = offset + 2 * TABLES_BYTES;
    this.#buffersBytes = bytes - 2 * TABLES_BYTES;
    this.#job = new Uint32Array(memory.buffer, this.#buffers, JOB_BYTES >> 2);
    this.#normalization = new Float32Array(memory.buffer, this.#buffers + JOB_BYTES, NORMALIZATION_BYTES >> 2);
  }

  /**
   * Writes x.count * y.count pixels of 3 channels to the target. Nothing else is written, except working memory. Throws
   * {@link DecodeBufferError} if the working memory is too small.
   */
  resize({ source, stride, x, y, layout, normalization, target }: Resize): void {
    const columns = this.#columns.get(x);
    const rows = this.#rows.get(y);
    const sourceColumns = columns.hi - columns.lo;
    const sourceRows = rows.hi - rows.lo;
    const buffers = placeBuffers(sourceColumns, sourceRows, x.count, rows.taps);
    if (buffers.end > this.#buffersBytes) throw this.#tooSmall(columns, rows, buffers.end);
    if (layout === 'float32-nchw') this.#setNormalization(normalization ?? NO_NORMALIZATION);
    // The fields are in the order of the class Job in assembly/resize/kernel.ts.
    const job = this.#job;
    job[0] = y.flip ? source + (sourceRows - 1) * stride : source;
    job[1] = y.flip ? -stride : stride;
    job[2] = sourceRows;
    job[3] = sourceColumns * 3;
    job[4] = columns.address;
    job[5] = rows.address;
    job[6] = target;
    job[7] = this.#buffers + buffers.block;
    job[8] = this.#buffers + buffers.resized;
    job[9] = this.#buffers + buffers.band;
    job[10] = buffers.bandRows;
    job[11] = this.#buffers + buffers.spare;
    job[12] = this.#buffers + JOB_BYTES;
    this.#run[layout](this.#buffers);
  }

  /** Copies rows of bytes. V8's copyWithin takes five times as long if rows are not aligned. */
  copyRows(from: RgbRows, to: RgbRows, bytes: number, rows: number): void {
    this.#kernel.copyRows(to.offset, to.stride, from.offset, from.stride, bytes, rows);
  }

  /** Fills `pixels` pixels with a color. V8 fills shared memory byte by byte. */
  fillPixels(target: number, pixels: number, [red, green, blue]: readonly [number, number, number]): void {
    this.#kernel.fillPixels(target, pixels * 3, red, green, blue);
  }

  /** Writes the normalization as scale and bias of bytes per channel. */
  #setNormalization({ mean, std }: Normalization): void {
    for (let channel = 0; channel < 3; channel++) {
      this.#normalization[channel] = 1 / (255 * std[channel]!);
      this.#normalization[channel + 3] = -mean[channel]! / std[channel]!;
    }
  }

  #tooSmall(x: Table, y: Table, bytes: number): DecodeBufferError {
    const [columns, rows] = [x.hi - x.lo, y.hi - y.lo];
    if (Math.max(columns, rows) > LONGEST_SIDE) {
      return new DecodeBufferError(
        {},
        `a resize of ${columns}x${rows} pixels to ${x.axis.count}x${y.axis.count} needs more working memory than there is for ` +
          `sides of up to ${LONGEST_SIDE} pixels: crop before the resize, or pack smaller images`,
      );
    }
    return new DecodeBufferError(
      {},
      `a resize of ${columns}x${rows} pixels to ${x.axis.count}x${y.axis.count} needs ` +
        `${megabytes(2 * TABLES_BYTES + bytes)} of decode memory, but a worker has ` +
        `${megabytes(2 * TABLES_BYTES + this.#buffersBytes)} for it: use fewer workers or a smaller batch, or crop before the resize`,
    );
  }
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
