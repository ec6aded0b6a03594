import { heifBrand } from './avif.js';
import { fourCC, u16be, u32be, u32le } from './header.js';
import { isOfLabColours, isOfOtherBits, isOfOtherCompression } from './tiff.js';

/** A kind of image that shardtool does not decode. */
interface RefusedKind {
  readonly name: string;
  /** Extensions of such files: a pack rejects them by name, instead of skipping them as files that are not images. */
  readonly names: readonly string[];
  /** Whether a file with these bytes (18 or more) is such an image. */
  begins(bytes: Uint8Array): boolean;
  /** The command that converts `path`, whose name without its extension is `stem`. */
  command(path: string, stem: string): string;
}

/** Lengths of the second header of a BMP file, by version. */
const BMP_HEADERS = new Set([12, 40, 52, 56, 64, 108, 124]);
const TIFFS = new Set(['II*\0', 'MM\0*'].map(fourCC));
const MAGICK = (path: string, stem: string) => `magick ${path} ${stem}.png`;
/** The command for the first of several pictures. */
const FIRST = (path: string, stem: string) => `magick "${path}[0]" ${stem}.png`;

/** The kinds of images that are recognised but not decoded. docs/image-kinds.md has the same list. */
export const REFUSED: readonly RefusedKind[] = [
  {
    name: 'HEIC',
    names: ['heic', 'heif', 'hif'],
    begins: (bytes) => heifBrand(bytes) === 'heif',
    command: (path, stem) => `heif-convert ${path} ${stem}.png`,
  },
  {
    name: 'JPEG XL',
    names: ['jxl'],
    begins: (bytes) => u16be(bytes, 0) === 0xff0a || isBox(bytes, 'JXL '),
    command: (path, stem) => `djxl ${path} ${stem}.png`,
  },
  {
    name: 'JPEG 2000',
    names: ['jp2', 'j2k'],
    begins: (bytes) => u32be(bytes, 0) === 0xff4fff51 || isBox(bytes, 'jP  '),
    command: (path, stem) => `opj_decompress -i ${path} -o ${stem}.png`,
  },
  {
    name: 'BigTIFF',
    names: [],
    begins: (bytes) => u32be(bytes, 0) === 0x49492b00 || u32be(bytes, 0) === 0x4d4d002b,
    command: (path, stem) => `tiffcp ${path} ${stem}-classic.tif`,
  },
  {
    name: 'TIFF with another compression',
    names: [],
    begins: (bytes) => TIFFS.has(u32be(bytes, 0)) && isOfOtherCompression(bytes),
    command: (path, stem) => `tiffcp -c zip ${path} ${stem}-zip.tif`,
  },
  {
    name: 'TIFF with L*a*b* colours',
    names: [],
    begins: (bytes) => TIFFS.has(u32be(bytes, 0)) && isOfLabColours(bytes),
    command: MAGICK,
  },
  {
    name: 'TIFF with an unusual number of bits',
    names: [],
    begins: (bytes) => TIFFS.has(u32be(bytes, 0)) && isOfOtherBits(bytes),
    command: MAGICK,
  },
  {
    name: 'AVIF sequence',
    names: [],
    begins: (bytes) => heifBrand(bytes) === 'sequence',
    command: (path, stem) => `avifdec ${path} ${stem}.png`,
  },
  {
    name: 'PSD',
    names: ['psd'],
    begins: (bytes) => u32be(bytes, 0) === fourCC('8BPS'),
    command: FIRST,
  },
  { name: 'QOI', names: ['qoi'], begins: (bytes) => u32be(bytes, 0) === fourCC('qoif'), command: MAGICK },
  { name: 'ICO', names: ['ico'], begins: (bytes) => u32be(bytes, 0) === 0x00000100, command: FIRST },
  {
    name: 'PAM',
    names: ['pam'],
    begins: (bytes) => u16be(bytes, 0) === 0x5037 && bytes[2]! <= 0x20,
    command: MAGICK,
  },
  {
    name: 'PFM',
    names: ['pfm'],
    // PF for colours, Pf for gray.
    begins: (bytes) => (u16be(bytes, 0) === 0x5046 || u16be(bytes, 0) === 0x5066) && bytes[2]! <= 0x20,
    command: (path, stem) => `magick ${path} -define quantum:format=floating-point -depth 32 ${stem}.tif`,
  },
  {
    name: 'BMP with JPEG or PNG inside',
    names: [],
    begins: (bytes) => u16be(bytes, 0) === 0x424d && BMP_HEADERS.has(u32le(bytes, 14)),
    command: MAGICK,
  },
];

/** The unsupported kind of an image, so that the error can name it; undefined for anything else. */
export function refusedKind(bytes: Uint8Array): RefusedKind | undefined {
  return bytes.length < 18 ? undefined : REFUSED.find((kind) => kind.begins(bytes));
}

/** Whether a file begins with a box of 12 bytes of this type. ISO/IEC 15444-1, I.5.1, and 18181-2. */
function isBox(bytes: Uint8Array, type: string): boolean {
  return u32be(bytes, 0) === 12 && u32be(bytes, 4) === fourCC(type);
}
