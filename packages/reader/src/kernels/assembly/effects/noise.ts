// Noise of random numbers by Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

/** The upper halves of four products of 64 bits. */
@inline function upper(low: v128, high: v128): v128 {
  return v128.shuffle<i32>(low, high, 1, 3, 5, 7);
}

/** The lower halves of four products of 64 bits. */
@inline function lower(low: v128, high: v128): v128 {
  return v128.shuffle<i32>(low, high, 0, 2, 4, 6);
}

/** Stores the four words of each of the counters `counter` to `counter` + 3, in this order: 64 bytes at `words`. */
@inline function storeWords(words: usize, counter: u32, key0: u32, key1: u32): void {
  const factor0 = i32x4.splat(0xd2511f53);
  const factor1 = i32x4.splat(0xcd9e8d57);
  let c0 = i32x4.add(i32x4.splat(counter), i32x4(0, 1, 2, 3));
  let c1 = i32x4.splat(0);
  let c2 = i32x4.splat(0);
  let c3 = i32x4.splat(0);
  for (let round = 0; round < 10; round++) {
    const low0 = i64x2.extmul_low_i32x4_u(c0, factor0);
    const high0 = i64x2.extmul_high_i32x4_u(c0, factor0);
    const low1 = i64x2.extmul_low_i32x4_u(c2, factor1);
    const high1 = i64x2.extmul_high_i32x4_u(c2, factor1);
    c0 = v128.xor(v128.xor(upper(low1, high1), c1), i32x4.splat(key0));
    c1 = lower(low1, high1);
    c2 = v128.xor(v128.xor(upper(low0, high0), c3), i32x4.splat(key1));
    c3 = lower(low0, high0);
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
  const low01 = v128.shuffle<i32>(c0, c1, 0, 4, 1, 5);
  const high01 = v128.shuffle<i32>(c0, c1, 2, 6, 3, 7);
  const low23 = v128.shuffle<i32>(c2, c3, 0, 4, 1, 5);
  const high23 = v128.shuffle<i32>(c2, c3, 2, 6, 3, 7);
  v128.store(words, v128.shuffle<i64>(low01, low23, 0, 2));
  v128.store(words, v128.shuffle<i64>(low01, low23, 1, 3), 16);
  v128.store(words, v128.shuffle<i64>(high01, high23, 0, 2), 32);
  v128.store(words, v128.shuffle<i64>(high01, high23, 1, 3), 48);
}

/**
 * Adds to every byte an entry of `amounts`, 65,536 signed words of 16 bits, and clips the sum. The entries are drawn by the halves of
 * the words of the counters from 0 on. `words` is the address of 64 bytes.
 */
export function addNoise(address: usize, bytes: usize, amounts: usize, words: usize, key0: u32, key1: u32): void {
  const end = address + bytes;
  for (let counter: u32 = 0; address < end; counter += 4) {
    storeWords(words, counter, key0, key1);
    const last = min(end, address + 32);
    for (let at = words; address < last; address++, at += 2) {
      const sum = <i32>load<u8>(address) + <i32>load<i16>(amounts + (<usize>load<u16>(at) << 1));
      store<u8>(address, max(0, min(255, sum)));
    }
  }
}
