import { type HeaderTrouble, type ImageHeader, u16le } from './header.js';

const EXTENSION = 0x21;
const FRAME = 0x2c;
const GRAPHIC_CONTROL = 0xf9;
const SCREEN_BYTES = 13;
const FRAME_BYTES = 10;

/** The first picture of a GIF. */
export interface GifFrame {
  /** Its position on the canvas. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly isInterlaced: boolean;
  /** Its colours, three bytes each; null if neither the image nor the file has any. */
  readonly colours: Uint8Array | null;
  /** The index of the transparent colour; -1 for none. */
  readonly transparent: number;
  /** Offset of its data: the code size, then blocks. */
  readonly dataAt: number;
}

/**
 * The first image of a GIF; null if the file ends within it, or has none. GIF89a specification, sections 18 to 24.
 * `bytes` has at least the 13 bytes of the screen.
 */
export function firstGifFrame(bytes: Uint8Array): GifFrame | null {
  const screenColours = coloursAt(bytes, SCREEN_BYTES, bytes[10]!);
  let transparent = -1;
  let at = SCREEN_BYTES + (screenColours?.length ?? 0);
  while (at < bytes.length) {
    if (bytes[at] === FRAME) {
      if (at + FRAME_BYTES > bytes.length) return null;
      const flags = bytes[at + 9]!;
      const own = coloursAt(bytes, at + FRAME_BYTES, flags);
      return {
        left: u16le(bytes, at + 1),
        top: u16le(bytes, at + 3),
        width: u16le(bytes, at + 5),
        height: u16le(bytes, at + 7),
        isInterlaced: (flags & 0x40) !== 0,
        colours: own ?? screenColours,
        transparent,
        dataAt: at + FRAME_BYTES + (own?.length ?? 0),
      };
    }
    if (bytes[at] !== EXTENSION) return null;
    if (bytes[at + 1] === GRAPHIC_CONTROL && bytes[at + 2]! >= 4 && (bytes[at + 3]! & 1) === 1)
      transparent = bytes[at + 6] ?? -1;
    at += 2;
    while (at < bytes.length && bytes[at] !== 0) at += bytes[at]! + 1;
    at++;
  }
  return null;
}

function coloursAt(bytes: Uint8Array, at: number, flags: number): Uint8Array | null {
  return (flags & 0x80) === 0 ? null : bytes.subarray(at, at + 3 * 2 ** ((flags & 7) + 1));
}

/**
 * The size of a GIF is that of its screen, or what its first image needs if that is larger, as in Pillow. GIF89a
 * specification, section 18, "Logical Screen Descriptor".
 */
export function readGifHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  if (bytes.length < 10) return 'cut';
  const frame = bytes.length < SCREEN_BYTES ? null : firstGifFrame(bytes);
  const width = Math.max(u16le(bytes, 6), frame === null ? 0 : frame.left + frame.width);
  const height = Math.max(u16le(bytes, 8), frame === null ? 0 : frame.top + frame.height);
  if (width === 0 || height === 0) return 'no-size';
  return { kind: 'gif', width, height, orientation: 1 };
}
