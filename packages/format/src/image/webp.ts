import { exifOrientation } from './exif.js';
import { fourCC, type HeaderTrouble, type ImageHeader, u16le, u32be, u32le } from './header.js';
import { orientationOf, xmpOrientation } from './orientation.js';

const VP8 = fourCC('VP8 ');
const VP8L = fourCC('VP8L');
const VP8X = fourCC('VP8X');
const EXIF = fourCC('EXIF');
const XMP = fourCC('XMP ');

/** `RIFF`, the file's length, `WEBP`. */
const RIFF_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** Number of bytes that hold the size, by kind of the first chunk. */
const LOSSY_BYTES = 30;
const LOSSLESS_BYTES = 25;
const EXTENDED_BYTES = 30;

/** WebP container specification (RFC 9649), section 2; VP8: RFC 6386, 9.1; lossless: RFC 9649, 3.4. */
export function readWebpHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < RIFF_BYTES + CHUNK_HEADER_BYTES) return 'cut';
  switch (u32be(bytes, RIFF_BYTES)) {
    case VP8:
      return readLossy(bytes);
    case VP8L:
      return readLossless(bytes);
    case VP8X:
      return readExtended(bytes);
    default:
      return 'no-size';
  }
}

function readLossy(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < LOSSY_BYTES) return 'cut';
  if (bytes[23] !== 0x9d || bytes[24] !== 0x01 || bytes[25] !== 0x2a) return 'no-size';
  const width = u16le(bytes, 26) & 0x3fff;
  const height = u16le(bytes, 28) & 0x3fff;
  if (width === 0 || height === 0) return 'no-size';
  return { kind: 'webp', width, height, orientation: 1 };
}

function readLossless(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < LOSSLESS_BYTES) return 'cut';
  if (bytes[20] !== 0x2f) return 'no-size';
  const packed = u32le(bytes, 21);
  return { kind: 'webp', width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1, orientation: 1 };
}

/** Canvas size, then the chunks, among them EXIF. */
function readExtended(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < EXTENDED_BYTES) return 'cut';
  const width = u16le(bytes, 24) + (bytes[26]! << 16) + 1;
  const height = u16le(bytes, 27) + (bytes[29]! << 16) + 1;
  return { kind: 'webp', width, height, orientation: orientationIn(bytes) };
}

function orientationIn(bytes: Uint8Array): number {
  let exif = -1;
  let xmp = -1;
  let at = RIFF_BYTES;
  while (at + CHUNK_HEADER_BYTES <= bytes.length) {
    const start = at + CHUNK_HEADER_BYTES;
    const length = u32le(bytes, at + 4);
    const type = u32be(bytes, at);
    if (type === EXIF) exif = exifOrientation(bytes, start, Math.min(start + length, bytes.length));
    else if (type === XMP) xmp = xmpOrientation(bytes.subarray(start, start + length));
    at = start + length + (length % 2);
  }
  return orientationOf(exif, xmp);
}
