import { OptionError, optionName, SampleDecodeError, sentence } from '@shardtool/base';
import { imageKindOf, isNpy } from '@shardtool/format';
import type { CodecName, ImageCodec, ImageHeader } from './codec.js';
import { GifCodec } from './gif.js';
import { NpyCodec } from './npy.js';
import { SharpCodec } from './sharp.js';
import { TurboJpegCodec } from './turbojpeg.js';
import { loadTurboJpeg } from './turbojpeg-library.js';

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
  readonly npy: NpyCodec;
  readonly gif: GifCodec;
  /** Codec for all other formats. */
  readonly other: SharpCodec;
}

export interface CodecOptions {
  readonly maxPixels: number;
  /** The codec to use for JPEGs. Default: the environment variable SHARDTOOL_CODEC. If it is not set, the fastest codec that works. */
  readonly codec?: CodecName;
}

const FASTEST_FIRST: readonly CodecName[] = ['turbojpeg', 'sharp'];

/** Opens the codecs: for JPEGs the requested one, or the fastest that works. Throws {@link OptionError} if it does not work. */
export async function openCodecs(options: CodecOptions): Promise<OpenCodecs> {
  const other = new SharpCodec(options.maxPixels);
  const forced = options.codec ?? codecFromEnvironment();
  const failures: string[] = [];
  for (const name of forced === undefined ? FASTEST_FIRST : [forced]) {
    try {
      const { codec, source } = open(name, other);
      const reason =
        forced === undefined
          ? `${source}${failures.map((failure) => `; ${failure}`).join('')}`
          : `${source}, as requested`;
      return { choice: { name, reason }, jpeg: codec, npy: new NpyCodec(), gif: new GifCodec(), other };
    } catch (error) {
      failures.push(`${name} does not work: ${(error as Error).message}`);
    }
  }
  throw new OptionError({}, `No JPEG can be decoded here (${failures.join('; ')}).`);
}

/** The codec that {@link openCodecs} would choose. */
export async function chooseCodec(codec?: CodecName): Promise<CodecChoice> {
  const { choice, jpeg } = await openCodecs({ maxPixels: 1, ...(codec && { codec }) });
  jpeg.close();
  return choice;
}

/** Reads the header with the codec for this image format. Throws {@link SampleDecodeError}, also if there are too many pixels. */
export function openImage(
  { jpeg, npy, gif, other }: OpenCodecs,
  bytes: Uint8Array,
  maxPixels: number,
): { readonly codec: ImageCodec; readonly header: ImageHeader } {
  if (bytes.length === 0) throw new SampleDecodeError({}, 'it is empty');
  const isJpeg = bytes[0] === 0xff && bytes[1] === 0xd8;
  const codec = isJpeg ? jpeg : isNpy(bytes) ? npy : imageKindOf(bytes) === 'gif' ? gif : other;
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

function open(name: CodecName, sharp: SharpCodec): { codec: ImageCodec; source: string } {
  switch (name) {
    case 'turbojpeg':
      return { codec: new TurboJpegCodec(loadTurboJpeg()), source: 'regions by libjpeg-turbo' };
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
