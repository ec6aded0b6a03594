import { hashOfBytes, mixedBits } from '@shardtool/base';

/**
 * Returns a number from 0 to 2^32 - 1 for a text, which never changes: FNV-1a of its UTF-8 bytes (32 bits; Fowler,
 * Noll, Vo), then the finalizer of MurmurHash3 (fmix32; Appleby). Without the finalizer, texts that differ only in
 * their last characters get similar numbers.
 */
export function keyHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return hashOfUtf8(text);
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  return mixedBits(hash);
}

function hashOfUtf8(text: string): number {
  const bytes = Buffer.from(text);
  return hashOfBytes(bytes, 0, bytes.length);
}

/**
 * How hashes are sorted by their first bits, of which about `perValue` hashes have the same: `hash >>> shift` are these bits,
 * and `starts[bits]` is the offset of the first of their hashes.
 */
export function byFirstBits(
  hashes: Uint32Array,
  perValue: number,
): { readonly shift: number; readonly starts: Uint32Array } {
  const bits = Math.min(24, Math.max(1, Math.ceil(Math.log2(hashes.length / perValue))));
  const shift = 32 - bits;
  const starts = new Uint32Array(2 ** bits + 1);
  for (const hash of hashes) starts[(hash >>> shift) + 1]!++;
  for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!;
  return { shift, starts };
}
