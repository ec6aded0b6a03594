import type { HeaderTrouble, ImageHeader } from './header.js';

/** The largest value that a sample may have. Netpbm, "ppm". */
const MOST_VALUE = 65_535;
/** A size with more digits is not valid. Pillow has the same limit. */
const MOST_DIGITS = 10;

const HASH = 0x23;
const NEWLINES: ReadonlySet<number> = new Set([0x0a, 0x0d]);

/** How the pixels of a PBM, PGM or PPM are stored. */
export interface PnmLayout {
  readonly width: number;
  readonly height: number;
  readonly channels: 1 | 3;
  /** The value of white; 1 for a PBM, in which 1 is black. */
  readonly largest: number;
  readonly isBitmap: boolean;
  /** True if the values are written as decimal numbers. */
  readonly isText: boolean;
  /** Offset of the pixels. */
  readonly dataAt: number;
}

/** Whether a file begins like a PBM, PGM or PPM: with P1 to P6, white space, and a number or a comment. */
export function isPnm(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0x50 || !(bytes[1]! >= 0x31 && bytes[1]! <= 0x36)) return false;
  let at = 2;
  while (isSpace(bytes[at])) at++;
  return at > 2 && (at === bytes.length || bytes[at] === HASH || digitOf(bytes[at]) >= 0);
}

/**
 * The layout of the first picture of a PBM, PGM or PPM; `cut` if the file ends within the header, and `no-size` if the
 * header is not valid. Netpbm, "pbm", "pgm" and "ppm".
 */
export function pnmLayout(bytes: Uint8Array): PnmLayout | HeaderTrouble {
  const kind = bytes[1]! - 0x30;
  const isBitmap = kind === 1 || kind === 4;
  const isText = kind <= 3;
  const numbers: number[] = [];
  let at = 2;
  while (numbers.length < (isBitmap ? 2 : 3)) {
    at = afterSpace(bytes, at);
    const begin = at;
    let value = 0;
    for (; digitOf(bytes[at]) >= 0 && at - begin < MOST_DIGITS; at++) value = value * 10 + digitOf(bytes[at]);
    if (at === bytes.length) return 'cut';
    if (at === begin || !(isSpace(bytes[at]) || bytes[at] === HASH)) return 'no-size';
    numbers.push(value);
  }
  const [width, height, largest = 1] = numbers as [number, number, number?];
  if (width === 0 || height === 0 || largest === 0 || largest > MOST_VALUE) return 'no-size';
  // A single white space follows the header.
  const dataAt = isText ? at : afterHeader(bytes, at);
  return { width, height, channels: kind === 3 || kind === 6 ? 3 : 1, largest, isBitmap, isText, dataAt };
}

/** Reads the header of the first picture of a PBM, PGM or PPM. */
export function readPnmHeader(bytes: Uint8Array): ImageHeader | HeaderTrouble {
  const layout = pnmLayout(bytes);
  if (typeof layout === 'string') return layout;
  const { width, height, largest } = layout;
  return { kind: 'pnm', width, height, orientation: 1, ...(largest > 255 && { precision: 'narrowed' }) };
}

/** The offset of the first byte that is neither white space nor part of a comment. */
export function afterSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  for (;;) {
    while (isSpace(bytes[at])) at++;
    if (bytes[at] !== HASH) return at;
    at = afterComment(bytes, at);
  }
}

function afterComment(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && !NEWLINES.has(bytes[at]!)) at++;
  return at;
}

/** A comment may precede the white space that ends a header. */
function afterHeader(bytes: Uint8Array, from: number): number {
  return (bytes[from] === HASH ? afterComment(bytes, from) : from) + 1;
}

/** The value of a decimal digit; -1 for any other byte. */
export function digitOf(byte: number | undefined): number {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : -1;
}

/** White space in C: a blank, and the bytes from tab to carriage return. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d);
}
