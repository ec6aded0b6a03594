import { crc32 } from '@shardtool/base';
import { u32be } from '../header.js';
import { Pieces } from './pieces.js';

const SIGNATURE_BYTES = 8;
/** Length, type and crc of a chunk. */
const FRAME_BYTES = 12;

/** Chunks that pixels, colours, sizes and animation need. PNG (third edition), 11.2 and 11.3. */
const KEPT: ReadonlySet<string> = new Set(
  'IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD hIST pHYs sPLT acTL fcTL fdAT'.split(' '),
);

/** The bit in the first letter of a chunk type that marks it as not needed for decoding. PNG (third edition), 5.4. */
const ANCILLARY = 0x20;

/**
 * Removes texts, times, Exif, unknown chunks that decoders skip, and everything after IEND. `exif` replaces the Exif
 * data. Returns null if the chunks do not lead to IEND, or if there is an unknown chunk that decoders do not skip: it
 * may be damaged pixels.
 */
export function stripPng(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array | null {
  const kept = new Pieces(bytes);
  kept.keep(0, SIGNATURE_BYTES);
  for (let at = SIGNATURE_BYTES; at < bytes.length; ) {
    const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString('latin1');
    const end = at + FRAME_BYTES + (at + 8 <= bytes.length ? u32be(bytes, at) : 0);
    if (end > bytes.length) return null;
    if (KEPT.has(type)) kept.keep(at, end);
    else if ((bytes[at + 4]! & ANCILLARY) === 0) return null;
    if (type === 'IHDR' && exif !== null) kept.add(chunk('eXIf', exif));
    if (type === 'IEND') return kept.joined();
    at = end;
  }
  return null;
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(4 + body.length + 4);
  frame.writeUInt32BE(data.length);
  body.copy(frame, 4);
  frame.writeUInt32BE(crc32(body), 4 + body.length);
  return frame;
}
