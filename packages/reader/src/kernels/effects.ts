/**
 * Rotation, blur, colour and the like, on 8-bit RGB inside a shared WebAssembly.Memory: the wrapper around
 * assembly/effects/kernel.ts. Pictures are [height, width, 3] bytes without gaps, followed by {@link PICTURE_SLACK_BYTES} that may
 * be read and, in targets, written.
 *
 * Against torchvision 0.29's v2.functional on the same uint8 tensors: bilinear rotation, blur, brightness, contrast,
 * saturation, hue and grayscale are at most 1 level off, each by itself. Erasing is equal, and so is nearest rotation, except
 * for places that fall between two pixels (less than 0.2 % of them). Changes of colour that follow each other add up:
 * test/transform-torchvision.test.ts has four.
 */

import { readFileSync } from 'node:fs';
import { gaussianWeights } from './gaussian.js';
import type { KernelMemory } from './kernel-memory.js';
import type { Normalization } from './resize.js';

/** Bytes behind a picture that kernels touch. */
export const PICTURE_SLACK_BYTES = 64;

/** A picture in memory. `address` is in bytes from the start of the memory. */
export interface Picture {
  readonly address: number;
  readonly width: number;
  readonly height: number;
}

/** Red, green and blue, 0 to 255. */
type Rgb = readonly [number, number, number];

/** From (x, y) to (a x + b y + c, d x + e y + f). */
type Affine = readonly [number, number, number, number, number, number];

type Kernel = (...numbers: number[]) => number;
type KernelExports = Record<
  | 'blur'
  | 'scaleBytes'
  | 'graySum'
  | 'saturate'
  | 'turnHue'
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

/** Bytes of a repeated pattern: whole pixels of 1, 2 or 4 bytes a channel. */
const PATTERN_BYTES = 48;

let compiled: WebAssembly.Module | undefined;

/** The kernels of one worker. */
export class EffectKernels {
  readonly #memory: Uint8Array;
  readonly #kernels: KernelExports;

  constructor(memory: KernelMemory) {
    compiled ??= new WebAssembly.Module(readFileSync(new URL('./effects.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(compiled, { env: { memory } }).exports as KernelExports;
    this.#memory = new Uint8Array(memory.buffer);
  }

  /** `matrix` takes a pixel of the target, counted from its middle, to its place counted from the middle of the source. */
  rotate(source: Picture, target: Picture, matrix: Affine, interpolation: 'nearest' | 'bilinear', fill: Rgb): void {
    const run = interpolation === 'nearest' ? this.#kernels.rotateNearest : this.#kernels.rotateBilinear;
    const colour = fill[0] | (fill[1] << 8) | (fill[2] << 16);
    run(source.address, source.width, source.height, target.address, target.width, target.height, ...matrix, colour);
  }

  /** `kernel` is [x, y], odd and less than twice the picture; `scratch` has {@link blurScratchBytes} from a multiple of 16 on. */
  blur(source: Picture, target: Picture, kernel: readonly [number, number], sigma: number, scratch: number): void {
    const { width, height } = source;
    const places = placeBlur(width, kernel);
    const weightsX = scratch + places.weightsX;
    const weightsY = scratch + places.weightsY;
    const [x, y] = [gaussianWeights(kernel[0], sigma), gaussianWeights(kernel[1], sigma)];
    this.#words(weightsX, x.weights);
    this.#words(weightsY, y.weights);
    this.#kernels.blur(
      ...[source.address, width, height, target.address],
      ...[weightsX, kernel[0] >> 1, x.bits, weightsY, kernel[1] >> 1, y.bits],
      ...[scratch + places.line, scratch + places.ring, places.pitch, scratch + places.places],
    );
  }

  /** In place, like all that follow. `factor` 1 changes nothing. */
  brighten({ address, width, height }: Picture, factor: number): void {
    this.#kernels.scaleBytes(address, width * height * 3, factor, 0);
  }

  contrast({ address, width, height }: Picture, factor: number): void {
    const mean = this.#kernels.graySum(address, width * height) / (width * height);
    this.#kernels.scaleBytes(address, width * height * 3, factor, Math.fround(mean) * (1 - factor));
  }

  /** A factor of 0 leaves gray. */
  saturate({ address, width, height }: Picture, factor: number): void {
    this.#kernels.saturate(address, width * height, factor);
  }

  /** `turn` is a part of the circle, -0.5 to 0.5. */
  turnHue({ address, width, height }: Picture, turn: number): void {
    this.#kernels.turnHue(address, width * height, turn);
  }

  /** Repeats the first 48 bytes at `pattern` in `rows` rows of `bytes` bytes, `pitch` bytes apart, and writes nothing else. */
  fillRows(target: number, pitch: number, rows: number, bytes: number, pattern: number): void {
    this.#kernels.fillRows(target, pitch, rows, bytes, pattern);
  }

  /** The table of 3 x 256 words at `table` makes of a picture words in this layout, without gaps. */
  lookUpWords({ address, width, height }: Picture, table: number, layout: 'nhwc' | 'nchw', target: number): void {
    const plane = layout === 'nchw' ? width * height * 2 : 2;
    this.#kernels.lookUpWords(address, width * height, table, target, plane, layout === 'nchw' ? 2 : 6);
  }

  /** Makes of a picture float32 [height, width, 3], (byte / 255 - mean) / std as the resize kernel does. */
  makeFloats({ address, width, height }: Picture, { mean, std }: Normalization, target: number): void {
    const scales = std.map((value) => 1 / (255 * value));
    const biases = mean.map((value, channel) => -value / std[channel]!);
    this.#kernels.makeFloats(address, width * height, target, ...scales, ...biases);
  }

  /** `weight` (in steps of 1/256) of the bytes at `target`, the rest of those at `other`, rounded: at most 1 level off. */
  mixBytes(target: number, other: number, bytes: number, weight: number): void {
    this.#kernels.mixBytes(target, other, bytes, Math.round(weight * 256));
  }

  /** The same for float32; addresses are multiples of 4. */
  mixFloats(target: number, other: number, bytes: number, weight: number): void {
    this.#kernels.mixFloats(target, other, bytes, weight);
  }

  /** Copies `rows` rows of `bytes` bytes, `pitch` bytes apart in both places. */
  copyRows(target: number, source: number, pitch: number, rows: number, bytes: number): void {
    this.#kernels.copyRows(target, source, pitch, rows, bytes);
  }

  /** Lays a pixel's bytes down again and again, for {@link fillRows}. */
  layPattern(pixel: Uint8Array, at: number): void {
    for (let i = 0; i < PATTERN_BYTES; i++) this.#memory[at + i] = pixel[i % pixel.length]!;
  }

  #words(address: number, values: Int16Array): void {
    new Int16Array(this.#memory.buffer, address, values.length).set(values);
  }
}

/** Working memory of {@link EffectKernels.blur} for a picture of this width. */
export function blurScratchBytes(width: number, kernel: readonly [number, number]): number {
  return placeBlur(width, kernel).end;
}

/** Where the parts of a blur's working memory lie. */
function placeBlur(width: number, [x, y]: readonly [number, number]) {
  const pitch = roundUp(width * 3 * 2, 64);
  const weightsY = roundUp(x + 2, 16);
  const places = weightsY + roundUp(y + 2, 16);
  const margin = roundUp(((x >> 1) + 2) * 6, 16);
  const line = places + roundUp((Math.max(x, y) + 2) * 4, 16) + margin;
  const ring = line + pitch + margin + 64;
  return { weightsX: 0, weightsY, places, line, ring, pitch, end: ring + y * pitch + 64 };
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}
