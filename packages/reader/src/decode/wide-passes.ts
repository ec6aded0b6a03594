/**
 * Passes on images that are not 8-bit RGB: any number of channels, of uint8, uint16, int16 or float32. The steps are planned as for
 * 8-bit RGB, so all formats have the same crops. Resizes of bytes round like Pillow, after each direction. Those of other types are
 * computed in floats, and integers are rounded once at the end, as in torchvision.
 */
import { SampleDecodeError } from '@shardtool/base';
import type { Pixels, Size } from '../codec/codec.js';
import { fullScale, type PixelFormat } from '../codec/pixel-format.js';
import type { Scratch } from '../codec/scratch.js';
import { halfFloatBits } from '../kernels/half-float.js';
import type { PixelResizeKernel } from '../kernels/pixel-resize.js';
import { SOURCE_SLACK_BYTES } from '../kernels/resize.js';
import { type Axis, sourceRange } from '../kernels/taps.js';
import { continueImage } from '../transform/borders.js';
import { borderedOf, type Pass } from '../transform/canvas.js';
import type { Effect } from '../transform/effects.js';
import type { ErasedPart } from '../transform/plan.js';
import type { CompiledTransform } from '../transform/transform.js';
import { valueBytes } from '../transform/values.js';
import { normals } from './erase-values.js';
import { inputOf } from './passes.js';
import { channelOf, copyFlipped, fillAll, lookUp, type Picture, rotate, valuesAt } from './wide-values.js';

/** A picture in scratch memory. */
interface PlacedPicture extends Picture {
  readonly address: number;
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
  readonly #kernel: PixelResizeKernel;
  /** The final value for each byte of a channel. */
  readonly #ofBytes = new Float64Array(256);

  /** `kernel` resizes values of the dtype of the transform's format. */
  constructor(transform: CompiledTransform, scratch: Scratch, kernel: PixelResizeKernel) {
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
    let picture: PlacedPicture | null = null;
    for (const [i, pass] of passes.entries()) {
      if (i > 0) {
        const { x, y } = inputOf(pass);
        const { address, width }: PlacedPicture = picture!;
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

  #allocate({ width, height }: Size): PlacedPicture {
    const { channels, dtype } = this.#format;
    const count = width * height * channels;
    const address = this.#scratch.allocate(count * valueBytes(dtype) + SOURCE_SLACK_BYTES);
    return { width, height, address, values: valuesAt(this.#scratch.memory, dtype, address, count) };
  }

  #runPass(pass: Pass, source: Source): PlacedPicture {
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
  #resize({ x, y }: Pass, source: Source, whole: PlacedPicture, at: number): void {
    const { channels, dtype } = this.#format;
    const bytes = valueBytes(dtype);
    const to = { values: whole.values, at, stride: whole.width * channels };
    if (isIdentity(x) && isIdentity(y)) {
      const [columns, rows] = [sourceRange(x), sourceRange(y)];
      const count = (rows.hi - rows.lo - 1) * source.stride + (columns.hi - columns.lo) * channels;
      const values = valuesAt(this.#scratch.memory, dtype, source.address, count);
      copyFlipped({ values, at: 0, stride: source.stride }, to, { x, y, channels });
      return;
    }
    const mark = this.#scratch.mark();
    const from = { address: source.address, stride: source.stride * bytes };
    const target = { address: whole.address + at * bytes, stride: to.stride * bytes };
    this.#kernel.resize({ source: from, target, x, y, channels }, (size) => this.#scratch.allocate(size));
    this.#scratch.release(mark);
  }

  #apply(effect: Effect, picture: PlacedPicture): PlacedPicture {
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
  #finish({ values, width, height }: PlacedPicture, target: number): void {
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

function isIdentity({ source, output, boxLength, boxStart, filter }: Axis): boolean {
  return source === output && boxLength === undefined && boxStart === undefined && filter === undefined;
}
