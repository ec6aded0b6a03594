/**
 * A number from 0 to 2^32 - 1 for a text, the same everywhere and for ever: FNV-1a of its UTF-8 bytes (32 bits; Fowler,
 * Noll, Vo), then the finalizer of MurmurHash3 (fmix32; Appleby), without which texts that differ in their last characters
 * alone lie close together.
 */
export function keyHash(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return finish(hashBytes(Buffer.from(text)));
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  return finish(hash);
}

function hashBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash;
}

function finish(hash: number): number {
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
