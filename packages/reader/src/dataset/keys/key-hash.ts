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
