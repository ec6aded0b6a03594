/** An offset in bytes that are read front to back. */
export interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

/** Length of the longest varint of this file: 53 bits in groups of seven. */
const MAX_VARINT_BYTES = 8;

/** Writes an unsigned LEB128 number (0 to 2^53 - 1) and returns the offset after it. */
export function putVarint(target: Uint8Array, at: number, value: number): number {
  let rest = value;
  while (rest >= 128) {
    target[at++] = (rest % 128) + 128;
    rest = Math.floor(rest / 128);
  }
  target[at++] = rest;
  return at;
}

/** The inverse of {@link putVarint}. Throws RangeError if the bytes end within the number. */
export function getVarint(cursor: Cursor): number {
  let value = 0;
  let unit = 1;
  for (let n = 0; n < MAX_VARINT_BYTES; n++) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) throw new RangeError('a number is cut off');
    value += (byte & 127) * unit;
    if (byte < 128) return value;
    unit *= 128;
  }
  throw new RangeError('a number is too long');
}

/** Maps a signed number (magnitude at most 2^52) to an unsigned one: 0, -1, 1, -2 become 0, 1, 2, 3. */
export function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

/** The inverse of {@link zigzag}. */
export function unzigzag(folded: number): number {
  return folded % 2 === 1 ? -(folded + 1) / 2 : folded / 2;
}
