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

import { readFileSync } from 'node:fs';
import { gaussianWeights } from './gaussian.js';
import type { KernelMemory } from './kernel-memory.js';
import type { Normalization } from './resize.js';

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

type Kernel = (...numbers: number[]) => number;
type KernelExports = Record<
  | 'blur'
  | 'scaleBytes'
  | 'graySum'
  | 'saturate'
  | 'shiftHue'
  | 'fillRows'
  | 'lookUpWords'
  | 'makeFloats'
  | 'mixBytes'
  | 'mixFloats'
  | 'copyRows'
  | 'rotateNearest'
  | 'rotateBilinear',
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
    compiled ??= new WebAssembly.Module(readFileSync(new URL('./effects.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#memory = new Uint8Array(memory.buffer);
  }

  /** Rotates. `matrix` maps a pixel of the target to its position in the source; both are relative to the center of their picture. */
  rotate(source: Picture, target: Picture, matrix: Affine, interpolation: 'nearest' | 'bilinear', fill: Rgb): void {
    const run = interpolation === 'nearest' ? this.#kernels.rotateNearest : this.#kernels.rotateBilinear;
    const colour = fill[0] | (fill[1] << 8) | (fill[2] << 16);
    run(source.address, source.width, source.height, target.address, target.width, target.height, ...matrix, colour);
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

  /** Changes contrast. A factor of 1 changes nothing. */
  contrast({ address, width, height }: Picture, factor: number): void {
    const mean = this.#kernels.graySum(address, width * height) / (width * height);
    this.#kernels.scaleBytes(address, width * height * 3, factor, Math.fround(mean) * (1 - factor));
  }

  /** Changes saturation. A factor of 0 gives gray. */
  saturate({ address, width, height }: Picture, factor: number): void {
    this.#kernels.saturate(address, width * height, factor);
  }

  /** Shifts hues. `turn` is a fraction of the hue circle, -0.5 to 0.5. */
  shiftHue({ address, width, height }: Picture, turn: number): void {
    this.#kernels.shiftHue(address, width * height, turn);
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

  /** Mixes bytes in place: `weight` (in steps of 1/256) of those at `target`, the rest of those at `other`. Rounding errors are at most 1 level. */
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

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}
