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

/** An image has at least one of these chunks. */
const PIXELS: ReadonlySet<string> = new Set(['ANMF', 'VP8 ', 'VP8L']);

/**
 * Removes Exif, XMP, unknown chunks, and everything after the RIFF container. `exif` replaces the Exif data. Returns
 * null if the file ends within its RIFF container or a chunk, or has no pixels.
 */
export function stripWebp(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array | null {
  const kept = new Pieces(bytes);
  kept.keep(0, RIFF_BYTES);
  const riffEnd = CHUNK_HEADER_BYTES + u32le(bytes, 4);
  if (riffEnd > bytes.length) return null;
  let flagsAt = -1;
  let hasPixels = false;
  for (let at = RIFF_BYTES; at + CHUNK_HEADER_BYTES <= riffEnd; ) {
    const type = Buffer.from(bytes.subarray(at, at + 4)).toString('latin1');
    const length = u32le(bytes, at + 4);
    const end = at + CHUNK_HEADER_BYTES + length + (length % 2);
    if (end - (length % 2) > riffEnd) return null;
    // Only the extended form, which starts with this chunk, has flags.
    if (type === 'VP8X' && at === RIFF_BYTES) flagsAt = at + CHUNK_HEADER_BYTES;
    if (KEPT.has(type)) kept.keep(at, end);
    hasPixels ||= PIXELS.has(type);
    at = end;
  }
  if (!hasPixels) return null;
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
