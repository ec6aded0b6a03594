// The coefficients of one axis in the layout of tables.ts: this header, `padded` starts (i32), `padded * taps` weights.
// An output pixel is the sum of `taps` source pixels from its start on, each times its weight. Weights are i16. Those of narrow filters
// are stored twice, because on x64 a load can copy 32 bits to all lanes, but 16 bits need an extra shuffle.

/** Weights of narrow filters (at most 5 taps) are in units of 1/256, so that the weighted sum of bytes fits 16 bits. */
export const NARROW_BITS: i32 = 8;

@unmanaged
export class Table {
  /** Number of output pixels. */
  count: i32;
  /** Number of output pixels, rounded up to a multiple of 16. */
  padded: i32;
  /** Number of taps of every output pixel. It is even if the filter is wide. */
  taps: i32;
  /** The weights of a pixel add up to 1 << bits. It is NARROW_BITS, or 15 to 22 in a wide filter. */
  bits: i32;
}

@inline export function startsOf(table: Table): usize {
  return changetype<usize>(table) + offsetof<Table>();
}

@inline export function weightsOf(table: Table): usize {
  return startsOf(table) + (<usize>table.padded << 2);
}

/** Number of bytes from the weights of one pixel to those of the next. */
@inline export function stepOf(table: Table): usize {
  return <usize>(table.taps << (table.bits == NARROW_BITS ? 2 : 1));
}
