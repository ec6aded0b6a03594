// The coefficients of one axis, as tables.ts lays them out: this header, `padded` starts (i32), `padded * taps` weights.
// An output pixel is the sum of `taps` source pixels from its start on, each times its weight. Weights are i16, those of
// narrow filters twice over: on x64, 32 bits are loaded into all lanes by the load alone, 16 bits take a shuffle more.

/** Weights of narrow filters (at most 5 taps) are in 1/256, so that 16 bits hold the sum of weight times byte. */
export const NARROW_BITS: i32 = 8;

@unmanaged
export class Table {
  /** Output pixels. */
  count: i32;
  /** Output pixels with padding to a multiple of 16. */
  padded: i32;
  /** Taps of every output pixel; even if the filter is wide. */
  taps: i32;
  /** The weights of a pixel sum to 1 << bits: NARROW_BITS, or 15 to 22 in a wide filter. */
  bits: i32;
}

@inline export function startsOf(table: Table): usize {
  return changetype<usize>(table) + offsetof<Table>();
}

@inline export function weightsOf(table: Table): usize {
  return startsOf(table) + (<usize>table.padded << 2);
}

/** Bytes from the weights of one pixel to those of the next. */
@inline export function stepOf(table: Table): usize {
  return <usize>(table.taps << (table.bits == NARROW_BITS ? 2 : 1));
}
