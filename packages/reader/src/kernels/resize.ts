/**
 * Resizes pixels inside a shared WebAssembly.Memory: the wrapper around assembly/resize/kernel.ts, which says how it works.
 */

import { readFileSync } from 'node:fs';
import type { KernelMemory } from './kernel-memory.js';
import { columnTable, DecodeBufferError, mostTaps, padded, rowTable, type Table, TableCache } from './tables.js';
import type { Axis } from './taps.js';

export { DecodeBufferError };

/** The bytes of one result: `uint8-nhwc` [height, width, 3], `uint8-nchw` and `float32-nchw` [3, height, width]. */
export type PixelLayout = 'uint8-nhwc' | 'uint8-nchw' | 'float32-nchw';

/** What float32 values are made of: (byte / 255 - mean) / std, per channel. */
export interface Normalization {
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
}

/** One resize of 8-bit RGB. Addresses are in bytes from the start of the memory. */
export interface Resize {
  /**
   * Of the first byte of the pixel at ({@link sourceRange} of x).lo, (that of y).lo. Up to {@link SOURCE_SLACK_BYTES}
   * after the last pixel of the range are read and have no influence.
   */
  readonly source: number;
  /** Bytes from one source row to the next. */
  readonly stride: number;
  readonly x: Axis;
  readonly y: Axis;
  readonly layout: PixelLayout;
  /** For float32; with none, values are bytes / 255. */
  readonly normalization?: Normalization | null;
  /** Where the result goes, without gaps between rows. Floats need an address that is a multiple of 4. */
  readonly target: number;
}

/** Working memory of one kernel. */
export interface Scratch {
  /** A multiple of 16. */
  readonly offset: number;
  readonly bytes: number;
}

/** The largest resize that a kernel is to do: the source pixels that it reaches, and those of the result. */
export interface LargestResize {
  readonly sourceColumns: number;
  readonly sourceRows: number;
  readonly width: number;
  readonly height: number;
}

/** Bytes past the last source pixel that may be read. They must lie inside the memory. */
export const SOURCE_SLACK_BYTES = 16;

/**
 * Memory for the tables of each axis: enough for all sizes that random crops of 500-pixel photos come in, and for the
 * largest table of a source of 65,535 pixels.
 */
const TABLES_BYTES = 4 << 20;

/** Rows of the band beyond those that one output row needs: what is moved to its front, is moved once in so many rows. */
const BAND_SPARE_ROWS = 32;

const BLOCK_ROWS = 8;
const JOB_BYTES = 64;
const NORMALIZATION_BYTES = 32;
/** Vectors are read and written past the end of a buffer, by up to 15 pixels of a block. */
const MARGIN_BYTES = 512;

const NO_NORMALIZATION: Normalization = { mean: [0, 0, 0], std: [1, 1, 1] };

/** Where the buffers of one resize lie, in bytes from the start of the working memory. */
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
  // One row more than the band has: the tap without weight of a wide filter.
  const spare = band + rowBytes * (bandRows + 1);
  return { block, resized, band, bandRows, spare, end: spare + padded(width) * 4 + MARGIN_BYTES };
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** The working memory in bytes (a multiple of 16) for this resize, and for those of fewer source pixels to the same size. */
export function scratchBytes({ sourceColumns, sourceRows, width, height }: LargestResize): number {
  return 2 * TABLES_BYTES + placeBuffers(sourceColumns, sourceRows, width, mostTaps(sourceRows, height)).end;
}

/** The functions of the compiled kernel: each takes the address of a job. */
type KernelExports = Record<'resizeInterleaved' | 'resizePlanar' | 'resizeNormalized', (job: number) => void>;

let compiled: WebAssembly.Module | undefined;

function instantiate(memory: KernelMemory): KernelExports {
  compiled ??= new WebAssembly.Module(readFileSync(new URL('./resize.wasm', import.meta.url)));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
}

/**
 * The kernel of one worker. Any number of them share a memory (created shared, with a maximum), each with working memory
 * of its own, which nothing else may write.
 */
export class ResizeKernel {
  readonly #run: Readonly<Record<PixelLayout, (job: number) => void>>;
  readonly #columns: TableCache;
  readonly #rows: TableCache;
  readonly #job: Uint32Array;
  readonly #normalization: Float32Array;
  readonly #buffers: number;
  readonly #buffersBytes: number;

  constructor(memory: KernelMemory, { offset, bytes }: Scratch) {
    const kernel = instantiate(memory);
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
   * Writes x.count * y.count pixels of 3 channels to the target, and nothing besides but the working memory. Throws
   * {@link DecodeBufferError} where that is too small.
   */
  resize({ source, stride, x, y, layout, normalization, target }: Resize): void {
    const columns = this.#columns.get(x);
    const rows = this.#rows.get(y);
    const sourceColumns = columns.hi - columns.lo;
    const sourceRows = rows.hi - rows.lo;
    const buffers = placeBuffers(sourceColumns, sourceRows, x.count, rows.taps);
    if (buffers.end > this.#buffersBytes) throw this.#tooSmall(columns, rows, buffers.end);
    if (layout === 'float32-nchw') this.#setNormalization(normalization ?? NO_NORMALIZATION);
    // In the order of the class Job of assembly/resize/kernel.ts.
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

  /** As a scale and a bias of bytes per channel. */
  #setNormalization({ mean, std }: Normalization): void {
    for (let channel = 0; channel < 3; channel++) {
      this.#normalization[channel] = 1 / (255 * std[channel]!);
      this.#normalization[channel + 3] = -mean[channel]! / std[channel]!;
    }
  }

  #tooSmall(x: Table, y: Table, bytes: number): DecodeBufferError {
    return new DecodeBufferError(
      {},
      `A resize of ${x.hi - x.lo}x${y.hi - y.lo} pixels to ${x.axis.count}x${y.axis.count} needs ` +
        `${2 * TABLES_BYTES + bytes} bytes of working memory, and there are ${2 * TABLES_BYTES + this.#buffersBytes}: ` +
        'plan it with scratchBytes().',
    );
  }
}
