/**
 * The part of Node's Buffer that our readers use, for browsers. Bundles for browsers give it to our modules under the name
 * `Buffer`; the page's own globals stay as they are. Text is decoded by the browser.
 */

type Encoding = 'utf8' | 'utf-8' | 'latin1' | 'binary' | 'ascii' | 'hex' | 'base64';
type Text = string | Uint8Array | number;

const ENCODER = new TextEncoder();
/** Like Node, it keeps a byte order mark and replaces invalid bytes. */
const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
/** Maximum number of arguments of one call of `String.fromCharCode`. */
const CHARACTERS = 8192;

/** Bytes with the methods of Node's Buffer that are used to read datasets. */
export class WebBuffer extends Uint8Array {
  static allocUnsafe(bytes: number): WebBuffer {
    return new WebBuffer(bytes);
  }

  static allocUnsafeSlow(bytes: number): WebBuffer {
    return new WebBuffer(bytes);
  }

  static alloc(bytes: number, value: number | string = 0): WebBuffer {
    return new WebBuffer(bytes).fill(typeof value === 'string' ? value.charCodeAt(0) : value);
  }

  static isBuffer(value: unknown): boolean {
    return value instanceof WebBuffer;
  }

  static concat(list: readonly Uint8Array[], total?: number): WebBuffer {
    const all = new WebBuffer(total ?? list.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of list) {
      const fits = piece.subarray(0, all.length - at);
      all.set(fits, at);
      at += fits.length;
    }
    return all;
  }

  static byteLength(text: string | { readonly byteLength: number }, encoding: Encoding = 'utf8'): number {
    return typeof text === 'string' ? encoded(text, encoding).length : text.byteLength;
  }

  static compare(a: Uint8Array, b: Uint8Array): number {
    const common = Math.min(a.length, b.length);
    for (let i = 0; i < common; i++) if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1;
    return Math.sign(a.length - b.length);
  }

  override toString(encoding: Encoding = 'utf8', from = 0, to = this.length): string {
    const bytes = this.subarray(Math.max(0, from), Math.max(0, to));
    if (encoding === 'utf8' || encoding === 'utf-8') return DECODER.decode(bytes);
    if (encoding === 'hex') return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    if (encoding === 'base64') return btoa(latin1Of(bytes));
    if (encoding === 'ascii') return latin1Of(bytes.map((byte) => byte & 0x7f));
    return latin1Of(bytes);
  }

  /** A view, not a copy: as in Node. */
  override slice(from?: number, to?: number): WebBuffer {
    return this.subarray(from, to);
  }

  override subarray(from?: number, to?: number): WebBuffer {
    return viewOf(super.subarray(from, to));
  }

  /** Writes as many whole characters as fit, and returns the number of their bytes. */
  write(text: string, at: number | Encoding = 0, length?: number | Encoding, encoding: Encoding = 'utf8'): number {
    const start = typeof at === 'number' ? at : 0;
    const most = typeof length === 'number' ? length : this.length - start;
    const named = typeof at === 'string' ? at : typeof length === 'string' ? length : encoding;
    const room = this.subarray(start, start + most);
    if (named === 'utf8' || named === 'utf-8') return ENCODER.encodeInto(text, room).written;
    const bytes = encoded(text, named).subarray(0, room.length);
    room.set(bytes);
    return bytes.length;
  }

  equals(other: Uint8Array): boolean {
    return WebBuffer.compare(this, other) === 0;
  }

  compare(other: Uint8Array, otherFrom = 0, otherTo = other.length, from = 0, to = this.length): number {
    return WebBuffer.compare(this.subarray(from, to), other.subarray(otherFrom, otherTo));
  }

  copy(target: Uint8Array, at = 0, from = 0, to = this.length): number {
    const bytes = this.subarray(from, Math.min(to, from + target.length - at));
    target.set(bytes, at);
    return bytes.length;
  }

  override indexOf(value: Text, from = 0, encoding: Encoding = 'utf8'): number {
    if (typeof value === 'number') return super.indexOf(value & 0xff, from);
    const wanted = typeof value === 'string' ? encoded(value, encoding) : value;
    for (let at = super.indexOf(wanted[0]!, from); at !== -1; at = super.indexOf(wanted[0]!, at + 1)) {
      if (isAt(this, at, wanted)) return at;
    }
    return -1;
  }

  override lastIndexOf(value: Text, from = this.length, encoding: Encoding = 'utf8'): number {
    const wanted =
      typeof value === 'number' ? [value & 0xff] : typeof value === 'string' ? encoded(value, encoding) : value;
    for (let at = Math.min(from, this.length - wanted.length); at >= 0; at--) if (isAt(this, at, wanted)) return at;
    return -1;
  }

  override includes(value: Text, from = 0, encoding: Encoding = 'utf8'): boolean {
    return this.indexOf(value, from, encoding) !== -1;
  }

  readUIntBE(at: number, bytes: number): number {
    let value = 0;
    for (let i = 0; i < bytes; i++) value = value * 256 + this[checkedRange(this, at, bytes) + i]!;
    return value;
  }

  readUIntLE(at: number, bytes: number): number {
    let value = 0;
    for (let i = bytes - 1; i >= 0; i--) value = value * 256 + this[checkedRange(this, at, bytes) + i]!;
    return value;
  }

  readIntBE(at: number, bytes: number): number {
    const value = this.readUIntBE(at, bytes);
    return value >= 2 ** (8 * bytes - 1) ? value - 2 ** (8 * bytes) : value;
  }
}

/** `Buffer.from`: copies a text or a list of bytes; a view of an ArrayBuffer. */
Object.defineProperty(WebBuffer, 'from', {
  value(
    given: string | ArrayBuffer | Iterable<number>,
    encodingOrOffset?: Encoding | number,
    length?: number,
  ): WebBuffer {
    if (typeof given === 'string') return viewOf(encoded(given, (encodingOrOffset as Encoding | undefined) ?? 'utf8'));
    if (isArrayBuffer(given)) {
      const offset = (encodingOrOffset as number | undefined) ?? 0;
      return new WebBuffer(given, offset, length ?? given.byteLength - offset);
    }
    const list = given instanceof Uint8Array ? given : Uint8Array.from(given);
    const copy = new WebBuffer(list.length);
    copy.set(list);
    return copy;
  },
});

/** Adds `readUInt32LE`, `writeDoubleBE` and so on, which have the same names as methods of DataView, or similar ones. */
for (const [name, type, bytes] of [
  ['UInt16', 'Uint16', 2],
  ['UInt32', 'Uint32', 4],
  ['Int16', 'Int16', 2],
  ['Int32', 'Int32', 4],
  ['BigUInt64', 'BigUint64', 8],
  ['BigInt64', 'BigInt64', 8],
  ['Float', 'Float32', 4],
  ['Double', 'Float64', 8],
] as const) {
  for (const [suffix, isLittle] of [
    ['LE', true],
    ['BE', false],
  ] as const) {
    define(`read${name}${suffix}`, function (this: WebBuffer, at = 0) {
      return dataView(this)[`get${type}`](checkedRange(this, at, bytes), isLittle);
    });
    define(`write${name}${suffix}`, function (this: WebBuffer, value: number | bigint, at = 0) {
      dataView(this)[`set${type}`](checkedRange(this, at, bytes), value as never, isLittle);
      return at + bytes;
    });
  }
}
define('readUInt8', function (this: WebBuffer, at = 0) {
  return this[checkedRange(this, at, 1)];
});
define('readInt8', function (this: WebBuffer, at = 0) {
  return (this[checkedRange(this, at, 1)]! << 24) >> 24;
});

function define(name: string, value: (this: WebBuffer, ...given: never[]) => unknown): void {
  Object.defineProperty(WebBuffer.prototype, name, { value, writable: true, configurable: true });
}

function dataView({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Returns `at`. Throws RangeError like Node if the value would end behind the last byte. */
function checkedRange({ length }: Uint8Array, at: number, bytes: number): number {
  if (at >= 0 && at + bytes <= length) return at;
  throw new RangeError(`The value of "offset" is out of range: ${at}`);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): WebBuffer {
  return new WebBuffer(buffer as ArrayBuffer, byteOffset, byteLength);
}

function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return /^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(value));
}

function encoded(text: string, encoding: Encoding): Uint8Array<ArrayBuffer> {
  if (encoding === 'utf8' || encoding === 'utf-8') return ENCODER.encode(text);
  if (encoding === 'hex') {
    const pairs = /^(?:[0-9a-f]{2})*/i.exec(text)![0].match(/../g) ?? [];
    return Uint8Array.from(pairs, (pair) => Number.parseInt(pair, 16));
  }
  const letters = encoding === 'base64' ? atob(text) : text;
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

function latin1Of(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += CHARACTERS) {
    text += String.fromCharCode.apply(null, bytes.subarray(at, at + CHARACTERS) as unknown as number[]);
  }
  return text;
}

function isAt(bytes: Uint8Array, at: number, wanted: ArrayLike<number>): boolean {
  if (at + wanted.length > bytes.length) return false;
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
