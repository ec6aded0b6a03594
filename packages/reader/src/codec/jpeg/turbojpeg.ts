import { SampleDecodeError } from '@shardtool/base';
import { SOURCE_SLACK_BYTES } from '../../kernels/resize.js';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from '../codec.js';
import type { SmallJpeg } from '../crop-index/splice.js';
import { fromRgb } from '../from-rgb.js';
import type { Scratch } from '../scratch.js';
import { cmykToRgb } from './cmyk.js';
import { jpegStructure, MAX_SCANS } from './jpeg-structure.js';
import { type Attempt, attempt, endsWithinPixels } from './premature-end.js';
import type { TurboJpegLibrary } from './turbojpeg-library.js';

/** `enum TJPARAM` of turbojpeg.h. */
const SUBSAMPLING = 4;
const WIDTH = 5;
const HEIGHT = 6;
const COLORSPACE = 8;
const SCAN_LIMIT = 13;
const LOSSLESS = 15;
const SAVE_MARKERS = 25;

/** `enum TJCS`: CMYK. YCCK is the value after it. */
const COLORSPACE_CMYK = 3;
/** `enum TJPF`. */
const FORMAT_RGB = 0;
const FORMAT_GRAY = 6;
const FORMAT_RGBA = 7;
const FORMAT_CMYK = 11;
/** The pixel format for a number of channels. */
const FORMATS = { 1: FORMAT_GRAY, 3: FORMAT_RGB, 4: FORMAT_RGBA } as const;
/** iMCU widths by `enum TJSAMP`: 4:4:4, 4:2:2, 4:2:0, gray, 4:4:0, 4:1:1, 4:4:1. */
const MCU_WIDTHS = [8, 16, 16, 8, 8, 32, 8];

/**
 * Margin around a region, in pixels. Chroma is upsampled from neighbours, which are missing at the edge of a region. So up to 2
 * pixels at an edge inside the image differ from a full decode.
 */
const MARGIN = 2;
const PREMATURE_END = 'Premature end of JPEG file';
/** Prefixes of the texts of libjpeg's warnings (jerror.h, JWRN_*). The error code is useless: it does not change if an error follows a warning. */
const WARNINGS = [
  PREMATURE_END,
  'Corrupt JPEG data',
  'Inconsistent progression sequence',
  'Invalid SOS parameters',
  'Unknown Adobe color transform code',
  'Warning: unknown JFIF revision',
  'Application transferred too many scanlines',
];

interface JpegHeader extends ImageHeader {
  /** Bytes of a decoded pixel: 4 for CMYK and YCCK, otherwise the number of channels of the codec. */
  readonly channels: number;
  /** The colours are four inks. */
  readonly isInk: boolean;
  /** Regions start at multiples of this number of pixels. 0 if only the whole image can be decoded. */
  readonly mcuWidth: number;
}

/** The fast path: decodes regions of JPEGs directly into shared memory, with the TurboJPEG interface of libjpeg-turbo. */
export class TurboJpegCodec implements ImageCodec {
  readonly name = 'turbojpeg';
  readonly #library: TurboJpegLibrary;
  #handle: unknown;
  readonly #channels: 1 | 3 | 4;
  #header: JpegHeader = { width: 0, height: 0, reducible: false, channels: 3, isInk: false, mcuWidth: 0 };
  #memory: Uint8Array | undefined;
  #address = 0;

  /** `channels`: 1 for luma alone, 3 for RGB, 4 for RGB and an opaque alpha. */
  constructor(library: TurboJpegLibrary, channels: 1 | 3 | 4 = 3) {
    this.#library = library;
    this.#channels = channels;
    this.#handle = createHandle(library);
  }

  header(bytes: Uint8Array): ImageHeader {
    const library = this.#library;
    if (library.readHeader(this.#handle, bytes, bytes.length) < 0) {
      const text = library.errorText(this.#handle);
      if (!isWarning(text)) this.#fail(text);
    }
    const width = library.get(this.#handle, WIDTH);
    const height = library.get(this.#handle, HEIGHT);
    if (width < 1 || height < 1) this.#fail('it contains tables but no image');
    const subsampling = library.get(this.#handle, SUBSAMPLING);
    const lossless = library.get(this.#handle, LOSSLESS) > 0;
    const isInk = library.get(this.#handle, COLORSPACE) >= COLORSPACE_CMYK;
    this.#header = {
      width,
      height,
      // Lossless JPEGs have no DCT. They can only be decoded as a whole and at full size.
      reducible: !lossless,
      channels: isInk ? 4 : this.#channels,
      isInk,
      mcuWidth: lossless ? 0 : (MCU_WIDTHS[subsampling] ?? 0),
    };
    return this.#header;
  }

  decodeRegion(bytes: Uint8Array, crop: Rect, reduction: Reduction, scratch: Scratch): Pixels | Promise<Pixels> {
    const { width, height, mcuWidth } = this.#header;
    const all = { x: 0, y: 0, width: Math.ceil(width / reduction), height: Math.ceil(height / reduction) };
    this.#library.setScale(this.#handle, 1, reduction);
    if (mcuWidth === 0) {
      this.#crop(NO_CROP);
      return this.#decode(bytes, crop, all, scratch)!;
    }
    const region = regionAround(crop, all, mcuWidth / reduction);
    this.#crop(region);
    const pixels = this.#decode(bytes, crop, region, scratch);
    if (pixels !== null) return pixels;
    // Sampling factors may be multiples of the usual ones. Then iMCUs are wider than TurboJPEG reports, and the region is misaligned.
    const rows = { ...region, x: 0, width: all.width };
    this.#crop(rows);
    return this.#decode(bytes, crop, rows, scratch)!;
  }

  /**
   * Like {@link decodeRegion}, from a small JPEG of the part that is needed for the crop. Null if it decodes with a warning or there
   * is not enough memory. Call {@link header} again then.
   */
  decodePart({ bytes, part }: SmallJpeg, crop: Rect, reduction: Reduction, scratch: Scratch): Pixels | null {
    const { memory } = scratch;
    const { channels } = this.#header;
    const width = Math.ceil(part.width / reduction);
    const height = Math.ceil(part.height / reduction);
    const stride = strideOf(width * channels);
    if (rowBytes(stride, height) > scratch.available) return null;
    const start = allocateRows(scratch, stride, height);
    this.#library.setScale(this.#handle, 1, reduction);
    this.#crop(NO_CROP);
    if (this.#decompress(bytes, this.#addressOf(memory) + start, stride) !== null) {
      this.#renew();
      return null;
    }
    if (this.#header.isInk) this.#mix(memory, start, stride, width, height);
    const offset = start + (crop.y - part.y / reduction) * stride + (crop.x - part.x / reduction) * this.#channels;
    return { offset, stride, warnings: 0 };
  }

  check(bytes: Uint8Array): number {
    const { width, height, channels, mcuWidth } = this.#header;
    // The entropy decoder processes all data for any columns, so one column of iMCUs is enough.
    const column = mcuWidth === 0 ? width : Math.min(width, mcuWidth);
    const stride = strideOf(column * channels);
    this.#library.setScale(this.#handle, 1, 1);
    this.#crop(mcuWidth === 0 ? NO_CROP : { x: 0, y: 0, width: column, height });
    const text = this.#decompress(bytes, new Uint8Array(stride * height), stride);
    if (text === null) return 0;
    if (!isWarning(text)) this.#fail(text);
    const ended = !text.startsWith(PREMATURE_END) && jpegStructure(bytes).ended;
    if (!ended) this.#fail('premature end: it has no end marker');
    return 1;
  }

  close(): void {
    if (this.#handle !== null) this.#library.destroy(this.#handle);
    this.#handle = null;
  }

  #crop({ x, y, width, height }: Rect): void {
    if (this.#library.setCrop(this.#handle, x, y, width, height) < 0) {
      this.#fail(this.#library.errorText(this.#handle));
    }
  }

  /** Decodes `region`, which contains `crop`. Null if its left edge is not at the start of an iMCU. */
  #decode(bytes: Uint8Array, crop: Rect, region: Rect, scratch: Scratch): Pixels | Promise<Pixels> | null {
    const { memory } = scratch;
    const { channels } = this.#header;
    const stride = strideOf(region.width * channels);
    const start = allocateRows(scratch, stride, region.height);
    const offset = start + (crop.y - region.y) * stride + (crop.x - region.x) * this.#channels;

    const decompress = (source: Uint8Array): string | null => {
      const text = this.#decompress(source, this.#addressOf(memory) + start, stride);
      if (this.#header.isInk) this.#mix(memory, start, stride, region.width, region.height);
      return text;
    };
    const retry = (source: Uint8Array): Attempt => {
      const text = decompress(source);
      if (text !== null && !isWarning(text)) this.#fail(text);
      return attempt(text !== null, memory, offset, stride, crop, this.#channels);
    };

    const text = decompress(bytes);
    if (text === null) return { offset, stride, warnings: 0 };
    if (isMisaligned(text) && region.x > 0) return null;
    if (!isWarning(text)) this.#fail(text);
    return endsWithinPixels(bytes, attempt(true, memory, offset, stride, crop, this.#channels), retry).then((ends) => {
      if (ends) this.#fail('premature end within the requested pixels');
      return { offset, stride, warnings: 1 };
    });
  }

  /** Decodes, and returns the text of the decoder's error or warning, or null. */
  #decompress(bytes: Uint8Array, target: number | Uint8Array, stride: number): string | null {
    const format = this.#header.isInk ? FORMAT_CMYK : FORMATS[this.#channels];
    const result = this.#library.decompress(this.#handle, bytes, bytes.length, target, stride, format);
    return result < 0 ? this.#library.errorText(this.#handle) : null;
  }

  /** Converts the inks of a decoded region to the channels of the codec, in place. */
  #mix(memory: Uint8Array, start: number, stride: number, width: number, height: number): void {
    cmykToRgb(memory, start, stride, width, height, true);
    if (this.#channels !== 3) fromRgb(memory, start, stride, { width, height }, this.#channels);
  }

  /** Throws. Replaces the handle, because after an error it may be in the middle of a header. */
  #fail(text: string): never {
    this.#renew();
    throw new SampleDecodeError({}, `this JPEG cannot be decoded (${text.trim()})`);
  }

  #renew(): void {
    this.close();
    this.#handle = createHandle(this.#library);
  }

  #addressOf(memory: Uint8Array): number {
    if (this.#memory !== memory) {
      this.#memory = memory;
      this.#address = this.#library.address(memory);
    }
    return this.#address;
  }
}

/** Allocates decoded rows, not at a multiple of 32: libjpeg-turbo would bypass the cache, and the resize would read the pixels from memory. */
function allocateRows(scratch: Scratch, stride: number, rows: number): number {
  return scratch.allocate(stride * rows + SOURCE_SLACK_BYTES, ROW_ALIGNMENT, ROW_ALIGNMENT / 2);
}

/** Upper bound for the bytes that {@link allocateRows} takes. */
function rowBytes(stride: number, rows: number): number {
  return stride * rows + SOURCE_SLACK_BYTES + 2 * ROW_ALIGNMENT;
}

const ROW_ALIGNMENT = 32;

const NO_CROP: Rect = { x: 0, y: 0, width: 0, height: 0 };

/** The region to decode for `crop`. It starts at an iMCU, and has a margin on each side that is not an edge of the image. */
export function regionAround(crop: Rect, image: Rect, mcuWidth: number): Rect {
  const left = Math.max(0, crop.x - MARGIN);
  const x = left - (left % mcuWidth);
  const y = Math.max(0, crop.y - MARGIN);
  return {
    x,
    y,
    width: Math.min(image.width, crop.x + crop.width + MARGIN) - x,
    height: Math.min(image.height, crop.y + crop.height + MARGIN) - y,
  };
}

function createHandle(library: TurboJpegLibrary): unknown {
  const handle = library.create();
  if (handle === null) throw new Error('TurboJPEG cannot allocate memory for a decompressor.');
  library.set(handle, SCAN_LIMIT, MAX_SCANS);
  library.set(handle, SAVE_MARKERS, 0);
  return handle;
}

function isWarning(text: string): boolean {
  return WARNINGS.some((warning) => text.startsWith(warning));
}

function isMisaligned(text: string): boolean {
  return text.includes('Unexplained mismatch');
}

function strideOf(bytes: number): number {
  return Math.ceil(bytes / 32) * 32;
}
