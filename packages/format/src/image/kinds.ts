import { heifBrand, readAvifHeader } from './avif.js';
import { isBmp, readBmpHeader } from './bmp.js';
import { readGifHeader } from './gif.js';
import { fourCC, type HeaderReader, u16be, u32be } from './header.js';
import { readJpegHeader } from './jpeg.js';
import { readPngHeader } from './png.js';
import { isPnm, readPnmHeader } from './pnm.js';
import { REFUSED } from './refused.js';
import { stripGif } from './strip/gif.js';
import { stripJpeg } from './strip/jpeg.js';
import { stripPng } from './strip/png.js';
import { stripWebp } from './strip/webp.js';
import { readTiffHeader } from './tiff.js';
import { readWebpHeader } from './webp.js';

/** The properties of one kind of image. Decoding belongs to the codecs. */
interface ImageKindEntry {
  /** Extensions and field names of such images. The first one is the canonical field name. */
  readonly names: readonly string[];
  /** Media type, as the header Content-Type has it. */
  readonly mediaType: string;
  /** Whether a file that begins with these bytes (four or more) is such an image. */
  begins(bytes: Uint8Array): boolean;
  readonly readHeader: HeaderReader;
  /** The image without metadata except `exif`; null if it is damaged. Absent if the image would have to be encoded again. */
  strip?(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array | null;
}

const PNG = fourCC('\x89PNG');
const PNG_END = fourCC('\r\n\x1a\n');
const GIF = fourCC('GIF8');
const RIFF = fourCC('RIFF');
const WEBP = fourCC('WEBP');
const TIFF_LITTLE = fourCC('II*\0');
const TIFF_BIG = fourCC('MM\0*');

/** The kinds of images that are packed and decoded, in the order in which a file is checked against them. */
const KINDS = {
  jpeg: {
    names: ['jpg', 'jpeg', 'jpe', 'jfif', 'mpo'],
    mediaType: 'image/jpeg',
    begins: (bytes: Uint8Array) => u16be(bytes, 0) === 0xffd8 && bytes[2] === 0xff,
    readHeader: readJpegHeader,
    strip: stripJpeg,
  },
  png: {
    names: ['png', 'apng'],
    mediaType: 'image/png',
    begins: (bytes: Uint8Array) => u32be(bytes, 0) === PNG && u32be(bytes, 4) === PNG_END,
    readHeader: readPngHeader,
    strip: stripPng,
  },
  gif: {
    names: ['gif'],
    mediaType: 'image/gif',
    begins: (bytes: Uint8Array) =>
      u32be(bytes, 0) === GIF && (bytes[4] === 0x37 || bytes[4] === 0x39) && bytes[5] === 0x61,
    readHeader: readGifHeader,
    strip: stripGif,
  },
  webp: {
    names: ['webp'],
    mediaType: 'image/webp',
    begins: (bytes: Uint8Array) => u32be(bytes, 0) === RIFF && u32be(bytes, 8) === WEBP,
    readHeader: readWebpHeader,
    strip: stripWebp,
  },
  tiff: {
    names: ['tif', 'tiff'],
    mediaType: 'image/tiff',
    begins: (bytes: Uint8Array) => u32be(bytes, 0) === TIFF_LITTLE || u32be(bytes, 0) === TIFF_BIG,
    readHeader: readTiffHeader,
  },
  avif: {
    names: ['avif'],
    mediaType: 'image/avif',
    begins: (bytes: Uint8Array) => heifBrand(bytes) === 'avif',
    readHeader: readAvifHeader,
  },
  bmp: {
    names: ['bmp', 'dib'],
    mediaType: 'image/bmp',
    begins: isBmp,
    readHeader: readBmpHeader,
  },
  pnm: {
    names: ['ppm', 'pgm', 'pbm', 'pnm'],
    mediaType: 'image/x-portable-anymap',
    begins: isPnm,
    readHeader: readPnmHeader,
  },
};

export type ImageKind = keyof typeof KINDS;

const ENTRIES: Readonly<Record<ImageKind, ImageKindEntry>> = KINDS;
const BY_KIND = Object.entries(ENTRIES) as readonly (readonly [ImageKind, ImageKindEntry])[];
const KIND_OF_FIELD: ReadonlyMap<string, ImageKind> = new Map(
  BY_KIND.flatMap(([kind, { names }]) => names.map((name) => [name, kind] as const)),
);

/** The number of bytes that suffice to recognise a file: an AVIF file has its brand within them. */
export const SIGNATURE_BYTES = 64;

/** The kind of image that begins with these bytes; undefined if it is not a supported kind. */
export function imageKindOf(bytes: Uint8Array): ImageKind | undefined {
  if (bytes.length < 4) return undefined;
  for (let i = 0; i < BY_KIND.length; i++) if (BY_KIND[i]![1].begins(bytes)) return BY_KIND[i]![0];
  return undefined;
}

/** `image/jpeg` for a JPEG. */
export function mediaTypeOf(kind: ImageKind): string {
  return ENTRIES[kind].mediaType;
}

/** Reads the header of an image of this kind. */
export function readHeaderOf(kind: ImageKind, bytes: Uint8Array): ReturnType<HeaderReader> {
  return ENTRIES[kind].readHeader(bytes);
}

/** The image without its metadata except `exif`; null if it is damaged or would have to be encoded again. */
export function stripOf(kind: ImageKind, bytes: Uint8Array, exif: Uint8Array | null): Uint8Array | null {
  return ENTRIES[kind].strip?.(bytes, exif) ?? null;
}

/** Extensions of images that are rejected with an error that names the kind, instead of being skipped. */
const REFUSED_EXTENSIONS: ReadonlySet<string> = new Set(REFUSED.flatMap(({ names }) => names));

/** `jpg` for a JPEG, `tif` for a TIFF: the canonical field name. */
export function fieldOfKind(kind: ImageKind): string {
  return ENTRIES[kind].names[0]!;
}

/** The image kind that a field's name implies; undefined for other fields. `seg.png` is not an image field. */
export function kindOfField(field: string): ImageKind | undefined {
  return KIND_OF_FIELD.get(field);
}

/** Whether a field of this name holds the image of its sample. `seg.png` does not: it belongs to an image. */
export function isImageField(field: string): boolean {
  return KIND_OF_FIELD.has(field);
}

/** Whether a field is named like an image or an array: `jpg`, `seg.png` and `left.npy`. */
export function isNamedAsImage(field: string): boolean {
  const extension = field.slice(field.lastIndexOf('.') + 1);
  return isImageField(extension) || extension === 'npy';
}

/**
 * The fields of a sample that may be its image, in the order in which they are tried: those of an image kind, BMP and
 * PNM last, or else `npy`, an uncompressed image.
 */
export function imageFields(fields: Iterable<string>): string[] {
  const names = [...fields];
  const images = names.filter(isImageField).sort((a, b) => Number(isLate(a)) - Number(isLate(b)) || (a < b ? -1 : 1));
  return images.length > 0 ? images : names.filter((name) => name === 'npy');
}

/** Earlier builds did not decode these kinds, so another image of the same sample comes first. */
const LATE_KINDS: ReadonlySet<ImageKind | undefined> = new Set<ImageKind>(['bmp', 'pnm']);

function isLate(field: string): boolean {
  return LATE_KINDS.has(kindOfField(field));
}

/** Whether a file with this extension (lower case, without the dot) is an image, supported or not. */
export function isImageExtension(extension: string): boolean {
  return KIND_OF_FIELD.has(extension) || REFUSED_EXTENSIONS.has(extension);
}
