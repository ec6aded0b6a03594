/** First bytes, as the msgpack specification names them ("int format family"). */
const UINT8 = 0xcc;
const UINT16 = 0xcd;
const ZERO = 0x30;

/**
 * The decimal digits of the msgpack integer that fills `bytes`, if it is between 0 and 65535: a fast path for class
 * numbers, which every sample has. Null for anything else.
 */
export function digitsOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> | null {
  const first = bytes[0]!;
  if (bytes.length === 1 && first < 0x80) return digits(first);
  if (bytes.length === 2 && first === UINT8) return digits(bytes[1]!);
  if (bytes.length === 3 && first === UINT16) return digits(bytes[1]! * 256 + bytes[2]!);
  return null;
}

function digits(value: number): Uint8Array<ArrayBuffer> {
  const text = new Uint8Array(value < 10 ? 1 : value < 100 ? 2 : value < 1000 ? 3 : value < 10_000 ? 4 : 5);
  for (let at = text.length - 1, rest = value; at >= 0; at--, rest = Math.floor(rest / 10))
    text[at] = ZERO + (rest % 10);
  return text;
}
