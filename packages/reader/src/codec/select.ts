import { OptionError, optionName, SampleDecodeError, sentence } from '@shardtool/base';
import { imageKindOf, isNpy } from '@shardtool/format';
import type { CodecName, ImageCodec, ImageHeader } from './codec.js';
import { TurboJpegCodec } from './jpeg/turbojpeg.js';
import { loadTurboJpeg } from './jpeg/turbojpeg-library.js';
import { NpyCodec } from './npy.js';
import { OwnCodec, ownDecoder } from './own-codec.js';
import { isRgb, type PixelFormat, RGB } from './pixel-format.js';
import { SharpCodec } from './sharp.js';
import { WideCodec } from './wide/wide.js';
import { WideNpyCodec } from './wide/wide-npy.js';

/** The codec for JPEGs and why it was chosen, for loader.info() and bench. The codecs for other images are the same on every machine. */
export interface CodecChoice {
  readonly name: CodecName;
  /** The reason, as a sentence. */
  readonly reason: string;
}

export interface OpenCodecs {
  readonly choice: CodecChoice;
  readonly jpeg: ImageCodec;
  /** Codec for uncompressed images. */
  readonly npy: NpyCodec | WideNpyCodec;
  /** Codec for the kinds that are decoded without a library, such as GIF. */
  readonly own: ImageCodec;
  /** Codec for all other formats. */
  readonly other: ImageCodec;
}

export interface CodecOptions {
  readonly maxPixels: number;
  /** The codec to use for JPEGs. Default: the environment variable SHARDTOOL_CODEC. If it is not set, the fastest codec that works. */
  readonly codec?: CodecName;
  /** The format to which images are decoded. Default: 8-bit RGB. */
  readonly format?: PixelFormat;
}

const FASTEST_FIRST: readonly CodecName[] = ['turbojpeg', 'sharp'];

/** Opens the codecs: for JPEGs the requested one, or the fastest that works. Throws {@link OptionError} if it does not work. */
export async function openCodecs(options: CodecOptions): Promise<OpenCodecs> {
  const { format = RGB, maxPixels } = options;
  const rest = codecsOf(format, maxPixels);
  const forced = options.codec ?? codecFromEnvironment();
  const failures: string[] = [];
  for (const name of namesFor(format, forced)) {
    try {
      const { codec, source } = open(name, rest.other, format);
      const reason =
        forced === undefined
          ? `${source}${failures.map((failure) => `; ${failure}`).join('')}`
          : `${source}, as requested`;
      return { choice: { name, reason }, jpeg: codec, ...rest };
    } catch (error) {
      failures.push(`${name} does not work: ${(error as Error).message}`);
    }
  }
  throw new OptionError({}, `No JPEG can be decoded here (${failures.join('; ')}).`);
}

/** The codec that {@link openCodecs} would choose. */
export async function chooseCodec(format: PixelFormat = RGB): Promise<CodecChoice> {
  const { choice, jpeg } = await openCodecs({ maxPixels: 1, format });
  jpeg.close();
  return choice;
}

/** Reads the header with the codec for this image format. Throws {@link SampleDecodeError}, also if there are too many pixels. */
export function openImage(
  { jpeg, npy, own, other }: OpenCodecs,
  bytes: Uint8Array,
  maxPixels: number,
): { readonly codec: ImageCodec; readonly header: ImageHeader } {
  if (bytes.length === 0) throw new SampleDecodeError({}, 'it is empty');
  const isJpeg = bytes[0] === 0xff && bytes[1] === 0xd8;
  const codec = isJpeg ? jpeg : isNpy(bytes) ? npy : ownDecoder(imageKindOf(bytes)) ? own : other;
  const header = codec.header(bytes);
  checkPixels(header, maxPixels);
  return { codec, header };
}

/** Throws {@link SampleDecodeError} if an image has more than `maxPixels` pixels. */
export function checkPixels({ width, height }: ImageHeader, maxPixels: number): void {
  if (width * height <= maxPixels) return;
  throw new SampleDecodeError(
    {},
    sentence`it has ${width}x${height} pixels, more than the limit of ${maxPixels}: raise ${optionName('maxPixels')} if this size is correct`,
  );
}

/** TurboJPEG makes only bytes of 1, 3 or 4 channels. */
function namesFor({ channels, dtype }: PixelFormat, forced: CodecName | undefined): readonly CodecName[] {
  if (dtype !== 'uint8' || ![1, 3, 4].includes(channels)) return ['sharp'];
  return forced === undefined ? FASTEST_FIRST : [forced];
}

/** The codecs of a format, except that for JPEGs. */
function codecsOf(format: PixelFormat, maxPixels: number): Pick<OpenCodecs, 'npy' | 'own' | 'other'> {
  if (isRgb(format) && format.background === null)
    return { npy: new NpyCodec(), own: new OwnCodec(), other: new SharpCodec(maxPixels) };
  const wide = new WideCodec(format, maxPixels);
  return { npy: isRgb(format) ? new NpyCodec() : new WideNpyCodec(format), own: wide, other: wide };
}

function open(name: CodecName, sharp: ImageCodec, { channels }: PixelFormat): { codec: ImageCodec; source: string } {
  switch (name) {
    case 'turbojpeg':
      return { codec: new TurboJpegCodec(loadTurboJpeg(), channels as 1 | 3 | 4), source: 'regions by libjpeg-turbo' };
    case 'sharp':
      return { codec: sharp, source: 'whole images by sharp' };
  }
}

function codecFromEnvironment(): CodecName | undefined {
  const name = process.env.SHARDTOOL_CODEC;
  if (name === undefined || name === '') return undefined;
  const known = FASTEST_FIRST.find((codec) => codec === name);
  if (known !== undefined) return known;
  throw new OptionError({}, `SHARDTOOL_CODEC is "${name}". Set it to one of ${FASTEST_FIRST.join(', ')}.`);
}
