/**
 * The LZ4 block format (lz4/lz4, lz4_Block_format.md), which Parquet calls LZ4_RAW: literals, and copies of earlier output at
 * most 65,535 bytes back. It is decoded without a library, because memory must stay bounded for damaged input.
 */
const MIN_MATCH = 4;
/** A length of this value continues in the following bytes. */
const LONG_LENGTH = 15;
/** Maximum number of output bytes per input byte. */
const MAX_RATIO = 255;

/** Decompresses a block. Throws RangeError if the result is not `length` bytes long. */
export function decompressLz4(input: Uint8Array, length: number): Uint8Array {
  if (length > input.length * MAX_RATIO) throw damaged();
  const output = new Uint8Array(length);
  let at = 0;
  let done = 0;
  const longLength = (first: number): number => {
    let count = first;
    if (first < LONG_LENGTH) return count;
    for (let byte = MAX_RATIO; byte === MAX_RATIO; count += byte) {
      if (at >= input.length) throw damaged();
      byte = input[at++]!;
    }
    return count;
  };
  while (at < input.length) {
    const token = input[at++]!;
    const literals = longLength(token >>> 4);
    if (at + literals > input.length || done + literals > length) throw damaged();
    output.set(input.subarray(at, at + literals), done);
    at += literals;
    done += literals;
    // The last sequence has no copy.
    if (at === input.length) break;
    if (at + 2 > input.length) throw damaged();
    const offset = input[at]! | (input[at + 1]! << 8);
    at += 2;
    const count = longLength(token & LONG_LENGTH) + MIN_MATCH;
    if (offset === 0 || offset > done || done + count > length) throw damaged();
    if (offset >= count) output.copyWithin(done, done - offset, done - offset + count);
    else for (let i = 0; i < count; i++) output[done + i] = output[done - offset + i]!;
    done += count;
  }
  if (done !== length) throw damaged();
  return output;
}

function damaged(): RangeError {
  return new RangeError('compressed bytes are damaged');
}
