import { type Cursor, getVarint, putVarint } from './varint.js';

/**
 * The Snappy block format (google/snappy, format_description.txt): the length, then literals and copies of earlier
 * bytes, at most 65,535 back. This is our own code because it must give the same bytes for the same input forever, must
 * stay bounded on damaged input, and is on the critical path of packing: it takes a third of the time of the one in
 * hyparquet-writer.
 */
const TABLE_BITS = 14;
const MIN_MATCH = 4;
const MAX_OFFSET = 65_535;
/** The most bytes that a three-byte copy element makes. No input can announce more than this many times its own length. */
const MAX_COPY = 64;
/** Longer literals are copied as a whole: images, which do not compress, consist of them. */
const SHORT_LITERAL = 64;

export function compressSnappy(input: Uint8Array): Uint8Array {
  const target = new Uint8Array(16 + input.length + Math.ceil(input.length / 6));
  /** By hash of four bytes: one more than the offset of the last occurrence. */
  const seen = new Int32Array(1 << TABLE_BITS);
  const last = input.length - MIN_MATCH;
  let at = putVarint(target, 0, input.length);
  let literal = 0;
  let misses = 0;
  for (let i = 0; i <= last; ) {
    const hash = Math.imul(load32(input, i), 0x1e35a7bd) >>> (32 - TABLE_BITS);
    const match = seen[hash]! - 1;
    seen[hash] = i + 1;
    if (match < 0 || i - match > MAX_OFFSET || load32(input, match) !== load32(input, i)) {
      // Steps grow while nothing is found, so that incompressible input costs little.
      i += 1 + (misses++ >> 5);
      continue;
    }
    let length = MIN_MATCH;
    while (i + length < input.length && input[i + length] === input[match + length]) length++;
    at = putLiteral(target, at, input, literal, i);
    at = putCopy(target, at, i - match, length);
    i += length;
    literal = i;
    misses = 0;
  }
  at = putLiteral(target, at, input, literal, input.length);
  return target.subarray(0, at);
}

function load32(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

function putLiteral(target: Uint8Array, at: number, input: Uint8Array, from: number, to: number): number {
  if (from === to) return at;
  let next = at;
  const length = to - from - 1;
  if (length < 60) {
    target[next++] = length << 2;
  } else {
    const lengthBytes = length < 2 ** 8 ? 1 : length < 2 ** 16 ? 2 : length < 2 ** 24 ? 3 : 4;
    target[next++] = (59 + lengthBytes) << 2;
    for (let i = 0; i < lengthBytes; i++) target[next++] = length >>> (8 * i);
  }
  for (let i = from; i < to; i++) target[next++] = input[i]!;
  return next;
}

function putCopy(target: Uint8Array, at: number, offset: number, length: number): number {
  let next = at;
  let rest = length;
  while (rest > 0) {
    const part = Math.min(rest, MAX_COPY);
    if (part >= 4 && part < 12 && offset < 2048) {
      target[next++] = 1 | ((part - 4) << 2) | ((offset >>> 8) << 5);
      target[next++] = offset;
    } else {
      target[next++] = 2 | ((part - 1) << 2);
      target[next++] = offset;
      target[next++] = offset >>> 8;
    }
    rest -= part;
  }
  return next;
}

/** The inverse of {@link compressSnappy}, for any Snappy block. Throws RangeError if the result is not `length` bytes long. */
export function decompressSnappy(input: Uint8Array, length: number): Uint8Array {
  const cursor: Cursor = { bytes: input, at: 0 };
  if (getVarint(cursor) !== length || length > input.length * MAX_COPY) throw damaged();
  const output = new Uint8Array(length);
  let { at } = cursor;
  let done = 0;
  while (at < input.length) {
    const tag = input[at++]!;
    const kind = tag & 3;
    let count = (tag >>> 2) + 1;
    if (kind === 0) {
      if (count > 60) {
        const lengthBytes = count - 60;
        count = takeNumber(input, at, lengthBytes) + 1;
        at += lengthBytes;
      }
      if (at + count > input.length || done + count > length) throw damaged();
      if (count > SHORT_LITERAL) {
        output.set(input.subarray(at, at + count), done);
        at += count;
        done += count;
      } else for (const end = at + count; at < end; ) output[done++] = input[at++]!;
      continue;
    }
    if (kind === 1) count = ((tag >>> 2) & 7) + 4;
    const offsetBytes = kind === 3 ? 4 : kind;
    const offset = takeNumber(input, at, offsetBytes) + (kind === 1 ? (tag >>> 5) << 8 : 0);
    at += offsetBytes;
    if (offset === 0 || offset > done || done + count > length) throw damaged();
    for (const end = done + count; done < end; done++) output[done] = output[done - offset]!;
  }
  if (done !== length) throw damaged();
  return output;
}

/** A little-endian number of one to four bytes. */
function takeNumber(input: Uint8Array, at: number, bytes: number): number {
  if (at + bytes > input.length) throw damaged();
  let number = 0;
  for (let i = bytes - 1; i >= 0; i--) number = number * 256 + input[at + i]!;
  return number;
}

function damaged(): RangeError {
  return new RangeError('compressed bytes are damaged');
}
