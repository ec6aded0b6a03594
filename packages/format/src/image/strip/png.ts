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

/** Out go texts, times, Exif, what is not known, and everything behind IEND. `exif` takes the place of the Exif data. */
export function stripPng(bytes: Uint8Array, exif: Uint8Array | null): Uint8Array {
  const kept = new Pieces(bytes);
  kept.keep(0, SIGNATURE_BYTES);
  for (let at = SIGNATURE_BYTES; at < bytes.length; ) {
    const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString('latin1');
    const end = at + FRAME_BYTES + (at + 8 <= bytes.length ? u32be(bytes, at) : 0);
    // Where the chunks are out of step nothing more is known of them.
    if (end > bytes.length) {
      kept.keep(at, bytes.length);
      break;
    }
    if (KEPT.has(type)) kept.keep(at, end);
    if (type === 'IHDR' && exif !== null) kept.add(chunk('eXIf', exif));
    if (type === 'IEND') break;
    at = end;
  }
  return kept.joined();
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(4 + body.length + 4);
  frame.writeUInt32BE(data.length);
  body.copy(frame, 4);
  frame.writeUInt32BE(crc32(body), 4 + body.length);
  return frame;
}
