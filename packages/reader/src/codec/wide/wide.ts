/**
 * Decoding to other pixels than 8-bit RGB. Values are those that are stored: 16 bits stay 16 bits, and floats are not
 * scaled. Channels are converted (to luma, to RGB, or to RGB and alpha) only if they are colours.
 */
import { SampleDecodeError } from '@shardtool/base';
import { type ImageKind, probeImage } from '@shardtool/format';
import type { Metadata } from 'sharp';
import { SOURCE_SLACK_BYTES } from '../../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from '../codec.js';
import { asDecodeError } from '../decode-error.js';
import { fromRgb, luma } from '../from-rgb.js';
import { type OwnDecoder, ownDecoder } from '../own-codec.js';
import type { PixelDtype, PixelFormat } from '../pixel-format.js';
import { readPnmValues } from '../pnm.js';
import type { Scratch } from '../scratch.js';
import { loadSharp, SharpCodec } from '../sharp.js';
import { ARRAYS, otherDtype } from './dtype-arrays.js';
import { readTiffValues, type StoredValues, type TiffLayout, tiffLayout } from './tiff-values.js';

/** Decodes images of all kinds to one format, always the whole image. JPEGs of 8 bits have a separate codec. */
export class WideCodec implements ImageCodec {
  readonly name = 'sharp';
  readonly #format: PixelFormat;
  readonly #maxPixels: number;
  readonly #rgb: SharpCodec;
  #kind: ImageKind = 'png';
  #header: ImageHeader = { width: 0, height: 0, reducible: false };
  /** The stored values are integers of more than 8 bits. */
  #isDeep = false;
  #tiff: TiffLayout | null = null;

  constructor(format: PixelFormat, maxPixels: number) {
    this.#format = format;
    this.#maxPixels = maxPixels;
    this.#rgb = new SharpCodec(maxPixels, format.background);
  }

  header(bytes: Uint8Array): ImageHeader {
    try {
      const { kind, width, height, precision } = probeImage(bytes, 'it', this.#maxPixels);
      this.#kind = kind;
      this.#tiff = kind === 'tiff' ? tiffLayout(bytes) : null;
      this.#isDeep = precision === 'narrowed';
      const isNarrowed = this.#isDeep && this.#format.dtype === 'uint8';
      this.#header = { width, height, reducible: false, isNarrowed };
      if (precision === 'refused' && this.#tiff === null)
        throw new SampleDecodeError(
          {},
          'its values have a type or compression that is not supported: store it as .npy',
        );
      return this.#header;
    } catch (error) {
      throw asDecodeError(error as Error);
    }
  }

  async decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Promise<Pixels> {
    const stored = await this.#values(bytes, crop, scratch);
    if ('offset' in stored) return stored;
    return place(converted(stored, this.#format), this.#format, crop, this.#header, scratch);
  }

  async check(bytes: Uint8Array): Promise<number> {
    const tiff = this.#tiff;
    if (tiff !== null) {
      readTiffValues(bytes, tiff);
      return 0;
    }
    const own = ownDecoder(this.#kind);
    if (own !== undefined) {
      own.check(bytes);
      return 0;
    }
    this.#rgb.header(bytes);
    return this.#rgb.check(bytes);
  }

  close(): void {}

  /** The stored values of the whole image, or the pixels of the crop. */
  async #values(bytes: Uint8Array, crop: Rect, scratch: Scratch): Promise<StoredValues | Pixels> {
    const { dtype, channels } = this.#format;
    const tiff = this.#tiff;
    const isByteTiff = tiff !== null && tiff.bits === 8 && tiff.isColour && dtype === 'uint8';
    if (tiff !== null && !isByteTiff) return readTiffValues(bytes, tiff);
    const own = ownDecoder(this.#kind);
    if (own !== undefined) {
      return this.#kind === 'pnm' && this.#isDeep && dtype !== 'uint8' ? readPnmValues(bytes) : this.#own(bytes, own);
    }
    const sharp = await loadSharp();
    const options = { failOn: 'error', ignoreIcc: true, limitInputPixels: this.#maxPixels } as const;
    let metadata: Metadata;
    try {
      metadata = await sharp(bytes, options).metadata();
      const { width, height } = this.#header;
      if (metadata.depth === 'ushort' && dtype !== 'uint8') {
        const space = metadata.space === 'grey16' ? 'grey16' : 'rgb16';
        const image = sharp(bytes, options).pipelineColourspace(space).toColourspace(space).raw({ depth: 'ushort' });
        const { data, info } = await image.toBuffer({ resolveWithObject: true });
        const values = new Uint16Array(Uint8Array.from(data).buffer);
        return { width, height, channels: info.channels, dtype: 'uint16', values, isColour: true };
      }
      if (channels === 4 && metadata.hasAlpha) {
        const image = sharp(bytes, options).toColourspace('srgb').ensureAlpha().raw({ depth: 'uchar' });
        const { data, info } = await image.toBuffer({ resolveWithObject: true });
        return { width, height, channels: info.channels, dtype: 'uint8', values: data, isColour: true };
      }
    } catch (error) {
      throw asDecodeError(error as Error);
    }
    return this.#bytes(bytes, crop, scratch);
  }

  /** All pixels of an image that is decoded without a library. */
  #own(bytes: Uint8Array, decoder: OwnDecoder): StoredValues {
    const { channels, background } = this.#format;
    const { width, height } = this.#header;
    const all = { x: 0, y: 0, width, height };
    const isClear = channels === 4 || background !== null;
    const rgb = decoder.pixels(bytes, all);
    const alpha = isClear ? decoder.alpha(bytes, all) : null;
    const values = alpha === null ? rgb : withAlpha(rgb, alpha, background);
    return { width, height, channels: values.length / (width * height), dtype: 'uint8', values, isColour: true };
  }

  /** The pixels of the crop, from sharp's codec for 8-bit RGB. */
  async #bytes(bytes: Uint8Array, crop: Rect, scratch: Scratch): Promise<Pixels> {
    const { channels, dtype } = this.#format;
    this.#rgb.header(bytes);
    const mark = scratch.mark();
    const pixels = await this.#rgb.decodeRegion(bytes, crop, 1, scratch);
    const { memory } = scratch;
    if (dtype === 'uint8' && channels === 3) return pixels;
    if (dtype === 'uint8' && channels === 1) {
      fromRgb(memory, pixels.offset, pixels.stride, crop, 1);
      return pixels;
    }
    const values = new Uint8Array(crop.width * crop.height * 3);
    for (let y = 0; y < crop.height; y++) {
      const row = pixels.offset + y * pixels.stride;
      values.set(memory.subarray(row, row + 3 * crop.width), y * 3 * crop.width);
    }
    scratch.release(mark);
    const part = {
      width: crop.width,
      height: crop.height,
      channels: 3,
      dtype: 'uint8',
      values,
      isColour: true,
    } as const;
    const target = converted(part, this.#format);
    return place(target, this.#format, { ...crop, x: 0, y: 0 }, crop, scratch);
  }
}

/** RGB and alpha, or RGB over a background (as Pillow's alpha_composite, rounded). */
function withAlpha(rgb: Uint8Array, alpha: Uint8Array, background: PixelFormat['background']): Uint8Array {
  const channels = background === null ? 4 : 3;
  const values = new Uint8Array(alpha.length * channels);
  for (let i = 0; i < alpha.length; i++) {
    const opacity = alpha[i]!;
    for (let c = 0; c < 3; c++) {
      const colour = rgb[3 * i + c]!;
      const shown =
        background === null ? colour : Math.round((colour * opacity + background[c]! * (255 - opacity)) / 255);
      values[i * channels + c] = shown;
    }
    if (channels === 4) values[i * 4 + 3] = opacity;
  }
  return values;
}

/** Values with the channels and the dtype of a format. Throws {@link SampleDecodeError} if that would need a guess. */
function converted(stored: StoredValues, format: PixelFormat): ArrayLike<number> {
  const { dtype, channels, isColour } = stored;
  const values = asDtype(stored, format.dtype);
  if (channels === format.channels) return values;
  const isGray = channels <= 2;
  const isPossible = isColour && [1, 3, 4].includes(format.channels) && (dtype !== 'float32' || channels === 1);
  if (!isPossible) {
    throw new SampleDecodeError(
      {},
      `it has ${channels} channels of ${dtype}, but the option channels is ${format.channels}: set channels to ${channels}`,
    );
  }
  const hasAlpha = channels === 2 || channels === 4;
  const opaque = { uint8: 255, uint16: 65_535, int16: 32_767, float32: 1 }[dtype];
  const pixels = stored.width * stored.height;
  const result = new ARRAYS[format.dtype](pixels * format.channels);
  for (let i = 0; i < pixels; i++) {
    const from = i * channels;
    const to = i * format.channels;
    const red = values[from]!;
    const green = isGray ? red : values[from + 1]!;
    const blue = isGray ? red : values[from + 2]!;
    if (format.channels === 1) result[to] = isGray ? red : luma(red, green, blue);
    else {
      result[to] = red;
      result[to + 1] = green;
      result[to + 2] = blue;
      if (format.channels === 4) result[to + 3] = hasAlpha ? values[from + channels - 1]! : opaque;
    }
  }
  return result;
}

function asDtype({ values, dtype }: StoredValues, wanted: PixelDtype): ArrayLike<number> {
  if (dtype === wanted || wanted === 'float32') return values;
  if (dtype === 'uint16' && wanted === 'uint8') return Uint8Array.from(values, (value) => value >> 8);
  throw otherDtype(dtype, wanted);
}

/** Copies the crop of `image` into scratch memory. */
function place(
  values: ArrayLike<number>,
  { channels, dtype }: PixelFormat,
  crop: Rect,
  image: { readonly width: number },
  scratch: Scratch,
): Pixels {
  const bytes = ARRAYS[dtype].BYTES_PER_ELEMENT;
  const row = crop.width * channels;
  const offset = scratch.allocate(row * crop.height * bytes + SOURCE_SLACK_BYTES);
  const target = new ARRAYS[dtype](scratch.memory.buffer as ArrayBuffer, offset, row * crop.height);
  for (let y = 0; y < crop.height; y++) {
    const from = ((crop.y + y) * image.width + crop.x) * channels;
    for (let i = 0; i < row; i++) target[y * row + i] = values[from + i]!;
  }
  return { offset, stride: row * bytes, warnings: 0 };
}
