import { Pieces } from './pieces.js';

const EXTENSION = 0x21;
const IMAGE = 0x2c;
const TRAILER = 0x3b;
const COMMENT = 0xfe;
const APPLICATION = 0xff;
/** Application extensions that animation and colours need. */
const KEPT: ReadonlySet<string> = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0', 'ICCRGBG1012']);

/**
 * Removes comments, XMP and other applications' data, and everything behind the trailer. GIF89a specification, sections 15 to
 * 26. Returns null if the blocks do not lead to the trailer.
 */
export function stripGif(bytes: Uint8Array): Uint8Array | null {
  const kept = new Pieces(bytes);
  let at = 13 + colourTableBytes(bytes[10] ?? 0);
  kept.keep(0, at);
  while (at < bytes.length) {
    const end = endOfBlock(bytes, at);
    if (end > bytes.length || end === at) return null;
    if (!isMetadata(bytes, at)) kept.keep(at, end);
    if (bytes[at] === TRAILER) return kept.joined();
    at = end;
  }
  return null;
}

/** The offset after a block; `at` itself if there is no block. */
function endOfBlock(bytes: Uint8Array, at: number): number {
  if (bytes[at] === TRAILER) return at + 1;
  if (bytes[at] === EXTENSION) return endOfData(bytes, at + 2);
  // Position, size and flags of the image, its colours, and the code size before its data.
  if (bytes[at] === IMAGE) return endOfData(bytes, at + 11 + colourTableBytes(bytes[at + 9] ?? 0));
  return at;
}

/** The offset after the sub-blocks, the last of which is empty. */
function endOfData(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== 0) at += bytes[at]! + 1;
  return at + 1;
}

function colourTableBytes(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1);
}

function isMetadata(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== EXTENSION) return false;
  if (bytes[at + 1] === COMMENT) return true;
  return bytes[at + 1] === APPLICATION && !KEPT.has(Buffer.from(bytes.subarray(at + 3, at + 14)).toString('latin1'));
}
