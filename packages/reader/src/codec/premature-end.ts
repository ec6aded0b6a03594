import { crc32 } from 'node:zlib';
import { jpegStructure } from './jpeg-structure.js';

/** What came of decoding the same region of some bytes: whether the decoder warned, and a checksum of the pixels. */
export interface Attempt {
  readonly warned: boolean;
  readonly checksum: number;
}

const END_MARKER = Uint8Array.of(0xff, 0xd9);
/** Bytes that an entropy decoder takes for data: no markers among them, and no pattern. */
const MORE_DATA = Uint8Array.from({ length: 1024 }, (_, i) => (Math.imul(i + 1, 0x9e3779b1) >>> 24) % 255);

/**
 * Whether a JPEG that was decoded with a warning ends within the pixels asked for. A decoder fills what is missing with
 * gray and tells the first warning only, so the answer comes from trying: with one scan, the pixels lack data just if
 * they change when data follow the end. With several scans every pixel needs the last of them, so all that may be
 * missing is the end marker.
 */
export async function endsWithinPixels(
  bytes: Uint8Array,
  first: Attempt,
  decode: (bytes: Uint8Array) => Attempt | Promise<Attempt>,
): Promise<boolean> {
  const { ended, layered } = jpegStructure(bytes);
  if (ended) return false;
  if (layered) return (await decode(joined(bytes, END_MARKER))).warned;
  return (await decode(joined(bytes, MORE_DATA))).checksum !== first.checksum;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** crc32 of `rows` stretches of `bytes` bytes, `stride` apart. */
export function checksumOf(memory: Uint8Array, offset: number, stride: number, bytes: number, rows: number): number {
  let sum = 0;
  for (let y = 0; y < rows; y++) sum = crc32(memory.subarray(offset + y * stride, offset + y * stride + bytes), sum);
  return sum;
}
