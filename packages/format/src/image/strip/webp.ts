import { u32le } from '../header.js';
import { Pieces } from './pieces.js';

/** `RIFF`, the file's length, `WEBP`. */
const RIFF_BYTES = 12;
const CHUNK_HEADER_BYTES = 8;
/** Chunks that pixels, colours and animation need. RFC 9649, section 2.7. */
const KEPT: ReadonlySet<string> = new Set(['VP8X', 'ICCP', 'ANIM', 'ANMF', 'ALPH', 'VP8 ', 'VP8L']);
/** Flags of VP8X: RFC 9649, figure 7. */
const EXIF_FLAG = 0x08;
const XMP_FLAG = 0x04;

/** Out go Exif, XMP, what is not known, and everything behind the RIFF. `exif` takes the place of the Exif data. */
export function stripWebp(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array {
  const kept = new Pieces(bytes);
  kept.keep(0, RIFF_BYTES);
  const riffEnd = Math.min(bytes.length, CHUNK_HEADER_BYTES + u32le(bytes, 4));
  let flagsAt = -1;
  for (let at = RIFF_BYTES; at + CHUNK_HEADER_BYTES <= riffEnd; ) {
    const type = Buffer.from(bytes.subarray(at, at + 4)).toString('latin1');
    const length = u32le(bytes, at + 4);
    const end = at + CHUNK_HEADER_BYTES + length + (length % 2);
    // Only the extended form, whose first chunk this is, has others.
    if (type === 'VP8X' && at === RIFF_BYTES) flagsAt = at + CHUNK_HEADER_BYTES;
    if (KEPT.has(type)) kept.keep(at, end);
    at = end;
  }
  if (flagsAt !== -1 && exif !== null) kept.add(exifChunk(exif));
  const stripped = Buffer.from(kept.joined());
  stripped.writeUInt32LE(stripped.length - CHUNK_HEADER_BYTES, 4);
  if (flagsAt !== -1)
    stripped[flagsAt] = (stripped[flagsAt]! & ~(EXIF_FLAG | XMP_FLAG)) | (exif === null ? 0 : EXIF_FLAG);
  return stripped;
}

function exifChunk(tiff: Uint8Array): Uint8Array {
  const head = Buffer.from('EXIF\0\0\0\0', 'latin1');
  head.writeUInt32LE(tiff.length, 4);
  return Buffer.concat([head, tiff]);
}
