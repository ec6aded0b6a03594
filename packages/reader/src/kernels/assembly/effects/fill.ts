import { copy } from '../copy';

/** Length of a pattern in bytes: a whole number of pixels of 3 channels of 1, 2 or 4 bytes, and of vectors. */
const PATTERN: usize = 48;

/** Fills `rows` rows of `bytes` bytes, `pitch` bytes apart, with a repeated `pattern` of 48 bytes. Writes nothing else. */
export function fillRows(target: usize, pitch: usize, rows: i32, bytes: usize, pattern: usize): void {
  const a = v128.load(pattern);
  const b = v128.load(pattern, 16);
  const c = v128.load(pattern, 32);
  for (; rows > 0; rows--, target += pitch) {
    let at = target;
    let left = bytes;
    for (; left >= PATTERN; left -= PATTERN, at += PATTERN) {
      v128.store(at, a);
      v128.store(at, b, 16);
      v128.store(at, c, 32);
    }
    copy(at, pattern, left);
  }
}
