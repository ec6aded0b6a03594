import { beginLoading, optionName, SampleDecodeError, sentence } from '@shardtool/base';
import { type ImageKind, probeImage, tiffCoding } from '@shardtool/format';
import type { FailOnOptions, Sharp } from 'sharp';
import type { ImageCodec, ImageHeader, Pixels, Rect, Reduction } from './codec.js';
import { asDecodeError } from './decode-error.js';
import { cmykToRgb } from './jpeg/cmyk.js';
import { jpegStructure, refuseBomb } from './jpeg/jpeg-structure.js';
import { type Attempt, attempt, endsWithinPixels } from './jpeg/premature-end.js';
import { ycbcrToRgb } from './jpeg/ycbcr.js';
import type { Scratch } from './scratch.js';

/** Values of TIFF's tags PhotometricInterpretation and Compression: TIFF 6.0, section 8, and technical note 2 on JPEG. */
const YCBCR = 6;
const UNCOMPRESSED = 1;
const JPEGS: ReadonlySet<number> = new Set([6, 7]);

const NO_PIXELS = sentence`its values are floating-point, signed or longer than 16 bits, but ${optionName('pixelDtype')} is uint8: set it to float32 or int16, or scale them to 8 bits`;

/** Red, green and blue, 0 to 255. */
type Background = readonly [number, number, number] | null;

/** A completely decoded image. */
export interface Decoded {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  /** 3 for RGB, 4 for the inks of CMYK. */
  readonly channels: number;
}

/**
 * Decodes with sharp (libvips): all formats except GIF, asynchronously, and always the whole image. The result is that of Pillow's
 * `convert('RGB')`: no colour profile is applied, and alpha is dropped, not blended.
 */
export class SharpCodec implements ImageCodec {
  readonly name = 'sharp';
  readonly #maxPixels: number;
  readonly #background: Background;
  #kind: ImageKind = 'jpeg';
  #header: ImageHeader = { width: 0, height: 0, reducible: false };

  /** `background`: the colour behind transparent pixels. Null: alpha is dropped. */
  constructor(maxPixels: number, background: Background = null) {
    this.#maxPixels = maxPixels;
    this.#background = background;
  }

  header(bytes: Uint8Array): ImageHeader {
    try {
      const { kind, width, height, precision } = probeImage(bytes, 'it', this.#maxPixels);
      if (precision === 'refused') throw new SampleDecodeError({}, NO_PIXELS);
      this.#kind = kind;
      this.#header = { width, height, reducible: false, isNarrowed: precision === 'narrowed' };
      return this.#header;
    } catch (error) {
      throw asDecodeError(error as Error);
    }
  }

  async decodeRegion(bytes: Uint8Array, crop: Rect, _reduction: Reduction, scratch: Scratch): Promise<Pixels> {
    const { decoded, warnings } = await this.#decode(bytes, crop);
    const { data, width, height, channels } = decoded;
    if (width !== this.#header.width || height !== this.#header.height) {
      const header = `${this.#header.width}x${this.#header.height}`;
      throw new SampleDecodeError({}, `its header declares ${header} pixels, but it has ${width}x${height}`);
    }
    const stride = crop.width * channels;
    const offset = scratch.allocate(stride * crop.height);
    for (let y = 0; y < crop.height; y++) {
      const from = ((crop.y + y) * width + crop.x) * channels;
      scratch.memory.set(data.subarray(from, from + stride), offset + y * stride);
    }
    if (channels === 4) cmykToRgb(scratch.memory, offset, stride, crop.width, crop.height, false);
    return { offset, stride, warnings };
  }

  async check(bytes: Uint8Array): Promise<number> {
    const clean = await this.#attempt(bytes, 'warning');
    if (!(clean instanceof Error)) return 0;
    await this.#demand(bytes, this.#failOn);
    return 1;
  }

  close(): void {}

  /** The whole image, if libvips misinterprets its colours. Null for any other image. Call `header` first. */
  async misreadPixels(bytes: Uint8Array): Promise<Decoded | null> {
    if (this.#kind !== 'tiff') return null;
    const sharp = await loadSharp();
    const colours = await this.#coloursOf(bytes, () => sharp(bytes, { limitInputPixels: this.#maxPixels }));
    if (colours !== 'ycbcr') return null;
    return (await this.#decode(bytes, { x: 0, y: 0, width: this.#header.width, height: this.#header.height })).decoded;
  }

  /** The problems that libvips treats as errors. For a JPEG only a premature end, because its other errors are libjpeg's warnings. */
  get #failOn(): FailOnOptions {
    return this.#kind === 'jpeg' ? 'truncated' : 'error';
  }

  /** Decodes an image, and tolerates damage outside the crop. libvips only reports whether there is damage, so this takes several attempts. */
  async #decode(bytes: Uint8Array, crop: Rect): Promise<{ decoded: Decoded; warnings: number }> {
    const clean = await this.#attempt(bytes, 'warning');
    if (!(clean instanceof Error)) return { decoded: clean, warnings: 0 };
    const whole = await this.#attempt(bytes, this.#failOn);
    if (!(whole instanceof Error)) return { decoded: whole, warnings: 1 };
    if (this.#kind !== 'jpeg') throw asDecodeError(whole);
    const cut = await this.#demand(bytes, 'none');
    const ends = await endsWithinPixels(bytes, attemptOf(true, cut, crop), async (source) => {
      const warned = (await this.#attempt(source, 'warning')) instanceof Error;
      return attemptOf(warned, await this.#demand(source, 'none'), crop);
    });
    if (ends) throw asDecodeError(whole);
    return { decoded: cut, warnings: 1 };
  }

  async #demand(bytes: Uint8Array, failOn: FailOnOptions): Promise<Decoded> {
    const decoded = await this.#attempt(bytes, failOn);
    if (decoded instanceof Error) throw asDecodeError(decoded);
    return decoded;
  }

  async #attempt(bytes: Uint8Array, failOn: FailOnOptions): Promise<Decoded | Error> {
    const sharp = await loadSharp();
    const open = (): Sharp => sharp(bytes, { failOn, ignoreIcc: true, limitInputPixels: this.#maxPixels });
    try {
      const colours = await this.#coloursOf(bytes, open);
      const image =
        colours === 'inks'
          ? open().pipelineColourspace('cmyk').toColourspace('cmyk')
          : opaque(open().toColourspace('srgb'), this.#background);
      // libvips scales colours to 8 bits, but would clip inks of 16 bits, so that most images became black.
      const isDeep = colours === 'inks' && this.#header.isNarrowed === true;
      const raw = image.raw({ depth: isDeep ? 'ushort' : 'uchar' });
      const { data, info } = await raw.toBuffer({ resolveWithObject: true });
      const { width, height, channels } = info;
      if (colours === 'ycbcr') ycbcrToRgb(data, tiffCoding(bytes)!.compression !== UNCOMPRESSED);
      return { data: isDeep ? upperBytes(data) : data, width, height, channels };
    } catch (error) {
      return error as Error;
    }
  }

  async #coloursOf(bytes: Uint8Array, open: () => Sharp): Promise<'inks' | 'ycbcr' | 'rgb'> {
    if (this.#kind === 'tiff') {
      const { space, channels } = await open().metadata();
      if (space === 'cmyk') return 'inks';
      // libvips converts YCbCr itself if it is JPEG-compressed or has subsampled chroma, which it returns as RGBA.
      const { photometric, compression } = tiffCoding(bytes)!;
      return photometric === YCBCR && !JPEGS.has(compression) && channels === 3 ? 'ycbcr' : 'rgb';
    }
    if (this.#kind !== 'jpeg') return 'rgb';
    const structure = jpegStructure(bytes);
    refuseBomb(structure);
    return structure.components === 4 ? 'inks' : 'rgb';
  }
}

/** Returns the upper byte of each value of 16 bits, as Pillow narrows them. */
function upperBytes(data: Buffer): Uint8Array {
  const bytes = new Uint8Array(data.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = data.readUInt16LE(2 * i) >> 8;
  return bytes;
}

function opaque(image: Sharp, background: Background): Sharp {
  if (background === null) return image.removeAlpha();
  const [r, g, b] = background;
  // libvips would make the colour gray behind a gray image.
  return image.pipelineColourspace('srgb').flatten({ background: { r, g, b } });
}

function attemptOf(warned: boolean, { data, width, channels }: Decoded, crop: Rect): Attempt {
  const row = width * channels;
  return attempt(warned, data, crop.y * row + crop.x * channels, row, crop, channels);
}

let loading: Promise<typeof import('sharp').default> | undefined;

/** Loads sharp with one thread and no cache: the workers already are threads, and no image is decoded twice. */
export function loadSharp(): Promise<typeof import('sharp').default> {
  loading ??= load();
  return loading;
}

async function load(): Promise<typeof import('sharp').default> {
  const loaded = beginLoading();
  try {
    const { default: sharp } = await import('sharp');
    sharp.concurrency(1);
    sharp.cache(false);
    return sharp;
  } finally {
    loaded();
  }
}
