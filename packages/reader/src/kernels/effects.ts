/**
 * Rotation, blur, colour changes and other effects on 8-bit RGB in a shared WebAssembly.Memory: the wrapper around
 * assembly/effects/kernel.ts. Pictures are [height, width, 3] bytes without gaps, followed by {@link PICTURE_SLACK_BYTES} that may
 * be read and, in targets, written.
 *
 * Compared with v2.functional of torchvision 0.29 on the same uint8 tensors, bilinear rotation, blur, brightness, contrast,
 * saturation, hue and grayscale each differ by at most 1 level. Erasing is equal. Nearest rotation is equal except for positions
 * exactly between two pixels (less than 0.2 %). The differences of successive colour changes add up:
 * test/transform-torchvision.test.ts checks four of them.
 */

import { gaussianWeights } from './gaussian.js';
import type { KernelMemory } from './kernel-memory.js';
import { readKernel } from './read-kernel.js';
import { type Normalization, roundUp } from './resize.js';

/** Number of bytes after a picture that kernels may access. */
export const PICTURE_SLACK_BYTES = 64;

/** An RGB picture in memory. `address` is in bytes from the start of the memory. */
export interface Picture {
  readonly address: number;
  readonly width: number;
  readonly height: number;
}

/** Red, green and blue, 0 to 255. */
type Rgb = readonly [number, number, number];

/** An affine map: (x, y) becomes (a x + b y + c, d x + e y + f). */
type Affine = readonly [number, number, number, number, number, number];

/** The interpolations of rotations: nearest and bilinear as in torchvision for tensors, bicubic and pillow-bilinear as in Pillow. */
export type RotateInterpolation = keyof typeof ROTATE_KERNELS;
const ROTATE_KERNELS = {
  nearest: 'rotateNearest',
  bilinear: 'rotateBilinear',
  'pillow-bilinear': 'rotatePillowBilinear',
  bicubic: 'rotateBicubic',
} as const;

/** A color with red in its lowest byte. A number above 0xffffff means no color. */
function colourOf(fill: Rgb | null): number {
  return fill === null ? 0x1000000 : fill[0] | (fill[1] << 8) | (fill[2] << 16);
}

/** The box that Pillow blurs with three times for a Gaussian blur (libImaging/BoxBlur.c). Weights are in units of 2^-24. */
function boxOf(sigma: number): { radius: number; whole: number; part: number } {
  const variance = (sigma * sigma) / 3;
  const half = Math.floor((Math.sqrt(12 * variance + 1) - 1) / 2);
  const rest = ((2 * half + 1) * (half * (half + 1) - 3 * variance)) / (6 * (variance - (half + 1) ** 2));
  const size = Math.fround(half + rest);
  const radius = Math.trunc(size);
  const whole = Math.trunc(2 ** 24 / (size * 2 + 1));
  return { radius, whole, part: Math.trunc((2 ** 24 - (radius * 2 + 1) * whole) / 2) };
}

/** Four counters of Philox, four words each. */
const PHILOX_BYTES = 64;
/** Size of the working memory of {@link EffectKernels.addNoise} in bytes. */
export const NOISE_SCRATCH_BYTES = PHILOX_BYTES + 65_536 * 2;

type Kernel = (...numbers: number[]) => number;
type KernelExports = Record<
  | 'addNoise'
  | 'addWeighted'
  | 'blendSums'
  | 'blur'
  | 'boxBlur'
  | 'countBytes'
  | 'invertBytes'
  | 'jpegArtifacts'
  | 'lookUpBytes'
  | 'mapPixels'
  | 'maskBytes'
  | 'permuteChannels'
  | 'sharpen'
  | 'solarizeBytes'
  | 'scaleBytes'
  | 'graySum'
  | 'saturate'
  | 'shiftHue'
  | 'fillRows'
  | 'lookUpHsv'
  | 'lookUpWords'
  | 'makeFloats'
  | 'mixBytes'
  | 'mixFloats'
  | 'copyRows'
  | 'rotateNearest'
  | 'rotateBilinear'
  | 'rotatePillowBilinear'
  | 'rotateBicubic',
  Kernel
>;

/** Length of a repeated pattern in bytes: a whole number of pixels for 1, 2 or 4 bytes per channel. */
const PATTERN_BYTES = 48;

let compiled: WebAssembly.Module | undefined;

/** The effect kernels of one worker. */
export class EffectKernels {
  readonly #memory: Uint8Array;
  readonly #kernels: KernelExports;

  constructor(memory: KernelMemory) {
    compiled ??= new WebAssembly.Module(readKernel(new URL('./effects.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#memory = new Uint8Array(memory.buffer);
  }

  /**
   * Rotates, or applies another affine map. `matrix` maps a pixel of the target to its position in the source; both are
   * relative to the center of their picture. Without a `fill`, pixels outside are black, and bilinear pixels at the
   * edge are blended with black once.
   */
  rotate(source: Picture, target: Picture, matrix: Affine, interpolation: RotateInterpolation, fill: Rgb | null): void {
    this.#kernels[ROTATE_KERNELS[interpolation]](
      ...[source.address, source.width, source.height, target.address, target.width, target.height],
      ...matrix,
      colourOf(fill),
    );
  }

  /** Takes each pixel of the target from its position in the source: the float32 numbers x and y at address `positions`. */
  mapPixels(
    source: Picture,
    target: Picture,
    positions: number,
    interpolation: 'nearest' | 'bilinear',
    fill: Rgb,
  ): void {
    this.#kernels.mapPixels(
      ...[source.address, source.width, source.height, target.address, target.width * target.height, positions],
      interpolation === 'nearest' ? 1 : 0,
      colourOf(fill),
    );
  }

  /** Applies the Gaussian blur of Pillow, in place. `scratch` is the address of 8 bytes for each pixel of the longer side. */
  boxBlur({ address, width, height }: Picture, sigma: number, scratch: number): void {
    const { radius, whole, part } = boxOf(sigma);
    this.#kernels.boxBlur(address, width, height, radius, whole, part, scratch);
  }

  /** Changes sharpness. A factor of 1 changes nothing, 0 smooths. */
  sharpen(source: Picture, target: Picture, factor: number): void {
    this.#kernels.sharpen(source.address, source.width, source.height, target.address, factor);
  }

  /** Replaces every value by 255 - value, in place, like the methods below. */
  invert({ address, width, height }: Picture): void {
    this.#kernels.invertBytes(address, width * height * 3);
  }

  /** Keeps the upper `bits` bits of every value. */
  posterize({ address, width, height }: Picture, bits: number): void {
    if (bits < 8) this.#kernels.maskBytes(address, width * height * 3, (0xff << (8 - bits)) & 0xff);
  }

  /** Inverts the values of at least `threshold`, 0 to 255. Compares in float32, as torchvision does. */
  solarize({ address, width, height }: Picture, threshold: number): void {
    this.#kernels.solarizeBytes(address, width * height * 3, Math.ceil(Math.fround(threshold)));
  }

  /** Counts the values of each channel: [3, 256]. `scratch` is the address of 3,072 bytes. */
  histogram({ address, width, height }: Picture, scratch: number): Uint32Array {
    const counts = new Uint32Array(this.#memory.buffer, scratch, 768);
    counts.fill(0);
    this.#kernels.countBytes(address, width * height, scratch);
    return counts;
  }

  /** Replaces every value by its entry in a table [3, 256]. `scratch` is the address of 768 bytes. */
  lookUpBytes({ address, width, height }: Picture, table: Uint8Array, scratch: number): void {
    this.#memory.set(table, scratch);
    this.#kernels.lookUpBytes(address, width * height, scratch);
  }

  /**
   * Replaces hue (0 to 179), saturation and value of OpenCV by their entries in a table [3, 256]. `scratch` is the address of
   * {@link HSV_SCRATCH_BYTES} bytes.
   */
  lookUpHsv({ address, width, height }: Picture, table: Uint8Array, scratch: number): void {
    this.#memory.set(table, scratch);
    this.#kernels.lookUpHsv(address, width * height, scratch);
  }

  /**
   * Compresses as JPEG and decompresses, in place. `quantizers` are those of luma and chroma, 64 each, in rows. `tables` is the address of
   * {@link JPEG_TABLE_BYTES} bytes, and `scratch` of {@link jpegScratchBytes}.
   */
  compressJpeg({ address, width, height }: Picture, quantizers: Uint16Array, tables: number, scratch: number): void {
    new Uint16Array(this.#memory.buffer, tables, quantizers.length).set(quantizers);
    this.#kernels.jpegArtifacts(address, width, height, tables, scratch);
  }

  /** Moves channels: channel c of the result is channel `order[c]`. */
  permuteChannels({ address, width, height }: Picture, [red, green, blue]: Rgb): void {
    this.#kernels.permuteChannels(address, width * height, red, green, blue);
  }

  /**
   * Applies a Gaussian blur. `kernel` is the size [x, y], both odd and less than twice the picture. `scratch` is the address of
   * {@link blurScratchBytes} bytes, a multiple of 16.
   */
  blur(source: Picture, target: Picture, kernel: readonly [number, number], sigma: number, scratch: number): void {
    const { width, height } = source;
    const offsets = blurOffsets(width, kernel);
    const weightsX = scratch + offsets.weightsX;
    const weightsY = scratch + offsets.weightsY;
    const [x, y] = [gaussianWeights(kernel[0], sigma), gaussianWeights(kernel[1], sigma)];
    this.#words(weightsX, x.weights);
    this.#words(weightsY, y.weights);
    this.#kernels.blur(
      ...[source.address, width, height, target.address],
      ...[weightsX, kernel[0] >> 1, x.bits, weightsY, kernel[1] >> 1, y.bits],
      ...[scratch + offsets.line, scratch + offsets.ring, offsets.pitch, scratch + offsets.addresses],
    );
  }

  /** Changes brightness in place, like the methods below. A factor of 1 changes nothing. */
  brighten({ address, width, height }: Picture, factor: number): void {
    this.#kernels.scaleBytes(address, width * height * 3, factor, 0);
  }

  /** Changes contrast. A factor of 1 changes nothing. Pillow rounds the luma of each pixel and their mean, torchvision neither. */
  contrast({ address, width, height }: Picture, factor: number, isPillow = false): void {
    const average = this.#kernels.graySum(address, width * height, isPillow ? 1 : 0) / (width * height);
    const mean = isPillow ? Math.floor(average + 0.5) : Math.fround(average);
    this.#kernels.scaleBytes(address, width * height * 3, factor, mean * (1 - factor));
  }

  /** Changes saturation. A factor of 0 gives gray. Pillow rounds the luma, torchvision truncates it. */
  saturate({ address, width, height }: Picture, factor: number, isPillow = false): void {
    this.#kernels.saturate(address, width * height, factor, isPillow ? 1 : 0);
  }

  /** Shifts hues. `turn` is a fraction of the hue circle, -0.5 to 0.5. */
  shiftHue({ address, width, height }: Picture, turn: number): void {
    this.#kernels.shiftHue(address, width * height, turn);
  }

  /**
   * Adds one of `amounts`, 65,536 entries, to every value, drawn by Philox4x32-10 with this key, and clips the sum. `scratch` is the
   * address of {@link NOISE_SCRATCH_BYTES} bytes, a multiple of 16.
   */
  addNoise(
    { address, width, height }: Picture,
    amounts: Int16Array,
    [low, high]: readonly [number, number],
    scratch: number,
  ): void {
    this.#words(scratch + PHILOX_BYTES, amounts);
    this.#kernels.addNoise(address, width * height * 3, scratch + PHILOX_BYTES, scratch, low | 0, high | 0);
  }

  /** Adds the values of a picture, times `weight`, to the float32 sums at address `sums`. */
  addWeighted({ address, width, height }: Picture, weight: number, sums: number): void {
    this.#kernels.addWeighted(sums, address, width * height * 3, weight);
  }

  /**
   * Truncates the sums, then moves every value towards its sum by the share `part`. Both steps are those of Pillow and
   * torchvision.
   */
  blendSums({ address, width, height }: Picture, part: number, sums: number): void {
    this.#kernels.blendSums(address, sums, width * height * 3, part);
  }

  /** Fills `rows` rows of `bytes` bytes, `pitch` bytes apart, by repeating the first 48 bytes at `pattern`. Writes nothing else. */
  fillRows(target: number, pitch: number, rows: number, bytes: number, pattern: number): void {
    this.#kernels.fillRows(target, pitch, rows, bytes, pattern);
  }

  /** Converts a picture to 16-bit words in this layout, without gaps, with the table of 3 x 256 words at address `table`. */
  lookUpWords({ address, width, height }: Picture, table: number, layout: 'nhwc' | 'nchw', target: number): void {
    const plane = layout === 'nchw' ? width * height * 2 : 2;
    this.#kernels.lookUpWords(address, width * height, table, target, plane, layout === 'nchw' ? 2 : 6);
  }

  /** Converts a picture to float32 [height, width, 3]: (byte / 255 - mean) / std, as in the resize kernel. */
  makeFloats({ address, width, height }: Picture, { mean, std }: Normalization, target: number): void {
    const scales = std.map((value) => 1 / (255 * value));
    const biases = mean.map((value, channel) => -value / std[channel]!);
    this.#kernels.makeFloats(address, width * height, target, ...scales, ...biases);
  }

  /**
   * Mixes bytes in place: the bytes at `target` get the share `weight` (in steps of 1/256), and those at `other` the
   * rest. Rounding errors are at most 1 level.
   */
  mixBytes(target: number, other: number, bytes: number, weight: number): void {
    this.#kernels.mixBytes(target, other, bytes, Math.round(weight * 256));
  }

  /** Mixes float32 values in place. Addresses are multiples of 4. */
  mixFloats(target: number, other: number, bytes: number, weight: number): void {
    this.#kernels.mixFloats(target, other, bytes, weight);
  }

  /** Copies `rows` rows of `bytes` bytes. Rows are `pitch` bytes apart in source and target. */
  copyRows(target: number, source: number, pitch: number, rows: number, bytes: number): void {
    this.#kernels.copyRows(target, source, pitch, rows, bytes);
  }

  /** Writes the pattern of a pixel for {@link fillRows} to address `at`. */
  writePattern(pixel: Uint8Array, at: number): void {
    for (let i = 0; i < PATTERN_BYTES; i++) this.#memory[at + i] = pixel[i % pixel.length]!;
  }

  #words(address: number, values: Int16Array): void {
    new Int16Array(this.#memory.buffer, address, values.length).set(values);
  }
}

/** Size of the working memory of {@link EffectKernels.lookUpHsv} in bytes: the table, and its entries as floats, four per hue. */
export const HSV_SCRATCH_BYTES = 768 + 4 * (256 + 256 + 4 * 180);

/** Size of the two tables of {@link EffectKernels.compressJpeg} in bytes. */
export const JPEG_TABLE_BYTES = 2 * 64 * 2;

/** Size of the working memory of {@link EffectKernels.compressJpeg} in bytes: a table and a block, two rows of chroma as words, and the planes. */
export function jpegScratchBytes({ width, height }: Pick<Picture, 'width' | 'height'>): number {
  const blocks = (side: number) => Math.ceil(side / 8) * 8;
  const [chromaWidth, chromaHeight] = [blocks((width + 1) >> 1), blocks((height + 1) >> 1)];
  return 512 + 2 * (chromaWidth * 2 + 32) + blocks(width) * blocks(height) + 2 * chromaWidth * chromaHeight;
}

/** Size of the working memory of {@link EffectKernels.blur} for a picture of this width, in bytes. */
export function blurScratchBytes(width: number, kernel: readonly [number, number]): number {
  return blurOffsets(width, kernel).end;
}

/** Offsets of the parts of a blur's working memory, in bytes. */
function blurOffsets(width: number, [x, y]: readonly [number, number]) {
  const pitch = roundUp(width * 3 * 2, 64);
  const weightsY = roundUp(x + 2, 16);
  const addresses = weightsY + roundUp(y + 2, 16);
  const margin = roundUp(((x >> 1) + 2) * 6, 16);
  const line = addresses + roundUp((Math.max(x, y) + 2) * 4, 16) + margin;
  const ring = line + pitch + margin + 64;
  return { weightsX: 0, weightsY, addresses, line, ring, pitch, end: ring + y * pitch + 64 };
}
