import { type HeaderTrouble, type ImageHeader, u16be, u16le, u32le } from './header.js';

const BM = 0x424d;
/** Length of the file header, before the header of the bitmap. */
const FILE_HEADER_BYTES = 14;
/** Lengths of the bitmap's header: of OS/2 (12 and 64) and of Windows. */
const CORE_HEADER = 12;
const OS2_HEADER = 64;
const HEADERS: ReadonlySet<number> = new Set([CORE_HEADER, 40, 52, 56, OS2_HEADER, 108, 124]);
/** From this length on, the header contains the masks of red, green and blue. */
const MASKED_HEADER = 52;
/** From this length on, it also contains the mask of alpha. */
const ALPHA_HEADER = 56;
/** Offset of the masks in the file. */
const MASKS_AT = FILE_HEADER_BYTES + 40;
const FIELDS_END = FILE_HEADER_BYTES + 36;

const NONE = 0;
const RLE8 = 1;
const RLE4 = 2;
const BITFIELDS = 3;

/** The masks of red, green, blue and alpha in a value of 16, 24 or 32 bits. */
type BmpMasks = readonly [red: number, green: number, blue: number, alpha: number];

/** How the pixels of a BMP are stored. */
export interface BmpLayout {
  readonly width: number;
  readonly height: number;
  /** True if the first stored row is the top of the image. */
  readonly isTopDown: boolean;
  /** Bits per pixel: 1, 4 and 8 for indices of colours, otherwise 16, 24 and 32. */
  readonly bits: number;
  readonly isRunLength: boolean;
  /** Null for images with a palette. */
  readonly masks: BmpMasks | null;
  /** The palette: blue, green and red of each colour, {@link colourBytes} apart. It may be shorter than {@link bits} allows. */
  readonly colours: Uint8Array;
  readonly colourBytes: 3 | 4;
  /** Offset of the pixels. */
  readonly dataAt: number;
}

/** Whether a file is a BMP that can be decoded, by its first 64 bytes. A BMP that contains a JPEG or a PNG is not. */
export function isBmp(bytes: Uint8Array): boolean {
  if (bytes.length < 18 || u16be(bytes, 0) !== BM) return false;
  const header = u32le(bytes, FILE_HEADER_BYTES);
  if (!HEADERS.has(header)) return false;
  if (bytes.length < FILE_HEADER_BYTES + 20) return true;
  const isCore = header === CORE_HEADER;
  const bits = u16le(bytes, isCore ? 24 : 28);
  const compression = isCore ? NONE : u32le(bytes, 30);
  switch (compression) {
    case NONE:
      return [1, 4, 8, 16, 24, 32].includes(bits);
    case RLE8:
      return bits === 8;
    case RLE4:
      return bits === 4;
    case BITFIELDS:
      // OS/2 uses the same number for another compression.
      return header !== OS2_HEADER && (bits === 16 || bits === 24 || bits === 32);
    default:
      return false;
  }
}

/**
 * The layout of a BMP, for which {@link isBmp} is true; null if its header is truncated. Microsoft, "Bitmap Storage" and
 * "BITMAPINFOHEADER structure" (Windows GDI).
 */
export function bmpLayout(bytes: Uint8Array): BmpLayout | null {
  const header = u32le(bytes, FILE_HEADER_BYTES);
  const end = FILE_HEADER_BYTES + header;
  if (bytes.length < end) return null;
  const isCore = header === CORE_HEADER;
  const bits = u16le(bytes, isCore ? 24 : 28);
  const compression = isCore ? NONE : u32le(bytes, 30);
  const height = isCore ? u16le(bytes, 20) : u32le(bytes, 22) | 0;
  const separate = compression === BITFIELDS && header < MASKED_HEADER ? 12 : 0;
  if (bytes.length < end + separate) return null;
  const used = isCore || header < FIELDS_END - FILE_HEADER_BYTES ? 0 : u32le(bytes, 46);
  const colourBytes = isCore ? 3 : 4;
  const colours = bits > 8 ? 0 : Math.min(256, used === 0 ? 2 ** bits : used);
  const coloursEnd = end + separate + colours * colourBytes;
  const stated = u32le(bytes, 10);
  return {
    width: isCore ? u16le(bytes, 18) : u32le(bytes, 18) | 0,
    height: Math.abs(height),
    isTopDown: height < 0,
    bits,
    isRunLength: compression === RLE8 || compression === RLE4,
    masks: bits > 8 ? masksOf(bytes, header, bits, compression === BITFIELDS) : null,
    colours: bytes.subarray(end + separate, coloursEnd),
    colourBytes,
    // Some writers leave the number of colours at 0.
    dataAt: stated <= end + separate ? coloursEnd : stated,
  };
}

function masksOf(bytes: Uint8Array, header: number, bits: number, isStated: boolean): BmpMasks {
  if (!isStated) return bits === 16 ? [0x7c00, 0x3e0, 0x1f, 0] : [0xff0000, 0xff00, 0xff, 0];
  const [red, green, blue] = [0, 4, 8].map((at) => u32le(bytes, MASKS_AT + at)) as [number, number, number];
  const alpha = header >= ALPHA_HEADER ? u32le(bytes, MASKS_AT + 12) : 0;
  // If all masks are 0, the usual order of channels applies, as in Pillow.
  if (bits === 32 && red === 0 && green === 0 && blue === 0) return [0xff0000, 0xff00, 0xff, 0xff000000];
  return [red, green, blue, alpha];
}

/** Reads the header of a BMP. */
export function readBmpHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  const layout = bmpLayout(bytes);
  if (layout === null) return 'cut';
  const { width, height } = layout;
  return width <= 0 || height === 0 ? 'no-size' : { kind: 'bmp', width, height, orientation: 1 };
}
