/**
 * Reads the stored values of a gray or palette PNG, for masks. Image libraries would convert palette indices to colours. PNG (Third
 * Edition), W3C: chunks (5), filters (9), colour types (6).
 */
import { inflateSync } from 'node:zlib';
import { SampleDecodeError } from '@shardtool/base';

/** The values of a mask: one byte per pixel, [height, width]. */
export interface Values {
  readonly width: number;
  readonly height: number;
  readonly values: Uint8Array;
}

const SIGNATURE_BYTES = 8;
const GRAY = 0;
const PALETTE = 3;

/** Reads all values. Throws {@link SampleDecodeError} if the PNG has colours or 16 bits, or is damaged. */
export function readPngValues(png: Uint8Array, maxPixels: number): Values {
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  const { width, height, bits, data } = readChunks(bytes);
  if (width * height > maxPixels)
    throw new SampleDecodeError({}, `it has ${width}x${height} pixels, more than ${maxPixels}`);
  const rowBytes = Math.ceil((width * bits) / 8);
  const filtered = inflate(data, (rowBytes + 1) * height);
  const values = new Uint8Array(width * height);
  let before: Uint8Array = new Uint8Array(rowBytes);
  for (let y = 0; y < height; y++) {
    const at = y * (rowBytes + 1);
    const row = filtered.subarray(at + 1, at + 1 + rowBytes);
    unfilter(filtered[at]!, row, before);
    unpack(row, bits, values.subarray(y * width, (y + 1) * width));
    before = row;
  }
  return { width, height, values };
}

function readChunks(bytes: Buffer): { width: number; height: number; bits: number; data: Buffer } {
  const parts: Buffer[] = [];
  let head: Buffer | null = null;
  for (let at = SIGNATURE_BYTES; at + 12 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    const content = bytes.subarray(at + 8, at + 8 + length);
    if (content.length < length) break;
    if (type === 'IHDR' && length === 13) head = content;
    else if (type === 'IDAT') parts.push(content);
    else if (type === 'IEND') break;
    at += length + 12;
  }
  if (head === null || parts.length === 0)
    throw new SampleDecodeError({}, 'this PNG contains no pixels; it is damaged');
  const [bits, colours, , , interlace] = head.subarray(8) as unknown as [number, number, number, number, number];
  if ((colours !== GRAY && colours !== PALETTE) || bits > 8) {
    throw new SampleDecodeError(
      {},
      'it is a PNG with colours or 16 bits, but a mask is gray or has a palette, with up to 8 bits',
    );
  }
  if (interlace !== 0)
    throw new SampleDecodeError(
      {},
      'it is an interlaced PNG, which is not supported for masks: save it without interlacing',
    );
  return { width: head.readUInt32BE(0), height: head.readUInt32BE(4), bits, data: Buffer.concat(parts) };
}

function inflate(data: Buffer, bytes: number): Buffer {
  let filtered: Buffer;
  try {
    filtered = inflateSync(data, { maxOutputLength: Math.max(1, bytes) });
  } catch (cause) {
    throw new SampleDecodeError({}, `it cannot be decoded (${(cause as Error).message})`, { cause });
  }
  if (filtered.length === bytes) return filtered;
  throw new SampleDecodeError({}, 'it ends before its last row; it is damaged');
}

/** Undoes the filter of a row in place. A pixel has at most one byte, so its left neighbour is the byte before. */
function unfilter(filter: number, row: Uint8Array, above: Uint8Array): void {
  if (filter > 4) throw new SampleDecodeError({}, `a row has the unknown filter ${filter}; it is damaged`);
  let left = 0;
  let aboveLeft = 0;
  for (let i = 0; i < row.length; i++) {
    const up = above[i]!;
    if (filter === 1) row[i] = row[i]! + left;
    else if (filter === 2) row[i] = row[i]! + up;
    else if (filter === 3) row[i] = row[i]! + ((left + up) >> 1);
    else if (filter === 4) row[i] = row[i]! + paeth(left, up, aboveLeft);
    left = row[i]!;
    aboveLeft = up;
  }
}

function paeth(left: number, up: number, aboveLeft: number): number {
  const guess = left + up - aboveLeft;
  const toLeft = Math.abs(guess - left);
  const toUp = Math.abs(guess - up);
  const toAboveLeft = Math.abs(guess - aboveLeft);
  return toLeft <= toUp && toLeft <= toAboveLeft ? left : toUp <= toAboveLeft ? up : aboveLeft;
}

/** Unpacks a row to one byte per value. Several values may share a byte; the first is in the highest bits. */
function unpack(row: Uint8Array, bits: number, values: Uint8Array): void {
  if (bits === 8) {
    values.set(row);
    return;
  }
  const most = (1 << bits) - 1;
  for (let i = 0; i < values.length; i++) {
    const bit = i * bits;
    values[i] = (row[bit >> 3]! >> (8 - bits - (bit & 7))) & most;
  }
}
