/** The kind of a msgpack object. Extension types are not read, so they have no kind. */
export type ObjectKind = 'nil' | 'boolean' | 'integer' | 'float' | 'str' | 'bin' | 'array' | 'map';

/** The decoded head of an object: its first byte and the length that follows it. */
export interface ObjectHead {
  readonly kind: ObjectKind;
  /** Length of the head itself. */
  readonly bytes: number;
  /** Bytes after the head that belong to the object, such as those of a string. */
  readonly payload: number;
  /** Number of objects that follow inside an array or a map (two for each entry). */
  readonly children: number;
}

/** First bytes, as the msgpack specification names them ("Overview" of "Formats"). */
const FIXMAP = 0x80;
const FIXARRAY = 0x90;
const FIXSTR = 0xa0;
const NIL = 0xc0;
const NEGATIVE_FIXINT = 0xe0;
const BIN8 = 0xc4;
const STR8 = 0xd9;
const MAP16 = 0xde;

/** The meaning of the first bytes 0xc0 to 0xdf: the kind, the size of the length field, and the payload size if fixed. */
const LONG: readonly (readonly [kind: ObjectKind, lengthBytes: number, payload: number] | null)[] = [
  ['nil', 0, 0],
  null, // never used
  ['boolean', 0, 0],
  ['boolean', 0, 0],
  ['bin', 1, 0],
  ['bin', 2, 0],
  ['bin', 4, 0],
  null, // ext 8, 16, 32
  null,
  null,
  ['float', 0, 4],
  ['float', 0, 8],
  ['integer', 0, 1],
  ['integer', 0, 2],
  ['integer', 0, 4],
  ['integer', 0, 8],
  ['integer', 0, 1],
  ['integer', 0, 2],
  ['integer', 0, 4],
  ['integer', 0, 8],
  null, // fixext 1, 2, 4, 8, 16
  null,
  null,
  null,
  null,
  ['str', 1, 0],
  ['str', 2, 0],
  ['str', 4, 0],
  ['array', 2, 0],
  ['array', 4, 0],
  ['map', 2, 0],
  ['map', 4, 0],
];

/** Length of the head that begins with this byte. */
export function headBytes(first: number): number {
  return 1 + (first < NIL || first >= NEGATIVE_FIXINT ? 0 : (LONG[first - NIL]?.[1] ?? 0));
}

/** Decodes the head at `at`, which is complete in `bytes`. Null for an extension type and for the unused byte. */
export function decodeHead(bytes: Uint8Array, at: number): ObjectHead | null {
  const first = bytes[at]!;
  if (first < FIXMAP || first >= NEGATIVE_FIXINT) return { kind: 'integer', bytes: 1, payload: 0, children: 0 };
  if (first < FIXARRAY) return { kind: 'map', bytes: 1, payload: 0, children: 2 * (first - FIXMAP) };
  if (first < FIXSTR) return { kind: 'array', bytes: 1, payload: 0, children: first - FIXARRAY };
  if (first < NIL) return { kind: 'str', bytes: 1, payload: first - FIXSTR, children: 0 };
  const long = LONG[first - NIL]!;
  if (long === null) return null;
  const [kind, lengthBytes, fixed] = long;
  let length = 0;
  for (let i = 1; i <= lengthBytes; i++) length = length * 256 + bytes[at + i]!;
  const children = kind === 'map' ? 2 * length : kind === 'array' ? length : 0;
  const payload = kind === 'str' || kind === 'bin' ? length : fixed;
  return { kind, bytes: 1 + lengthBytes, payload, children };
}

/** Length of the shortest head for a map of `entries`. */
export function mapHeadBytes(entries: number): number {
  return entries < 16 ? 1 : entries < 0x10000 ? 3 : 5;
}

/** Length of the shortest head for `length` bytes of binary data. */
export function binHeadBytes(length: number): number {
  return length < 0x100 ? 2 : length < 0x10000 ? 3 : 5;
}

/** Writes the shortest head for a map and returns the offset after it. */
export function encodeMapHead(target: Uint8Array, at: number, entries: number): number {
  if (entries < 16) return putLength(target, at, FIXMAP + entries, 0, 0);
  return entries < 0x10000 ? putLength(target, at, MAP16, entries, 2) : putLength(target, at, MAP16 + 1, entries, 4);
}

/** Writes the shortest head for binary data and returns the offset after it. */
export function encodeBinHead(target: Uint8Array, at: number, length: number): number {
  if (length < 0x100) return putLength(target, at, BIN8, length, 1);
  return length < 0x10000 ? putLength(target, at, BIN8 + 1, length, 2) : putLength(target, at, BIN8 + 2, length, 4);
}

/**
 * Writes the shortest head for a string of `length` bytes of UTF-8 and returns the offset after it. Never longer than
 * that of binary data.
 */
export function encodeStrHead(target: Uint8Array, at: number, length: number): number {
  if (length < 32) return putLength(target, at, FIXSTR + length, 0, 0);
  if (length < 0x100) return putLength(target, at, STR8, length, 1);
  return length < 0x10000 ? putLength(target, at, STR8 + 1, length, 2) : putLength(target, at, STR8 + 2, length, 4);
}

function putLength(target: Uint8Array, at: number, first: number, length: number, lengthBytes: number): number {
  target[at] = first;
  for (let i = 0; i < lengthBytes; i++) target[at + 1 + i] = length >>> (8 * (lengthBytes - 1 - i));
  return at + 1 + lengthBytes;
}
