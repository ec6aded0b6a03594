import { isUtf8 } from 'node:buffer';
import {
  crc32,
  DamagedShardError,
  TruncatedShardError,
  UnsupportedEntryError,
  UnsupportedShardError,
} from '@shardtool/base';
import type { Source } from '../../source.js';
import { becameShorter } from '../bytes/file-window.js';

/** One file in a zip, from its central directory. */
export interface ZipEntry {
  readonly name: string;
  /** The range that the zip uses for it: its local header, its bytes, and what may follow. */
  readonly offset: number;
  readonly extent: number;
  readonly isDeflated: boolean;
  /** Size as stored, and after inflation. */
  readonly storedBytes: number;
  readonly bytes: number;
  readonly crc32: number;
}

/** APPNOTE.TXT, 4.3.7, 4.3.12, 4.3.14, 4.3.15, 4.3.16: signatures, and lengths of the records with a fixed length. */
export const LOCAL = { signature: 0x04034b50, bytes: 30 };
const CENTRAL = { signature: 0x02014b50, bytes: 46 };
const END = { signature: 0x06054b50, bytes: 22 };
const END_64 = { signature: 0x06064b50, bytes: 56 };
const LOCATOR_64 = { signature: 0x07064b50, bytes: 20 };
const MOST_COMMENT_BYTES = 0xffff;
/** This number means that the value is in the zip64 extra field (4.5.3). */
const IN_EXTRA = 0xffffffff;
const ZIP64 = 1;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;
const UTF8 = 1 << 11;
/** Extra field with the name in UTF-8 (4.6.9), after its version and a crc32 of the name in the header. */
const UNICODE_PATH = 0x7075;
const UNICODE_PATH_HEAD_BYTES = 5;
/** The highest expansion by deflate. */
const MOST_RATIO = 1032;
/** Room for the names of some ten million files. */
const MOST_DIRECTORY_BYTES = 1 << 30;
/** Size of one read. */
const READ_BYTES = 4 << 20;

/**
 * Reads the central directory of a zip, zip64 included: its files in the order of their offsets, without folders.
 * Throws {@link TruncatedShardError}, {@link DamagedShardError}, {@link UnsupportedEntryError} for encrypted files and
 * for methods other than stored and deflated, {@link UnsupportedShardError} for a zip in several pieces.
 */
export async function readDirectory(source: Source): Promise<ZipEntry[]> {
  const { location: shard } = source;
  const { offset, bytes, count, shift } = await findDirectory(source);
  if (offset + bytes > source.size) throw cut(shard, source.size);
  if (bytes > MOST_DIRECTORY_BYTES || count * CENTRAL.bytes > bytes)
    throw damaged(shard, offset, 'its directory does not have the length in its end record');
  const directory = Buffer.from(new ArrayBuffer(bytes));
  for (let at = 0; at < bytes; at += READ_BYTES)
    await fill(source, offset + at, directory.subarray(at, at + READ_BYTES));
  const found: Omit<ZipEntry, 'extent'>[] = [];
  let hasSlashes = false;
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + CENTRAL.bytes > bytes || directory.readUInt32LE(at) !== CENTRAL.signature)
      throw damaged(shard, offset + at, `its directory has no entry ${i} of ${count}`);
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((field) => directory.readUInt16LE(at + field));
    const end = at + CENTRAL.bytes + nameBytes! + extraBytes! + commentBytes!;
    if (end > bytes) throw damaged(shard, offset + at, 'an entry of its directory is truncated');
    const entry = entryAt(directory, at, shift, shard);
    if (!isFolderName(entry.name)) {
      if (entry.offset + LOCAL.bytes + entry.storedBytes > offset)
        throw damaged(shard, offset + at, `the file ${entry.name} would be after the end of the zip`);
      found.push(entry);
    }
    hasSlashes ||= entry.name.includes('/');
    at = end;
  }
  found.sort((a, b) => a.offset - b.offset);
  const nameOf = hasSlashes ? (name: string) => name : withSlashes;
  return found.map((entry, i) => {
    return { ...entry, name: withoutDots(nameOf(entry.name)), extent: (found[i + 1]?.offset ?? offset) - entry.offset };
  });
}

/**
 * Old PowerShell and .NET write backslashes between folders, in all names of a zip. If any name has a slash, a
 * backslash is an ordinary character, as other systems allow.
 */
function withSlashes(name: string): string {
  return name.replaceAll('\\', '/');
}

/** bsdtar and others that zip the folder "." write "./" at the start of all names. */
function withoutDots(name: string): string {
  return name.replace(/(^|\/)(?:\.\/+)+/g, '$1');
}

function isFolderName(name: string): boolean {
  return name.endsWith('/') || name.endsWith('\\');
}

/** Offset, length and number of entries of the directory. */
interface Directory {
  readonly offset: number;
  readonly bytes: number;
  readonly count: number;
  /** The number of bytes before the archive if its offsets do not include them: those of a self-extracting program. */
  readonly shift: number;
}

async function findDirectory(source: Source): Promise<Directory> {
  const { location: shard, size } = source;
  const tail = Buffer.alloc(Math.min(size, LOCATOR_64.bytes + END.bytes + MOST_COMMENT_BYTES));
  const base = size - tail.length;
  await fill(source, base, tail);
  let at = tail.length - END.bytes;
  while (
    at >= 0 &&
    !(tail.readUInt32LE(at) === END.signature && at + END.bytes + tail.readUInt16LE(at + 20) <= tail.length)
  )
    at--;
  if (at < 0) throw cut(shard, size);
  const [disk, of] = [tail.readUInt16LE(at + 4), tail.readUInt16LE(at + 6)];
  const plain = {
    count: tail.readUInt16LE(at + 10),
    bytes: tail.readUInt32LE(at + 12),
    offset: tail.readUInt32LE(at + 16),
  };
  const locator = at - LOCATOR_64.bytes;
  const isLarge = locator >= 0 && tail.readUInt32LE(locator) === LOCATOR_64.signature;
  if (!isLarge) {
    if (disk !== 0 || of !== 0) throw inPieces(shard);
    return shifted(source, plain, base + at);
  }
  const stated = Number(tail.readBigUInt64LE(locator + 8));
  const head = Buffer.alloc(END_64.bytes);
  if (stated + head.length > size)
    throw damaged(shard, base + locator, 'the end record of its directory is after its locator');
  let end = stated;
  await fill(source, end, head);
  if (head.readUInt32LE(0) !== END_64.signature) {
    // If the file has other bytes before the archive, the stated offset is too small; the record is right before its locator.
    end = Math.max(0, base + locator - END_64.bytes);
    await fill(source, end, head);
  }
  if (head.readUInt32LE(0) !== END_64.signature)
    throw damaged(shard, stated, 'the end record of its directory is invalid');
  if (head.readUInt32LE(16) !== 0 || head.readUInt32LE(20) !== 0) throw inPieces(shard);
  const [count, bytes, offset] = [32, 40, 48].map((field) => Number(head.readBigUInt64LE(field)));
  return shifted(source, { count: count!, bytes: bytes!, offset: offset! }, end);
}

/** The true position of the directory: it ends at `end` if bytes were put before the archive, which its offsets do not include. */
async function shifted(source: Source, stated: Omit<Directory, 'shift'>, end: number): Promise<Directory> {
  const shift = end - stated.bytes - stated.offset;
  if (shift <= 0 || stated.count === 0 || (await isDirectory(source, stated.offset))) return { ...stated, shift: 0 };
  if (!(await isDirectory(source, stated.offset + shift))) return { ...stated, shift: 0 };
  return { ...stated, offset: stated.offset + shift, shift };
}

async function isDirectory(source: Source, offset: number): Promise<boolean> {
  const signature = Buffer.alloc(4);
  if (offset + signature.length > source.size) return false;
  await fill(source, offset, signature);
  return signature.readUInt32LE() === CENTRAL.signature;
}

function entryAt(directory: Buffer, at: number, shift: number, shard: string): Omit<ZipEntry, 'extent'> {
  const flags = directory.readUInt16LE(at + 8);
  const method = directory.readUInt16LE(at + 10);
  const nameEnd = at + CENTRAL.bytes + directory.readUInt16LE(at + 28);
  const extra = directory.subarray(nameEnd, nameEnd + directory.readUInt16LE(at + 30));
  const name = nameOf(directory.subarray(at + CENTRAL.bytes, nameEnd), extra, (flags & UTF8) !== 0);
  const short = {
    bytes: directory.readUInt32LE(at + 24),
    storedBytes: directory.readUInt32LE(at + 20),
    offset: directory.readUInt32LE(at + 42),
  };
  const { bytes, storedBytes, offset } = withExtra(short, extra) ?? { bytes: -1, storedBytes: -1, offset: -1 };
  const isFolder = isFolderName(name);
  if (!isFolder && (flags & ENCRYPTED) !== 0)
    throw unsupported(shard, name, 'is encrypted', 'unpack it, and pack it again without a password');
  if (!isFolder && method !== STORED && method !== DEFLATED)
    throw unsupported(shard, name, `is compressed with method ${method}`, 'create the zip again, stored or deflated');
  const isPossible = method === STORED ? bytes === storedBytes : bytes <= storedBytes * MOST_RATIO + MOST_RATIO;
  if (!(bytes >= 0 && isPossible)) throw damaged(shard, at, `the lengths of the file ${name} contradict each other`);
  const crc32OfFile = directory.readUInt32LE(at + 16);
  return { name, offset: offset + shift, storedBytes, bytes, isDeflated: method === DEFLATED, crc32: crc32OfFile };
}

/** Numbers that are too long for the entry, from its extra field; null if they are missing there. */
function withExtra<T extends { bytes: number; storedBytes: number; offset: number }>(
  short: T,
  extra: Buffer,
): T | null {
  const long = (['bytes', 'storedBytes', 'offset'] as const).filter((name) => short[name] === IN_EXTRA);
  if (long.length === 0) return short;
  const field = extraField(extra, ZIP64);
  // A file may really have that length.
  if (field === null) return short;
  if (field.length < 8 * long.length) return null;
  return { ...short, ...Object.fromEntries(long.map((name, i) => [name, Number(field.readBigUInt64LE(8 * i))])) };
}

/** The extra field of a kind; null if there is none. */
function extraField(extra: Buffer, kind: number): Buffer | null {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) === kind) return extra.subarray(at + 4, at + 4 + extra.readUInt16LE(at + 2));
  }
  return null;
}

/**
 * A name is UTF-8 if its flag says so, and most are without the flag; else it is in code page 437 (appendix D), in
 * which every byte is a character, so that two names never become the same.
 */
function nameOf(stored: Buffer, extra: Buffer, isUtf8Said: boolean): string {
  const unicode = isUtf8Said ? null : extraField(extra, UNICODE_PATH);
  const isOfName =
    unicode !== null && unicode.length > UNICODE_PATH_HEAD_BYTES && unicode.readUInt32LE(1) === crc32(stored);
  const bytes = isOfName ? unicode.subarray(UNICODE_PATH_HEAD_BYTES) : stored;
  if (isUtf8(bytes)) return bytes.toString('utf8');
  return Array.from(bytes, (byte) => (byte < 0x80 ? String.fromCharCode(byte) : CP437[byte - 0x80]!)).join('');
}

/** The upper half of code page 437. */
const CP437 = Array.from(
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0',
);

export async function fill(source: Source, offset: number, target: Uint8Array): Promise<void> {
  const read = await source.readAt(offset, target);
  if (read < target.length) throw becameShorter(source.location, offset + read);
}

function cut(shard: string, size: number): TruncatedShardError {
  const message = `${shard}: it does not end like a zip, so it is not one, or was truncated at byte ${size}; fetch or write it again.`;
  return new TruncatedShardError({ shard, offset: size }, message);
}

function damaged(shard: string, offset: number, what: string, cause?: unknown): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; it is damaged: fetch or write it again.`, {
    cause,
  });
}

function unsupported(shard: string, path: string, what: string, remedy: string): UnsupportedEntryError {
  return new UnsupportedEntryError({ shard, path }, `${shard}: the file ${path} ${what}; ${remedy}.`);
}

function inPieces(shard: string): UnsupportedShardError {
  return new UnsupportedShardError(
    { shard },
    `${shard}: it is one piece of a split zip; join the pieces first ("zip -s 0").`,
  );
}
