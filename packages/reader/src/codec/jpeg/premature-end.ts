import { crc32 } from 'node:zlib';
import { jpegStructure } from './jpeg-structure.js';

/** The result of an attempt to decode the requested pixels. */
export interface Attempt {
  /** The decoder reported a warning. */
  readonly warned: boolean;
  readonly checksum: number;
  /** The last pixels have the value that decoders use for missing data. */
  readonly filled: boolean;
}

const END_MARKER = Uint8Array.of(0xff, 0xd9);
/** Bytes that an entropy decoder accepts as data. They have no pattern and do not contain a marker, even after a final byte 0xff. */
const MORE_DATA = Uint8Array.from({ length: 1024 }, (_, i) => (Math.imul(i, 0x9e3779b1) >>> 24) % 255);

/**
 * Whether the data of a JPEG that was decoded with a warning end within the requested pixels. Decoders continue without data and
 * report only their first warning, so this decodes again to find out. With one scan, data for the last requested pixel are missing
 * if and only if it was filled in, or changes when data are appended to the file. With several scans, every pixel needs the last
 * scan, so at most the end marker may be missing. An arithmetic decoder does not notice if more is missing.
 */
export async function endsWithinPixels(
  bytes: Uint8Array,
  first: Attempt,
  decode: (bytes: Uint8Array) => Attempt | Promise<Attempt>,
): Promise<boolean> {
  const { ended, layered, arithmetic } = jpegStructure(bytes);
  if (ended) return false;
  if (layered) return arithmetic || (await decode(concatenated(bytes, END_MARKER))).warned;
  return first.filled || (await decode(concatenated(bytes, MORE_DATA))).checksum !== first.checksum;
}

function concatenated(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** Number of pixels at the end that are compared with the fill value. Real images rarely end in that many gray pixels. */
const COMPARED_PIXELS = 4;

/** Summarizes decoded pixels: `height` rows of `width` pixels of `channels` bytes, with rows `stride` bytes apart. */
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
  const last = memory.subarray(end - Math.min(width, COMPARED_PIXELS) * channels, end);
  return { warned, checksum, filled: last.every(isFill) };
}

/** Missing samples are 128. Converted from YCCK they become 127, and libvips inverts both. Inks with this value become 64 in RGB. */
function isFill(value: number): boolean {
  return value === 128 || value === 127 || value === 64;
}
