// The horizontal pass works on 8 rows at once, byte by byte: [byte of the row][8 rows]. These two functions transpose 8 rows
// to that order and back. Both interleave with increasing widths: a perfect shuffle, repeated log2 times.
import { highBytes, highWords, lowBytes, lowWords } from '../lanes';

/** Number of rows in a block. */
export const BLOCK_ROWS: i32 = 8;

/**
 * Transposes 8 rows of `bytes` bytes, `stride` bytes apart, to `block`: [byte][8 rows]. If fewer than 8 rows exist (`rows`), the last one
 * is repeated. Works in steps of 16 bytes: reads up to 15 bytes past the end of a row, and writes up to 120 bytes past the end of the
 * block.
 */
@inline export function turnRows(source: usize, stride: usize, rows: i32, bytes: usize, block: usize): void {
  const s1 = stride * <usize>min(1, rows - 1);
  const s2 = stride * <usize>min(2, rows - 1);
  const s3 = stride * <usize>min(3, rows - 1);
  const s4 = stride * <usize>min(4, rows - 1);
  const s5 = stride * <usize>min(5, rows - 1);
  const s6 = stride * <usize>min(6, rows - 1);
  const s7 = stride * <usize>min(7, rows - 1);
  for (const end = source + bytes; source < end; source += 16, block += 128) {
    // Rows 0, 2, 4, 6 first, then 1, 3, 5, 7: each half fits the registers, but not both together.
    const r0 = v128.load(source);
    const r4 = v128.load(source + s4);
    const r2 = v128.load(source + s2);
    const r6 = v128.load(source + s6);
    const low04 = lowBytes(r0, r4);
    const high04 = highBytes(r0, r4);
    const low26 = lowBytes(r2, r6);
    const high26 = highBytes(r2, r6);
    const even0 = lowBytes(low04, low26);
    const even1 = highBytes(low04, low26);
    const even2 = lowBytes(high04, high26);
    const even3 = highBytes(high04, high26);

    const r1 = v128.load(source + s1);
    const r5 = v128.load(source + s5);
    const r3 = v128.load(source + s3);
    const r7 = v128.load(source + s7);
    const low15 = lowBytes(r1, r5);
    const high15 = highBytes(r1, r5);
    const low37 = lowBytes(r3, r7);
    const high37 = highBytes(r3, r7);
    const odd0 = lowBytes(low15, low37);
    const odd1 = highBytes(low15, low37);
    const odd2 = lowBytes(high15, high37);
    const odd3 = highBytes(high15, high37);

    v128.store(block, lowBytes(even0, odd0));
    v128.store(block, highBytes(even0, odd0), 16);
    v128.store(block, lowBytes(even1, odd1), 32);
    v128.store(block, highBytes(even1, odd1), 48);
    v128.store(block, lowBytes(even2, odd2), 64);
    v128.store(block, highBytes(even2, odd2), 80);
    v128.store(block, lowBytes(even3, odd3), 96);
    v128.store(block, highBytes(even3, odd3), 112);
  }
}

/**
 * Transposes back: a `block` of [pair of bytes][8 rows][2 bytes] becomes 8 consecutive rows of `bytes` bytes (a multiple of 16) at
 * `target`. It uses pairs because the horizontal pass can pack two results into one vector without a shuffle.
 */
@inline export function turnBack(block: usize, target: usize, bytes: usize): void {
  for (const end = target + bytes; target < end; target += 16, block += 128) {
    const p0 = v128.load(block);
    const p4 = v128.load(block, 64);
    const p2 = v128.load(block, 32);
    const p6 = v128.load(block, 96);
    const low04 = lowWords(p0, p4);
    const high04 = highWords(p0, p4);
    const low26 = lowWords(p2, p6);
    const high26 = highWords(p2, p6);
    const even0 = lowWords(low04, low26);
    const even1 = highWords(low04, low26);
    const even2 = lowWords(high04, high26);
    const even3 = highWords(high04, high26);

    const p1 = v128.load(block, 16);
    const p5 = v128.load(block, 80);
    const p3 = v128.load(block, 48);
    const p7 = v128.load(block, 112);
    const low15 = lowWords(p1, p5);
    const high15 = highWords(p1, p5);
    const low37 = lowWords(p3, p7);
    const high37 = highWords(p3, p7);
    const odd0 = lowWords(low15, low37);
    const odd1 = highWords(low15, low37);
    const odd2 = lowWords(high15, high37);
    const odd3 = highWords(high15, high37);

    let row = target;
    v128.store(row, lowWords(even0, odd0));
    row += bytes;
    v128.store(row, highWords(even0, odd0));
    row += bytes;
    v128.store(row, lowWords(even1, odd1));
    row += bytes;
    v128.store(row, highWords(even1, odd1));
    row += bytes;
    v128.store(row, lowWords(even2, odd2));
    row += bytes;
    v128.store(row, highWords(even2, odd2));
    row += bytes;
    v128.store(row, lowWords(even3, odd3));
    row += bytes;
    v128.store(row, highWords(even3, odd3));
  }
}
