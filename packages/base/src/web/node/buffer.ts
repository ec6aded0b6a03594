/** The functions of `node:buffer` that our readers use, for browsers. */

const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function isAscii(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i]! > 0x7f) return false;
  return true;
}

export function isUtf8(bytes: Uint8Array): boolean {
  try {
    STRICT.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
