/** Rows of a shard as an overlay stores them: row r is bit `r & 7` of byte `r >> 3`. */

/** Returns the chosen ones of `samples` rows as bits in base64. */
export function rowBits(samples: number, isChosen: (row: number) => boolean): string {
  const bits = new Uint8Array(Math.ceil(samples / 8));
  for (let row = 0; row < samples; row++) if (isChosen(row)) bits[row >> 3]! |= 1 << (row & 7);
  return Buffer.from(bits).toString('base64');
}

/** True if a row is set. Without bits, no row is set. */
export function isSet(bits: Uint8Array | undefined, row: number): boolean {
  return bits !== undefined && ((bits[row >> 3]! >> (row & 7)) & 1) === 1;
}

/** Returns the rows that are set, in ascending order. */
export function rowsOfBits(bits: Uint8Array): Uint32Array {
  let count = 0;
  for (const byte of bits) for (let left = byte; left !== 0; left &= left - 1) count++;
  const rows = new Uint32Array(count);
  for (let byte = 0, at = 0; byte < bits.length; byte++) {
    for (let bit = 0; bit < 8; bit++) if (((bits[byte]! >> bit) & 1) === 1) rows[at++] = byte * 8 + bit;
  }
  return rows;
}
