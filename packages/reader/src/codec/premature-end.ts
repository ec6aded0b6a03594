import { crc32 } from 'node:zlib';
import { jpegStructure } from './jpeg-structure.js';

/** What came of decoding some bytes, as far as the pixels that are asked for go. */
export interface Attempt {
  /** The decoder had something to complain about. */
  readonly warned: boolean;
  readonly checksum: number;
  /** The last pixels have the value that decoders fill in where data are missing. */
  readonly filled: boolean;
}

const END_MARKER = Uint8Array.of(0xff, 0xd9);
/** Bytes that an entropy decoder takes for data: no marker among them, nor together with a last byte 0xff; no pattern. */
const MORE_DATA = Uint8Array.from({ length: 1024 }, (_, i) => (Math.imul(i, 0x9e3779b1) >>> 24) % 255);

/**
 * Whether a JPEG that was decoded with a warning ends within the pixels asked for. Decoders go on without data, and tell
 * the first of their warnings only, so the answer comes from trying. With one scan, the last pixel asked for lacks data
 * just if it was filled in, or changes when data follow the end of the file. With several scans every pixel needs the last
 * of them, so all that may be missing is the end marker; an arithmetic decoder does not notice when more is.
 */
export async function endsWithinPixels(
  bytes: Uint8Array,
  first: Attempt,
  decode: (bytes: Uint8Array) => Attempt | Promise<Attempt>,
): Promise<boolean> {
  const { ended, layered, arithmetic } = jpegStructure(bytes);
  if (ended) return false;
  if (layered) return arithmetic || (await decode(joined(bytes, END_MARKER))).warned;
  return first.filled || (await decode(joined(bytes, MORE_DATA))).checksum !== first.checksum;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** So many pixels at the end are looked at: an image that really ends in so much gray is rare. */
const LOOKED_AT = 4;

/** Sums up pixels: `rows` of `width` pixels of `channels` bytes, `stride` bytes apart. */
export function attempt(
  warned: boolean,
  memory: Uint8Array,
  offset: number,
  stride: number,
  { width, height }: { readonly width: number; readonly height: number },
  channels: number,
): Attempt {
  const bytes = width * channels;
  let checksum = 0;
  for (let y = 0; y < height; y++) {
    const row = offset + y * stride;
    checksum = crc32(memory.subarray(row, row + bytes), checksum);
  }
  const end = offset + (height - 1) * stride + bytes;
  const last = memory.subarray(end - Math.min(width, LOOKED_AT) * channels, end);
  return { warned, checksum, filled: last.every(isFill) };
}

/** Missing samples are 128. As inks, YCCK makes 127 of that and libvips turns both round; as RGB, inks of that make 64. */
function isFill(value: number): boolean {
  return value === 128 || value === 127 || value === 64;
}
