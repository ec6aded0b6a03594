// Decoding tables of a JPEG's Huffman codes (ITU-T T.81, annex C and F.2.2.3), and the codes of its DC tables.
import { BAD_DATA, Codes, countsOf, NOT_8_BITS, NO_JPEG, RawTable, State, symbolsOf } from './state';

/** Codes of up to this number of bits are found in a look-up table. */
export const LOOK: u32 = 10;
/** Largest number of bits of a DC difference in an 8-bit image. */
const MAX_DC_BITS: u32 = 11;
const CATEGORIES: u32 = 12;

// Layout after the first word: u16 per value of the next LOOK bits; per code length two i32 (the largest code or -1, and the number to
// add to a code for the index of its symbol); per DC category a u16 code, a u8 length, and a u8 that says whether the file has it.
const LOOK_UP: usize = 4;
const LARGEST: usize = LOOK_UP + 2048;
const TO_SYMBOL: usize = LARGEST + 68;
const DC_CODE: usize = TO_SYMBOL + 68;
const DC_LENGTH: usize = DC_CODE + 32;
const DC_OWN: usize = DC_LENGTH + 16;
const END: usize = DC_OWN + 16;

/** The entry of an AC symbol that ends the block. */
const END_OF_BLOCK: u32 = 64;

/** Makes the decoding table, unless it has been made already. Returns 0 or an error. */
export function buildCodes(codes: Codes, raw: RawTable, ac: bool): i32 {
  if (raw.isPresent == 0) return NO_JPEG;
  if (raw.isBuilt != 0) return 0;
  const at = changetype<usize>(codes);
  memory.fill(at, 0, END);
  codes.raw = raw;
  let code: u32 = 0;
  let k: usize = 0;
  for (let length: u32 = 1; length <= 16; length++) {
    const count = <u32>load<u8>(countsOf(raw) + length - 1);
    store<i32>(at + TO_SYMBOL + (<usize>length << 2), <i32>k - <i32>code);
    if (code + count > <u32>1 << length) return NO_JPEG;
    for (let i: u32 = 0; i < count; i++, code++, k++) {
      const symbol = <u32>load<u8>(symbolsOf(raw) + k);
      let entry: u32;
      if (ac) {
        if ((symbol & 15) > 10) continue; // an error if it occurs in the data
        entry = acEntry(length, symbol);
      } else {
        if (symbol > MAX_DC_BITS) return NOT_8_BITS;
        entry = length | (symbol << 8);
        setDcCode(at, symbol, code, length);
        store<u8>(at + DC_OWN + symbol, 1);
      }
      if (length > LOOK) continue;
      const end = (code + 1) << (LOOK - length);
      for (let j = code << (LOOK - length); j < end; j++) store<u16>(at + LOOK_UP + (<usize>j << 1), <u16>entry);
    }
    store<i32>(at + LARGEST + (<usize>length << 2), count > 0 ? <i32>code - 1 : -1);
    if (length < 16) code <<= 1;
  }
  if (!ac) addMissing(at, code);
  raw.isBuilt = 1;
  return 0;
}

/**
 * Adds codes for the categories that a DC table lacks, after its codes of 16 bits, which does not change other codes. The code of all
 * ones stays unused, as the format requires.
 */
function addMissing(at: usize, from: u32): void {
  let code = from;
  for (let category: u32 = 0; category < CATEGORIES && code < 0xffff; category++) {
    if (load<u8>(at + DC_OWN + category) == 0) setDcCode(at, category, code++, 16);
  }
}

@inline function setDcCode(at: usize, category: u32, code: u32, length: u32): void {
  store<u16>(at + DC_CODE + (<usize>category << 1), <u16>code);
  store<u8>(at + DC_LENGTH + category, <u8>length);
}

/** The entry of an AC symbol: the number of bits of code and value, and by how many coefficients the symbol advances. */
@inline function acEntry(length: u32, symbol: u32): u32 {
  const size = symbol & 15;
  const run = symbol >> 4;
  return (length + size) | ((size == 0 && run != 15 ? END_OF_BLOCK : run + 1) << 8);
}

/** The entry of the code at the start of `bits`: the low byte depends on the kind of table, the high byte is the category or the number of coefficients. 0 for a long code. */
@inline export function lookUp(codes: Codes, bits: u64): u32 {
  return <u32>load<u16>(changetype<usize>(codes) + (<usize>(bits >> (64 - LOOK)) << 1), LOOK_UP);
}

/** Like {@link lookUp}, for a code of more than {@link LOOK} bits. */
export function lookUpLong(state: State, codes: Codes, bits: u64, ac: bool): u32 {
  const at = changetype<usize>(codes);
  for (let length: u32 = LOOK + 1; length <= 16; length++) {
    const code = <i32>(bits >> (64 - length));
    if (code > load<i32>(at + LARGEST + (<usize>length << 2))) continue;
    const k = (code + load<i32>(at + TO_SYMBOL + (<usize>length << 2))) & 255;
    const symbol = <u32>load<u8>(symbolsOf(codes.raw) + k);
    if (!ac) return length | (symbol << 8);
    if ((symbol & 15) > 10) break;
    return acEntry(length, symbol);
  }
  state.failed = BAD_DATA;
  return ac ? 1 | (END_OF_BLOCK << 8) : 1;
}

@inline export function dcCode(codes: Codes, category: usize): u32 {
  return <u32>load<u16>(changetype<usize>(codes) + (category << 1), DC_CODE);
}

/** Length of the DC code of a category in bits. 0 if there was no free code for it. */
@inline export function dcCodeLength(codes: Codes, category: usize): u32 {
  return <u32>load<u8>(changetype<usize>(codes) + category, DC_LENGTH);
}

/** Whether the table of the file has this category. */
@inline export function isOwnCode(codes: Codes, category: usize): bool {
  return load<u8>(changetype<usize>(codes) + category, DC_OWN) != 0;
}

/** Appends the categories with added codes to the `count` symbols at `symbols`, and counts them as codes of 16 bits. */
export function appendMissing(codes: Codes, counts: usize, symbols: usize, count: usize): usize {
  let all = count;
  for (let category: usize = 0; category < <usize>CATEGORIES; category++) {
    if (isOwnCode(codes, category) || dcCodeLength(codes, category) == 0) continue;
    store<u8>(symbols + all, <u8>category);
    store<u8>(counts + 15, load<u8>(counts + 15) + 1);
    all++;
  }
  return all;
}
