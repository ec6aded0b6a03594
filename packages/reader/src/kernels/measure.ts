/**
 * Measures a picture for `inspect`, in a separate WebAssembly.Memory: the wrapper around assembly/measure.ts. All values are
 * bit for bit those of plain loops.
 */
import { readKernel } from './read-kernel.js';

/** Number of cells along each side of the picture that is hashed. */
const CELLS = 32;
/** Number of frequencies along each side. */
export const FREQUENCIES = 10;

/** Statistics of a picture. The brightness of a pixel is (77 red + 150 green + 29 blue) / 256 (ITU-R BT.601), rounded: 0 (black) to 255. */
export interface PictureStatistics {
  /** Sums of the values of each channel. */
  readonly sums: readonly [number, number, number];
  /** Sums of the squared values of each channel. */
  readonly squares: readonly [number, number, number];
  /** Number of pixels of each brightness: 256 counts, valid until the next picture. */
  readonly counts: Uint32Array;
  /** Sum and sum of squares of the Laplacian: the brightness of the four neighbours minus four times that of the pixel, for all pixels with four neighbours. */
  readonly laplacian: readonly [sum: number, squares: number];
}

type KernelExports = Record<
  'measureBrightness' | 'laplacian' | 'meanCells' | 'lowFrequencies',
  (...numbers: number[]) => undefined
>;

const PAGE_BYTES = 65_536;
/** Number of histograms that the kernel keeps in parallel, 256 words each. */
const COUNTS = 8;

let compiled: WebAssembly.Module | undefined;

/** The kernels of one thread for pictures of `side` x `side` pixels. `side` is a multiple of 16 and at most 256. */
export class MeasureKernels {
  readonly #kernels: KernelExports;
  readonly #side: number;
  readonly #pixels: Uint8Array;
  readonly #light: number;
  readonly #counts: Uint32Array;
  readonly #sums: Uint32Array;
  readonly #laplacian: Float64Array;
  readonly #cells: number;
  readonly #cosines: Float64Array;
  readonly #found: Float64Array;
  readonly #scratch: number;

  constructor(side: number) {
    this.#side = side;
    let end = 0;
    const allocate = (bytes: number) => {
      const at = end;
      end += Math.ceil(bytes / 16) * 16;
      return at;
    };
    const pixels = allocate(side * side * 3);
    this.#light = allocate(side * side);
    const counts = allocate(COUNTS * 256 * 4);
    const sums = allocate(6 * 4);
    const laplacian = allocate(2 * 8);
    this.#cells = allocate(CELLS * CELLS * 8);
    const cosines = allocate(CELLS * FREQUENCIES * 8);
    const found = allocate(FREQUENCIES * FREQUENCIES * 8);
    this.#scratch = allocate(Math.max(2 * side, CELLS * FREQUENCIES * 8));
    const pages = Math.ceil(end / PAGE_BYTES);
    // The kernels import shared memory, although no other thread uses this one.
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    compiled ??= new WebAssembly.Module(readKernel(new URL('./measure.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#pixels = new Uint8Array(memory.buffer, pixels, side * side * 3);
    this.#counts = new Uint32Array(memory.buffer, counts, COUNTS * 256);
    this.#sums = new Uint32Array(memory.buffer, sums, 6);
    this.#laplacian = new Float64Array(memory.buffer, laplacian, 2);
    this.#cosines = new Float64Array(memory.buffer, cosines, CELLS * FREQUENCIES);
    this.#found = new Float64Array(memory.buffer, found, FREQUENCIES * FREQUENCIES);
    for (let cell = 0; cell < CELLS; cell++) {
      for (let frequency = 0; frequency < FREQUENCIES; frequency++)
        this.#cosines[cell * FREQUENCIES + frequency] = cosine(frequency, cell);
    }
  }

  /** Loads and measures a picture, uint8 [side, side, 3]. Later calls refer to this picture. */
  measure(pixels: Uint8Array): PictureStatistics {
    this.#pixels.set(pixels);
    this.#counts.fill(0);
    const { measureBrightness, laplacian } = this.#kernels;
    measureBrightness(
      this.#pixels.byteOffset,
      this.#side ** 2,
      this.#light,
      this.#counts.byteOffset,
      this.#sums.byteOffset,
    );
    laplacian(this.#light, this.#side, this.#laplacian.byteOffset);
    const counts = this.#counts.subarray(0, 256);
    for (let i = 256; i < this.#counts.length; i++) counts[i & 255]! += this.#counts[i]!;
    const [red, green, blue, red2, green2, blue2] = this.#sums as unknown as readonly number[];
    return {
      sums: [red!, green!, blue!],
      squares: [red2!, green2!, blue2!],
      counts,
      laplacian: [this.#laplacian[0]!, this.#laplacian[1]!],
    };
  }

  /**
   * The lowest frequencies of the brightness, [down][across] with {@link FREQUENCIES} each: the discrete cosine transform (DCT-II) of the
   * means of {@link CELLS} x {@link CELLS} cells. `margin` pixels at each side are ignored. Valid until the next call.
   */
  lowFrequencies(margin: number): Float64Array {
    const { meanCells, lowFrequencies } = this.#kernels;
    meanCells(this.#light, this.#side, margin, this.#cells, this.#scratch);
    lowFrequencies(this.#cells, this.#cosines.byteOffset, this.#found.byteOffset, this.#scratch);
    return this.#found;
  }
}

function cosine(frequency: number, cell: number): number {
  return Math.cos(((2 * cell + 1) * frequency * Math.PI) / (2 * CELLS)) * (frequency === 0 ? Math.SQRT1_2 : 1);
}
