import { fourCC, type HeaderTrouble, type ImageHeader, u32be } from './header.js';

/** Boxes of ISO/IEC 14496-12, 4.2: length, type, content. Image properties: ISO/IEC 23008-12, 6.5.3 and 6.5.10. */
const FTYP = fourCC('ftyp');
const META = fourCC('meta');
const IPRP = fourCC('iprp');
const IPCO = fourCC('ipco');
const ISPE = fourCC('ispe');
const IROT = fourCC('irot');
const AV1C = fourCC('av1C');
/** A bit of the third byte of an AV1 configuration (AV1 in ISOBMFF, 2.3.3): more than 8 bits per channel. */
const HIGH_BIT_DEPTH = 0x40;
const AVIF_BRANDS = new Set(['avif', 'avis'].map(fourCC));
/** Main brands by which libvips recognises an AVIF (heifload.c). */
const OPENED_BRANDS = new Set(['avif', 'mif1', 'msf1'].map(fourCC));
const HEIF_BRANDS = new Set(['heic', 'heix', 'heim', 'heis', 'hevc', 'hevx', 'mif1', 'msf1'].map(fourCC));

interface Box {
  readonly type: number;
  /** Offset of its content. */
  readonly start: number;
  readonly end: number;
}

/**
 * The brand in the file type box: an AV1 image, AV1 images that libvips does not open because their main brand is that of
 * a sequence, other HEIF images (HEVC), or another kind of file (undefined).
 */
export function heifBrand(bytes: Uint8Array): 'avif' | 'sequence' | 'heif' | undefined {
  if (bytes.length < 12 || u32be(bytes, 4) !== FTYP) return undefined;
  const end = Math.min(u32be(bytes, 0), bytes.length);
  let heif = false;
  for (let at = 8; at + 4 <= end; at += 4) {
    // The minor version is between the major brand and the compatible brands.
    if (at === 12) continue;
    const brand = u32be(bytes, at);
    if (AVIF_BRANDS.has(brand)) return OPENED_BRANDS.has(u32be(bytes, 8)) ? 'avif' : 'sequence';
    heif ||= HEIF_BRANDS.has(brand);
  }
  return heif ? 'heif' : undefined;
}

/**
 * The size of the largest image in the file, which is the one that is shown: tiles and thumbnails are smaller. A
 * rotation is a property of the image that decoders (libheif, and with it sharp) always apply. So the size is the one
 * after rotation, and the orientation is 1.
 */
export function readAvifHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  const meta = findBox(bytes, 0, bytes.length, META);
  if (meta === null) return 'cut';
  // The content of "meta" begins with a version and flags.
  const properties = findBox(bytes, meta.start + 4, meta.end, IPRP);
  const container = properties && findBox(bytes, properties.start, properties.end, IPCO);
  if (container === null) return meta.end > bytes.length ? 'cut' : 'no-size';
  let width = 0;
  let height = 0;
  let turned = false;
  let isDeep = false;
  const end = Math.min(container.end, bytes.length);
  for (let at = container.start; at < end; ) {
    const box = boxAt(bytes, at, end);
    if (box === null) break;
    if (box.type === ISPE && box.start + 12 <= end && pixelsOf(bytes, box) > width * height) {
      width = u32be(bytes, box.start + 4);
      height = u32be(bytes, box.start + 8);
    }
    if (box.type === IROT && box.start < end) turned = (bytes[box.start]! & 1) === 1;
    if (box.type === AV1C && box.start + 3 <= end) isDeep ||= (bytes[box.start + 2]! & HIGH_BIT_DEPTH) !== 0;
    at = box.end;
  }
  if (width === 0) return container.end > bytes.length ? 'cut' : 'no-size';
  const size = turned ? { width: height, height: width } : { width, height };
  return { kind: 'avif', ...size, orientation: 1, ...(isDeep && { precision: 'narrowed' }) };
}

/** The number of pixels in an "ispe" box. */
function pixelsOf(bytes: Uint8Array, ispe: Box): number {
  return u32be(bytes, ispe.start + 4) * u32be(bytes, ispe.start + 8);
}

/** The first box of a type in a range. Its end may be past the end of the file. */
function findBox(bytes: Uint8Array, start: number, end: number, type: number): Box | null {
  for (let at = start; at < end; ) {
    const box = boxAt(bytes, at, end);
    if (box === null || box.type === type) return box;
    at = box.end;
  }
  return null;
}

function boxAt(bytes: Uint8Array, at: number, end: number): Box | null {
  if (at + 8 > Math.min(end, bytes.length)) return null;
  const type = u32be(bytes, at + 4);
  const length = u32be(bytes, at);
  if (length === 0) return { type, start: at + 8, end };
  if (length === 1) {
    if (at + 16 > bytes.length) return null;
    const large = u32be(bytes, at + 8) * 2 ** 32 + u32be(bytes, at + 12);
    return large < 16 ? null : { type, start: at + 16, end: at + large };
  }
  return length < 8 ? null : { type, start: at + 8, end: at + length };
}
