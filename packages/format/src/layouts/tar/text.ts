const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text up to the first NUL or to `to`. Null if it is not UTF-8: guessing another encoding could merge two names. */
export function decodeText(bytes: Buffer, from: number, to: number): string | null {
  let end = from;
  let all = 0;
  while (end < to && bytes[end] !== 0) all |= bytes[end++]!;
  if (all < 0x80) return bytes.toString('latin1', from, end);
  try {
    return utf8.decode(bytes.subarray(from, end));
  } catch {
    return null;
  }
}
