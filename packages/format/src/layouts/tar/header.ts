import { total } from '@shardtool/base';
import { damaged } from './faults.js';
import { decodeText } from './text.js';
import type { Window } from './window.js';

/** Headers and payloads fill whole blocks. */
export const BLOCK_BYTES = 512;

/** The entry types that reading treats specially. All others are known by their letter. */
export const EntryType = {
  File: '0',
  Directory: '5',
  LocalPax: 'x',
  GlobalPax: 'g',
  GnuLongName: 'L',
  GnuLongLink: 'K',
  HardLink: '1',
  SymbolicLink: '2',
} as const;

/**
 * One tar header block. POSIX.1-2017 pax, "ustar Interchange Format"; the older v7 and GNU formats differ in the prefix
 * and in numbers. `bytes` is the length of the payload without padding; `type` the type flag, `0` for all files.
 */
export interface TarHeader {
  /**
   * Prefix and name. Null if they are not UTF-8: if a long name or a pax record gives the whole name, this one may be
   * cut within a character.
   */
  readonly name: string | null;
  readonly bytes: number;
  readonly type: string;
  /** The target of a link; '' if it is not UTF-8, or if the entry is not a link. */
  readonly linkTarget: string;
}

// Offsets and lengths of the fields in a block.
const NAME_BYTES = 100;
const SIZE_AT = 124;
const SIZE_DIGITS = 11;
const CHECKSUM_AT = 148;
const CHECKSUM_BYTES = 8;
const TYPE_AT = 156;
const LINK_AT = 157;
const MAGIC_AT = 257;
const PREFIX_AT = 345;
const PREFIX_BYTES = 155;
const STAR_PREFIX_BYTES = 131;
const STAR_MAGIC_AT = 508;
const STAR_MAGIC = 'tar\0';

const ZERO = 0x30;
const SPACE = 0x20;
const LETTER_U = 0x75;
const DIGIT_7 = 0x37;
const MAX_OCTAL_SIZE = 8 ** SIZE_DIGITS - 1;

/** Rounds a payload up to whole blocks. Sizes go up to 2^53, so bit operations cannot be used. */
export function padded(bytes: number): number {
  const over = bytes % BLOCK_BYTES;
  return over === 0 ? bytes : bytes + BLOCK_BYTES - over;
}

/**
 * Decodes the block at `at`, a multiple of 4. `shard` and `offset` are for messages. Returns null for a block of zeros,
 * which ends an archive. Throws a `DamagedShardError` if the checksum or the size is wrong.
 */
export function decodeHeader(window: Window, at: number, shard: string, offset: number): TarHeader | null {
  const block = window.bytes;
  const unsigned = sumOfBytes(window.words, at / 4);
  if (unsigned === 0) return null;
  checkSum(block, at, unsigned, shard, offset);
  const bytes = decodeNumber(block, at + SIZE_AT, SIZE_DIGITS + 1);
  if (Number.isNaN(bytes)) throw damaged(shard, offset, 'has a size that is not a number');
  if (bytes < 0) throw damaged(shard, offset, `has a negative size (${bytes})`);
  const flag = block[at + TYPE_AT]!;
  // v7 has NUL for a file; 7 is a file that should be stored contiguously.
  const type = flag === 0 || flag === DIGIT_7 ? EntryType.File : String.fromCharCode(flag);
  const linkTarget = isLink(type) ? (decodeText(block, at + LINK_AT, at + LINK_AT + NAME_BYTES) ?? '') : '';
  return { name: decodeName(block, at), bytes, type, linkTarget };
}

export function isLink(type: string): boolean {
  return type === EntryType.HardLink || type === EntryType.SymbolicLink;
}

/** The sum of the 512 bytes of a block. Each step adds two bytes in the two halves of a word, which have room for 128 times 255. */
function sumOfBytes(words: Int32Array, from: number): number {
  let even = 0;
  let odd = 0;
  for (let i = from; i < from + BLOCK_BYTES / 4; i++) {
    const word = words[i]!;
    even = (even + (word & 0xff00ff)) | 0;
    odd = (odd + ((word >>> 8) & 0xff00ff)) | 0;
  }
  return (even & 0xffff) + (even >>> 16) + (odd & 0xffff) + (odd >>> 16);
}

/** Throws if the checksum is neither the unsigned sum nor the signed sum of old tars. */
function checkSum(block: Buffer, at: number, unsigned: number, shard: string, offset: number): void {
  // The checksum's own bytes count as spaces.
  let sum = unsigned;
  for (let i = at + CHECKSUM_AT; i < at + CHECKSUM_AT + CHECKSUM_BYTES; i++) sum += SPACE - block[i]!;
  const stored = decodeOctal(block, at + CHECKSUM_AT, CHECKSUM_BYTES);
  if (stored === sum || stored === signedSum(block, at, sum)) return;
  throw damaged(shard, offset, 'has a wrong checksum, or is not a tar header');
}

function signedSum(block: Buffer, at: number, unsigned: number): number {
  let sum = unsigned;
  for (let i = at; i < at + BLOCK_BYTES; i++) {
    const outside = i < at + CHECKSUM_AT || i >= at + CHECKSUM_AT + CHECKSUM_BYTES;
    if (outside && block[i]! > 0x7f) sum -= 0x100;
  }
  return sum;
}

/** GNU base-256 if the first bit is set (GNU tar manual, "Basic Tar Format"), else octal. NaN for anything else. */
function decodeNumber(block: Buffer, at: number, length: number): number {
  const first = block[at]!;
  if (first < 0x80) return decodeOctal(block, at, length);
  // Two's complement, big-endian; the first byte is 0x80 or 0xff except in numbers far beyond any file.
  let value = first & 0x40 ? (first & 0x7f) - 0x80 : first & 0x7f;
  for (let i = at + 1; i < at + length; i++) value = value * 0x100 + block[i]!;
  return value;
}

/** Parses digits after any spaces, up to a space, a NUL or the field's end. An empty field is 0; anything else is NaN. */
function decodeOctal(block: Buffer, at: number, length: number): number {
  const end = at + length;
  let i = at;
  while (i < end && block[i] === SPACE) i++;
  let value = 0;
  for (; i < end; i++) {
    const digit = block[i]! - ZERO;
    if (digit === -ZERO || digit === SPACE - ZERO) break;
    if (digit < 0 || digit > 7) return Number.NaN;
    value = value * 8 + digit;
  }
  return value;
}

function decodeName(block: Buffer, at: number): string | null {
  const name = decodeText(block, at, at + NAME_BYTES);
  const prefix = hasPrefix(block, at)
    ? decodeText(block, at + PREFIX_AT, at + PREFIX_AT + (isOfStar(block, at) ? STAR_PREFIX_BYTES : PREFIX_BYTES))
    : '';
  if (name === null || prefix === null) return null;
  return prefix === '' ? name : `${prefix}/${name}`;
}

/**
 * Whether the block has a prefix. Only POSIX ustar has one ("ustar" and a NUL); GNU ("ustar" and spaces) keeps times
 * there, v7 nothing.
 */
function hasPrefix(block: Buffer, at: number): boolean {
  return block[at + PREFIX_AT] !== 0 && block[at + MAGIC_AT] === LETTER_U && block[at + MAGIC_AT + 5] === 0;
}

/** Whether star wrote the block: star keeps times after a shorter prefix, and marks the end of the block. */
function isOfStar(block: Buffer, at: number): boolean {
  return block.toString('latin1', at + STAR_MAGIC_AT, at + BLOCK_BYTES) === STAR_MAGIC;
}

/**
 * Writes the header of a file (or of a pax record) into the block at `at`, checksum included: mode 0644, and no time,
 * owner or device, so that equal input gives equal bytes. Returns false if the name or the size does not fit a ustar
 * header: the block's content is then undefined, and a pax record has to carry them. `name` contains no NUL.
 */
export function encodeHeader(
  target: Uint8Array,
  at: number,
  name: string,
  bytes: number,
  type: string = EntryType.File,
): boolean {
  if (bytes > MAX_OCTAL_SIZE) return false;
  const split = name.length > NAME_BYTES ? prefixEnd(name) : 0;
  if (split < 0) return false;
  target.set(TEMPLATE, at);
  const nameSum = putAscii(target, at, name, split === 0 ? 0 : split + 1, name.length);
  const prefixSum = putAscii(target, at + PREFIX_AT, name, 0, split);
  if (Number.isNaN(nameSum + prefixSum)) return false;
  const flag = type.charCodeAt(0);
  target[at + TYPE_AT] = flag;
  const sizeSum = putOctal(target, at + SIZE_AT, SIZE_DIGITS, bytes);
  putOctal(target, at + CHECKSUM_AT, 6, TEMPLATE_SUM + nameSum + prefixSum + sizeSum + flag);
  target[at + CHECKSUM_AT + 6] = 0;
  return true;
}

/** The index of the slash that splits a long name into prefix and name; -1 if none does. */
function prefixEnd(name: string): number {
  const slash = name.lastIndexOf('/', PREFIX_BYTES);
  const rest = name.length - slash - 1;
  return slash > 0 && rest > 0 && rest <= NAME_BYTES ? slash : -1;
}

/** Copies ASCII text and returns the sum of its codes; NaN if it is not ASCII. */
function putAscii(target: Uint8Array, at: number, text: string, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return Number.NaN;
    target[at + i - from] = code;
    sum += code;
  }
  return sum;
}

/** Writes exactly `digits` octal digits. Returns the sum of the digits minus that of as many '0' characters. */
function putOctal(target: Uint8Array, at: number, digits: number, value: number): number {
  let rest = value;
  let sum = 0;
  for (let i = at + digits - 1; i >= at; i--) {
    const digit = rest % 8;
    target[i] = ZERO + digit;
    sum += digit;
    rest = (rest - digit) / 8;
  }
  return sum;
}

const TEMPLATE = template();
const TEMPLATE_SUM = total(TEMPLATE);

/** A header with all constant fields. Its checksum field holds spaces, its size zeros, its type NUL. */
function template(): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write('0000644\0', 100, 'latin1'); // mode
  block.write('0000000\0', 108, 'latin1'); // uid
  block.write('0000000\0', 116, 'latin1'); // gid
  block.write('00000000000\0', SIZE_AT, 'latin1');
  block.write('00000000000\0', 136, 'latin1'); // mtime
  block.write('        ', CHECKSUM_AT, 'latin1');
  block.write('ustar\x0000', MAGIC_AT, 'latin1');
  block.write('0000000\0', 329, 'latin1'); // device numbers
  block.write('0000000\0', 337, 'latin1');
  return block;
}
