import { exifOrientation } from './exif.js';
import { fourCC, type HeaderTrouble, type ImageHeader, u32be } from './header.js';

const IHDR = fourCC('IHDR');
const EXIF = fourCC('eXIf');
const IEND = fourCC('IEND');

const SIGNATURE_BYTES = 8;
/** Length, type and crc of a chunk. */
const FRAME_BYTES = 12;

/** PNG (third edition), 5.3 "Chunk layout", 11.2.1 IHDR and 11.3.4.5 eXIf, which may also stand behind the pixels. */
export function readPngHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < SIGNATURE_BYTES + 16) return 'cut';
  const width = u32be(bytes, 16);
  const height = u32be(bytes, 20);
  if (u32be(bytes, 12) !== IHDR || width === 0 || height === 0) return 'no-size';
  return { kind: 'png', width, height, orientation: orientationOf(bytes) };
}

function orientationOf(bytes: Uint8Array): number {
  let at = SIGNATURE_BYTES;
  while (at + FRAME_BYTES <= bytes.length) {
    const length = u32be(bytes, at);
    const type = u32be(bytes, at + 4);
    if (type === EXIF) return exifOrientation(bytes, at + 8, Math.min(at + 8 + length, bytes.length));
    if (type === IEND) return 1;
    at += FRAME_BYTES + length;
  }
  return 1;
}
