import {
  type LargestResize,
  type Normalization,
  type PixelLayout,
  ResizeKernel,
  SOURCE_SLACK_BYTES,
  scratchBytes,
} from '#reader/kernels/resize';
import { type Axis, sourceRange } from '#reader/kernels/taps';

/** A picture: pixels are [height, width, 3]. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const GUARD_BYTES = 64;
const GUARD = 0xa5;

/** A kernel whose working memory, target and source are between guard bytes that must not change. */
export class GuardedKernel {
  readonly #memory: Uint8Array;
  readonly #kernel: ResizeKernel;
  readonly #scratch: { readonly offset: number; readonly bytes: number };
  /** The end of the source, including the slack that it needs. */
  readonly #end: number;

  /** There are `freeBytes` (a multiple of 64 KiB) for source and target, which end `end` bytes after the start of the memory. */
  constructor(largest: LargestResize, freeBytes: number, end?: number) {
    const bytes = scratchBytes(largest);
    this.#end = end ?? roundUp(bytes + freeBytes + 3 * GUARD_BYTES, 65536) - GUARD_BYTES;
    this.#scratch = { offset: roundUp(this.#end - freeBytes - bytes - GUARD_BYTES, 16) - 16, bytes };
    const pages = Math.ceil(this.#end / 65536);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    this.#memory = new Uint8Array(memory.buffer);
    this.#kernel = new ResizeKernel(memory, this.#scratch);
  }

  /**
   * The bytes of the result, copied. Bytes that may be read around the source are `surroundings`. Throws if a byte outside
   * the result changed.
   */
  resize(
    picture: Picture,
    x: Axis,
    y: Axis,
    layout: PixelLayout,
    { normalization, surroundings = 0x33 }: { normalization?: Normalization; surroundings?: number } = {},
  ): Uint8Array {
    const columns = sourceRange(x);
    const rows = sourceRange(y);
    const rowBytes = (columns.hi - columns.lo) * 3;
    const stride = (rowBytes + 31) & ~31;
    const sourceBytes = (rows.hi - rows.lo - 1) * stride + rowBytes + SOURCE_SLACK_BYTES;
    const source = this.#end - sourceBytes;
    const targetBytes = x.count * y.count * 3 * (layout === 'float32-nchw' ? 4 : 1);
    const target = roundUp(source - GUARD_BYTES - targetBytes, 4) - 4;
    this.#memory.subarray(source, source + sourceBytes).fill(surroundings);
    for (let row = rows.lo; row < rows.hi; row++) {
      const from = (row * picture.width + columns.lo) * 3;
      this.#memory.set(picture.pixels.subarray(from, from + rowBytes), source + (row - rows.lo) * stride);
    }
    const before = this.#memory.slice(source, source + sourceBytes);
    const regions = [
      [this.#scratch.offset, this.#scratch.bytes],
      [source, sourceBytes],
      [target, targetBytes],
    ] as const;
    for (const [offset, bytes] of regions) for (const guard of this.#guards(offset, bytes)) guard.fill(GUARD);
    this.#kernel.resize({ source, stride, x, y, layout, target, ...(normalization && { normalization }) });
    for (const [offset, bytes] of regions) {
      for (const guard of this.#guards(offset, bytes)) {
        if (guard.some((byte) => byte !== GUARD)) throw new Error(`A byte of the guard at ${offset} has changed.`);
      }
    }
    if (Buffer.compare(before, this.#memory.subarray(source, source + sourceBytes)) !== 0) {
      throw new Error('The source has changed.');
    }
    return this.#memory.slice(target, target + targetBytes);
  }

  #guards(offset: number, bytes: number): Uint8Array[] {
    return [
      this.#memory.subarray(offset - GUARD_BYTES, offset),
      this.#memory.subarray(offset + bytes, offset + bytes + GUARD_BYTES),
    ];
  }
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}

/** The axis of a plain resize. */
export function wholeAxis(source: number, output: number, flip = false): Axis {
  return { source, output, first: 0, count: output, flip };
}

/** Noise: byte i is the top byte of a mix of `seed + i` (Chris Wellons, "Prospecting for Hash Functions", lowbias32). */
export function noise(width: number, height: number, seed: number): Picture {
  const pixels = new Uint8Array(width * height * 3);
  for (let i = 0; i < pixels.length; i++) {
    let mix = seed + i;
    mix = Math.imul(mix ^ (mix >>> 16), 0x7feb352d);
    mix = Math.imul(mix ^ (mix >>> 15), 0x846ca68b);
    pixels[i] = (mix ^ (mix >>> 16)) >>> 24;
  }
  return { width, height, pixels };
}
