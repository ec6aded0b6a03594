import {
  type Directory,
  firstDirectory,
  IMAGE_LENGTH,
  IMAGE_WIDTH,
  orientationTag,
  tagBytes,
  tagShorts,
  tagValue,
} from './exif.js';
import type { HeaderTrouble, ImageHeader, Precision } from './header.js';
import { orientationOf, xmpOrientation } from './orientation.js';

/** XMP specification, part 3, 1.1.4. */
const XMP = 700;

const BITS_PER_SAMPLE = 258;
const PHOTOMETRIC = 262;
const SAMPLE_FORMAT = 339;
/** Values of SampleFormat for unsigned integers and for unspecified ones. */
const PIXEL_FORMATS: ReadonlySet<number> = new Set([1, 4]);
/** If an image has more channels, only the first ones are checked. */
const MOST_CHANNELS = 8;
const COMPRESSION = 259;
/**
 * Compressions that the libtiff of the prebuilt sharp decodes (tiff.h): none, CCITT, LZW, JPEG, Deflate, NeXT, PackBits,
 * ThunderScan, SGILog, WebP.
 */
const DECODED: ReadonlySet<number> = new Set([
  1, 2, 3, 4, 5, 7, 8, 32766, 32771, 32773, 32809, 32946, 34676, 34677, 50001,
]);

/** Numbers of bits per sample that libvips reads. */
const READ_BITS: ReadonlySet<number> = new Set([1, 2, 4, 8, 16, 32, 64]);
/** Values of PhotometricInterpretation: L*a*b* as in CIE, ICC and ITU. libvips reads only the first, with 16 bits. */
const CIE_LAB = 8;
const OTHER_LABS: ReadonlySet<number> = new Set([9, 10]);

/** How to interpret the values of a TIFF. */
export interface TiffCoding {
  /** The meaning of the channels: 2 for RGB, 6 for YCbCr; -1 if the file does not specify it. */
  readonly photometric: number;
  /** 1 for none. */
  readonly compression: number;
}

/** The coding of the first image; null if it cannot be read. TIFF 6.0, section 8. */
export function tiffCoding(bytes: Uint8Array): TiffCoding | null {
  const directory = firstDirectory(bytes, 0, bytes.length);
  if (directory === null) return null;
  const compression = tagValue(bytes, directory, COMPRESSION);
  return {
    photometric: tagValue(bytes, directory, PHOTOMETRIC),
    compression: compression === -1 ? 1 : compression,
  };
}

/** Whether the first image of a TIFF is compressed in a way that no codec decodes, such as Zstandard or LZMA. */
export function isOfOtherCompression(bytes: Uint8Array): boolean {
  const coding = tiffCoding(bytes);
  return coding !== null && !DECODED.has(coding.compression);
}

/** Whether the colours of the first image of a TIFF are L*a*b*, in an encoding that no codec decodes. */
export function isOfLabColours(bytes: Uint8Array): boolean {
  const directory = firstDirectory(bytes, 0, bytes.length);
  if (directory === null) return false;
  const photometric = tagValue(bytes, directory, PHOTOMETRIC);
  return OTHER_LABS.has(photometric) || (photometric === CIE_LAB && !bitsOf(bytes, directory).includes(16));
}

/** Whether samples of the first image of a TIFF have a number of bits that no codec decodes, such as 12. */
export function isOfOtherBits(bytes: Uint8Array): boolean {
  const directory = firstDirectory(bytes, 0, bytes.length);
  return directory !== null && bitsOf(bytes, directory).some((bits) => !READ_BITS.has(bits));
}

/** Bits per sample of each channel; empty if the file does not specify it. */
function bitsOf(bytes: Uint8Array, directory: Directory): readonly number[] {
  return tagShorts(bytes, directory, BITS_PER_SAMPLE, MOST_CHANNELS);
}

/** Reads the header of the first image of a TIFF file. TIFF 6.0, sections 2 and 8. Its directory may be anywhere, even at the end. */
export function readTiffHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  const directory = firstDirectory(bytes, 0, bytes.length);
  if (directory === null) return 'cut';
  const width = tagValue(bytes, directory, IMAGE_WIDTH);
  const height = tagValue(bytes, directory, IMAGE_LENGTH);
  if (width <= 0 || height <= 0) return 'no-size';
  if (isOfOtherCompression(bytes) || isOfLabColours(bytes) || isOfOtherBits(bytes)) return 'refused';
  const xmp = tagBytes(bytes, directory, XMP);
  const orientation = orientationOf(orientationTag(bytes, directory), xmp === null ? -1 : xmpOrientation(xmp));
  const precision = precisionOf(bytes, directory);
  return { kind: 'tiff', width, height, orientation, ...(precision !== null && { precision }) };
}

function precisionOf(bytes: Uint8Array, directory: Directory): Precision | null {
  const bits = Math.max(0, ...bitsOf(bytes, directory));
  const formats = tagShorts(bytes, directory, SAMPLE_FORMAT, MOST_CHANNELS);
  if (bits > 16 || formats.some((format) => !PIXEL_FORMATS.has(format))) return 'refused';
  return bits > 8 ? 'narrowed' : null;
}
