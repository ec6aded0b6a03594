/**
 * Passes on images that are not 8-bit RGB: any number of channels, of uint8, uint16, int16 or float32. The steps are planned as for
 * 8-bit RGB, so all formats have the same crops. Resizes of bytes round like Pillow, after each direction. Those of other types are
 * computed in floats, and integers are rounded once at the end, as in torchvision.
 */
import { SampleDecodeError } from '@shardtool/base';
import type { Pixels, Size } from '../codec/codec.js';
import { fullScale, type PixelDtype, type PixelFormat } from '../codec/pixel-format.js';
import type { Scratch } from '../codec/scratch.js';
import type { ExactResizeKernel } from '../kernels/exact-resize.js';
import { type ExactTaps, exactTaps } from '../kernels/exact-taps.js';
import { halfFloatBits } from '../kernels/half-float.js';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import type { Axis } from '../kernels/taps.js';
import { continueImage } from '../transform/borders.js';
import { borderedOf, type Pass } from '../transform/canvas.js';
import type { Effect } from '../transform/effects.js';
import type { ErasedPart } from '../transform/plan.js';
import type { RotateEffect } from '../transform/steps/geometry/rotation.js';
import type { CompiledTransform } from '../transform/transform.js';
import { type Dtype, valueBytes } from '../transform/values.js';
import { normals } from './erase-values.js';
import { inputOf } from './passes.js';

/** Values of pixels, row by row. */
export type Values = Uint8Array | Uint16Array | Int16Array | Float32Array;

const ARRAYS = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  float16: Uint16Array,
  float32: Float32Array,
};
const LIMITS = { uint8: [0, 255], uint16: [0, 65_535], int16: [-32_768, 32_767] } as const;

/** Values at an address of the scratch memory. float16 values are their bits. */
export function valuesAt(memory: Uint8Array, dtype: Dtype, address: number, count: number): Values {
  return new ARRAYS[dtype](memory.buffer as ArrayBuffer, address, count);
}

/** A picture without gaps between its rows. */
interface Picture extends Size {
  readonly address: number;
  readonly values: Values;
}

/** The input of a pass: the address of its first value, and the number of values from one row to the next. */
interface Source {
  readonly address: number;
  readonly stride: number;
}

/** Runs passes for one transform. Belongs to one worker. */
export class WidePasses {
  readonly #scratch: Scratch;
  readonly #transform: CompiledTransform;
  readonly #format: PixelFormat;
  /** The kernel for bytes. */
  readonly #kernel: ExactResizeKernel | null;
  /** Weights of the last axes. Most images of a dataset have few sizes. */
  readonly #taps = new Map<string, ExactTaps>();
  #tapsValues = 0;
  /** The final value for each byte of a channel. */
  readonly #ofBytes = new Float64Array(256);

  /** `kernel` resizes bytes. It is null if values have another dtype. */
  constructor(transform: CompiledTransform, scratch: Scratch, kernel: ExactResizeKernel | null) {
    this.#transform = transform;
    this.#kernel = kernel;
    this.#format = transform.format;
    this.#scratch = scratch;
  }

  /** Like `runPasses`. If `isFinal` is false, the result has the decoded dtype,  [height, width, channels]. */
  run(passes: readonly Pass[], pixels: Pick<Pixels, 'offset' | 'stride'>, target: number, isFinal: boolean): void {
    const { channels, dtype } = this.#format;
    const bytes = valueBytes(dtype);
    let source: Source = { address: pixels.offset, stride: pixels.stride / bytes };
    let picture: Picture | null = null;
    for (const [i, pass] of passes.entries()) {
      if (i > 0) {
        const { x, y } = inputOf(pass);
        const { address, width }: Picture = picture!;
        source = { address: address + (y * width + x) * channels * bytes, stride: width * channels };
      }
      picture = this.#runPass(pass, source);
    }
    if (isFinal) this.#finish(picture!, target);
    else valuesAt(this.#scratch.memory, dtype, target, picture!.values.length).set(picture!.values);
  }

  /** Overwrites rectangles of the finished image at `target`. */
  erase(parts: readonly ErasedPart[], image: Size, target: number): void {
    const { dtype, layout } = this.#transform;
    const { channels } = this.#format;
    const pixels = image.width * image.height;
    const values = valuesAt(this.#scratch.memory, dtype, target, pixels * channels);
    const stored = (value: number) => (dtype === 'float16' ? halfFloatBits(value) : value);
    for (const { rect, value, noise } of parts) {
      const next = value === 'random' ? normals(noise) : null;
      for (let channel = 0; channel < channels; channel++) {
        const one = value === 'random' ? 0 : stored(channelOf(value, channel, channels));
        for (let y = rect.y; y < rect.y + rect.height; y++) {
          for (let x = rect.x; x < rect.x + rect.width; x++) {
            const pixel = y * image.width + x;
            const at = layout === 'nchw' ? channel * pixels + pixel : pixel * channels + channel;
            values[at] = next === null ? one : stored(next());
          }
        }
      }
    }
  }

  #allocate({ width, height }: Size): Picture {
    const { channels, dtype } = this.#format;
    const count = width * height * channels;
    const address = this.#scratch.allocate(count * valueBytes(dtype) + SOURCE_SLACK_BYTES);
    return { width, height, address, values: valuesAt(this.#scratch.memory, dtype, address, count) };
  }

  #runPass(pass: Pass, source: Source): Picture {
    const { channels, dtype } = this.#format;
    const { x, y, border, effects = [] } = pass;
    const whole = this.#allocate(borderedOf(pass));
    const left = border === null ? 0 : border.left;
    const top = border === null ? 0 : border.top;
    if (border !== null) fillAll(whole.values, border.fill, channels);
    if (x.count > 0 && y.count > 0) {
      this.#resize(pass, source, whole, (top * whole.width + left) * channels);
      if (border?.mode !== undefined) {
        const { memory } = this.#scratch;
        continueImage(memory, whole.address, whole, border, border.mode, channels * valueBytes(dtype));
      }
    }
    return effects.reduce((picture, effect) => this.#apply(effect, picture), whole);
  }

  /** Writes the resized image to `whole`, from value `at` on. */
  #resize({ x, y }: Pass, source: Source, whole: Picture, at: number): void {
    const { channels, dtype } = this.#format;
    const { memory } = this.#scratch;
    const mark = this.#scratch.mark();
    const to = { values: whole.values, at, stride: whole.width * channels };
    const isCopy = isIdentity(x) && isIdentity(y);
    if (this.#kernel !== null && !isCopy) {
      const target = { address: whole.address + at, stride: to.stride };
      this.#kernel.resize({ source, target, x, y, channels }, (bytes) => this.#scratch.allocate(bytes));
      this.#scratch.release(mark);
      return;
    }
    const [columns, rows] = [this.#tapsOf(x), this.#tapsOf(y)];
    const height = rows.hi - rows.lo;
    const width = columns.hi - columns.lo;
    const read = valuesAt(memory, dtype, source.address, (height - 1) * source.stride + width * channels);
    const from = { values: read, at: 0, stride: source.stride };
    if (isCopy) {
      copyFlipped(from, to, { x, y, channels });
      return;
    }
    const count = height * x.count * channels;
    const address = this.#scratch.allocate(4 * count);
    const middle = { values: valuesAt(memory, 'float32', address, count), at: 0, stride: x.count * channels };
    alongRows(from, middle, columns, { rows: height, columns: x.count, channels });
    alongColumns(middle, to, rows, { rows: y.count, values: x.count * channels, dtype });
    this.#scratch.release(mark);
  }

  #tapsOf(axis: Axis): ExactTaps {
    const { source, output, first, count, flip, boxStart, boxLength, filter } = axis;
    const key = [source, output, first, count, flip, boxStart, boxLength, filter].join();
    let taps = this.#taps.get(key);
    if (taps === undefined) {
      taps = exactTaps(axis, false);
      if (this.#tapsValues > MOST_TAP_VALUES) {
        this.#taps.clear();
        this.#tapsValues = 0;
      }
      this.#tapsValues += taps.weights.length;
      this.#taps.set(key, taps);
    }
    return taps;
  }

  #apply(effect: Effect, picture: Picture): Picture {
    const { channels } = this.#format;
    if (effect.kind === 'rotate') {
      const turned = this.#allocate(effect.size);
      rotate(picture, turned, effect, this.#format);
      return turned;
    }
    if (effect.kind === 'erase') {
      const { rect, value } = effect;
      for (let y = rect.y; y < rect.y + rect.height; y++) {
        const at = (y * picture.width + rect.x) * channels;
        fillAll(picture.values.subarray(at, at + rect.width * channels), value, channels);
      }
      return picture;
    }
    throw new SampleDecodeError({}, `the effect ${effect.kind} works on 8-bit RGB only`);
  }

  /** Converts to the dtype and the layout of the result. */
  #finish({ values, width, height }: Picture, target: number): void {
    const { dtype, layout, normalization } = this.#transform;
    const { channels } = this.#format;
    const pixels = width * height;
    const result = valuesAt(this.#scratch.memory, dtype, target, pixels * channels);
    if (normalization === null && layout === 'nhwc') {
      result.set(values);
      return;
    }
    const full = fullScale(this.#format.dtype);
    for (let channel = 0; channel < channels; channel++) {
      const scale = normalization === null ? 1 : 1 / (full * normalization.std[channel]!);
      const bias = normalization === null ? 0 : -normalization.mean[channel]! / normalization.std[channel]!;
      let to = layout === 'nchw' ? channel * pixels : channel;
      const step = layout === 'nchw' ? 1 : channels;
      if (values instanceof Uint8Array) {
        for (let byte = 0; byte < 256; byte++) this.#ofBytes[byte] = byte * scale + bias;
        if (dtype === 'float16')
          for (let byte = 0; byte < 256; byte++) this.#ofBytes[byte] = halfFloatBits(this.#ofBytes[byte]!);
        lookUp(values, this.#ofBytes, result, { channel, channels, to, step });
      } else if (dtype === 'float16') {
        for (let from = channel; from < values.length; from += channels, to += step)
          result[to] = halfFloatBits(values[from]! * scale + bias);
      } else {
        for (let from = channel; from < values.length; from += channels, to += step)
          result[to] = values[from]! * scale + bias;
      }
    }
  }
}

/** Converts the bytes of a channel by a table. Bytes have 256 values, which are computed once. */
function lookUp(
  bytes: Uint8Array,
  table: Float64Array,
  result: Values,
  { channel, channels, to, step }: { channel: number; channels: number; to: number; step: number },
): void {
  for (let from = channel; from < bytes.length; from += channels, to += step) result[to] = table[bytes[from]!]!;
}

/** Largest number of weights that are kept: 8 MiB. */
const MOST_TAP_VALUES = 2 ** 20;

/** Rows of values: the index of the first one, and the number of values from one row to the next. */
interface Rows {
  readonly values: Values;
  readonly at: number;
  readonly stride: number;
}

function isIdentity({ source, output, boxLength, boxStart, filter }: Axis): boolean {
  return source === output && boxLength === undefined && boxStart === undefined && filter === undefined;
}

function copyFlipped(
  from: Rows,
  to: Rows,
  { x, y, channels }: { readonly x: Axis; readonly y: Axis; readonly channels: number },
): void {
  for (let row = 0; row < y.count; row++) {
    let read = from.at + (y.flip ? y.count - 1 - row : row) * from.stride;
    let write = to.at + row * to.stride;
    if (!x.flip) {
      to.values.set(from.values.subarray(read, read + x.count * channels), write);
      continue;
    }
    read += (x.count - 1) * channels;
    for (let column = 0; column < x.count; column++, read -= channels, write += channels) {
      for (let channel = 0; channel < channels; channel++) to.values[write + channel] = from.values[read + channel]!;
    }
  }
}

/** Resizes each row. */
function alongRows(
  from: Rows,
  to: Rows,
  { taps, starts, weights }: ExactTaps,
  { rows, columns, channels }: { rows: number; columns: number; channels: number },
): void {
  const { values } = from;
  const result = to.values;
  for (let row = 0; row < rows; row++) {
    const start = from.at + row * from.stride;
    let write = to.at + row * to.stride;
    if (channels === 1) {
      for (let column = 0, k = 0; column < columns; column++, write++) {
        let sum = 0;
        for (let read = start + starts[column]!, end = read + taps; read < end; read++, k++)
          sum += values[read]! * weights[k]!;
        result[write] = sum;
      }
      continue;
    }
    for (let column = 0; column < columns; column++) {
      const first = start + starts[column]! * channels;
      for (let channel = 0; channel < channels; channel++, write++) {
        let sum = 0;
        let read = first + channel;
        for (let k = column * taps; k < (column + 1) * taps; k++, read += channels) sum += values[read]! * weights[k]!;
        result[write] = sum;
      }
    }
  }
}

/** Resizes each column. */
function alongColumns(
  from: Rows,
  to: Rows,
  { taps, starts, weights }: ExactTaps,
  { rows, values: width, dtype }: { rows: number; values: number; dtype: PixelDtype },
): void {
  const sums = new Float64Array(width);
  const { values } = from;
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let k = 0; k < taps; k++) {
      const weight = weights[row * taps + k]!;
      if (weight === 0) continue;
      const read = from.at + (starts[row]! + k) * from.stride;
      for (let i = 0; i < width; i++) sums[i]! += values[read + i]! * weight;
    }
    store(sums, to, row, dtype);
  }
}

function store(sums: Float64Array, to: Rows, row: number, dtype: PixelDtype): void {
  const { values } = to;
  const at = to.at + row * to.stride;
  if (dtype === 'float32') values.set(sums, at);
  else for (let i = 0; i < sums.length; i++) values[at + i] = rounded(sums[i]!, dtype);
}

function rounded(value: number, dtype: Exclude<PixelDtype, 'float32'>): number {
  const [low, high] = LIMITS[dtype];
  return Math.max(low, Math.min(high, Math.round(value)));
}

function channelOf(value: number | readonly number[], channel: number, channels: number): number {
  if (typeof value === 'number') return value;
  return value.length === channels ? value[channel]! : value[0]!;
}

function fillAll(values: Values, fill: number | readonly number[], channels: number): void {
  for (let channel = 0; channel < channels; channel++) {
    const value = channelOf(fill, channel, channels);
    for (let i = channel; i < values.length; i += channels) values[i] = value;
  }
}

/** Rotates (torchvision.transforms.v2.functional `affine_image` for tensors): pixels outside the source are mixed with the fill. */
function rotate(
  from: Picture,
  to: Picture,
  { matrix: [a, b, c, d, e, f], interpolation, fill }: RotateEffect,
  { channels, dtype }: PixelFormat,
): void {
  const fills = Array.from({ length: channels }, (_, channel) => channelOf(fill ?? 0, channel, channels));
  const isNearest = interpolation === 'nearest';
  const offset = isNearest ? 0 : -0.5;
  const at = (row: number, column: number, channel: number) =>
    from.values[(row * from.width + column) * channels + channel]!;
  let write = 0;
  for (let row = 0; row < to.height; row++) {
    const y = row - (to.height - 1) / 2;
    for (let column = 0; column < to.width; column++, write += channels) {
      const x = column - (to.width - 1) / 2;
      const fromX = a * x + b * y + c + from.width / 2 + offset;
      const fromY = d * x + e * y + f + from.height / 2 + offset;
      const [left, upper] = [Math.floor(fromX), Math.floor(fromY)];
      if (isNearest) {
        const isInside = left >= 0 && upper >= 0 && left < from.width && upper < from.height;
        for (let channel = 0; channel < channels; channel++)
          to.values[write + channel] = isInside ? at(upper, left, channel) : fills[channel]!;
        continue;
      }
      for (let channel = 0; channel < channels; channel++) {
        let sum = 0;
        let inside = 0;
        for (let corner = 0; corner < 4; corner++) {
          const [u, v] = [left + (corner & 1), upper + (corner >> 1)];
          if (u < 0 || v < 0 || u >= from.width || v >= from.height) continue;
          const weight = (1 - Math.abs(u - fromX)) * (1 - Math.abs(v - fromY));
          sum += at(v, u, channel) * weight;
          inside += weight;
        }
        // With a fill, torchvision weighs pixels at the edge twice: once because there are zeros beyond it, and once by
        // the mask of the fill.
        const value = fill === null ? sum : sum * inside + (1 - inside) * fills[channel]!;
        to.values[write + channel] = dtype === 'float32' ? value : rounded(value, dtype);
      }
    }
  }
}
