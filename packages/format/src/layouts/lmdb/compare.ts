/**
 * Below 0 where the bytes from `start` to `end` come before `key`, 0 where they are equal; a key comes before those that
 * go on after it. Keys are short, and for those this is several times as quick as a call of `Buffer.compare`.
 */
export function compareKey(bytes: Uint8Array, start: number, end: number, key: Uint8Array): number {
  const length = Math.min(end - start, key.length);
  for (let i = 0; i < length; i++) {
    const difference = bytes[start + i]! - key[i]!;
    if (difference !== 0) return difference;
  }
  return end - start - key.length;
}
