import { whyUnsafe } from '../../sample/sample-name.js';
import {
  cutBeforeEnd,
  cutInPayload,
  damaged,
  holdsNul,
  moreBehindEnd,
  notText,
  unsafeName,
  unsupported,
} from './faults.js';
import { BLOCK_BYTES, decodeHeader, EntryType, isLink, padded, type TarHeader } from './header.js';
import { decodePax, type PaxOverrides } from './pax.js';
import { decodeText } from './text.js';
import { type Window, windowOn } from './window.js';

/** A file in an archive. Offsets are in bytes from the start of the archive. */
export interface TarEntry {
  readonly name: string;
  /** Offset of its first header, including long names and pax records. */
  readonly start: number;
  /** Offset of its payload. */
  readonly offset: number;
  /** Length of the payload, in bytes. */
  readonly bytes: number;
  /** Absent for a file. A link has no payload. */
  readonly link?: TarLink;
}

/** The target of a link, as stored in the archive. */
export interface TarLink {
  /** For a hard link, a path in the archive; for a symbolic link, a path relative to the link's folder. */
  readonly target: string;
  readonly isSymbolic: boolean;
}

/** Long names and pax records that precede their entry. `start` is the offset of the first one. */
interface Records {
  readonly start: number;
  readonly longName?: string;
  readonly longLink?: string;
  readonly pax?: PaxOverrides;
}

/** Far longer than any name; a longer record is damage or an attack. */
const MAX_RECORD_BYTES = 1 << 20;

const SPARSE = 'a sparse file';
const REFUSED: Readonly<Record<string, string>> = {
  '3': 'a character device',
  '4': 'a block device',
  '6': 'a FIFO',
  M: 'the rest of a file from another volume',
  S: SPARSE,
};

/** GNU tar's list of the files in a folder, and its volume label. */
const GNU_FOLDER_LIST = 'D';
const GNU_VOLUME_LABEL = 'V';

/**
 * The walk over the headers of an archive, without I/O: it reports what it needs next and takes it from windows of the
 * file, whatever their sizes. It neither reads nor copies payloads.
 *
 * An archive ends with a block of zeros, and only zeros may follow. An archive without that block counts as truncated
 * even if it ends between two entries, and data after it is an error: in both cases samples would be lost silently.
 */
export class TarWalk {
  /** Offset at which the next window has to begin. */
  position = 0;
  /** The minimum length of that window, in bytes. */
  needed = BLOCK_BYTES;
  /** Whether the whole archive has been walked. */
  done = false;

  /** Whether the block of zeros that ends an archive has been seen. */
  ended = false;

  readonly #shard: string;
  readonly #size: number;
  #window: Window = { bytes: Buffer.alloc(0), words: new Int32Array(0) };
  #records: Records | null = null;
  #global: PaxOverrides | null = null;

  /** `shard` is for messages. `size` is that of the whole file in bytes; Infinity if it is not known in advance. */
  constructor(shard: string, size: number) {
    this.#shard = shard;
    this.#size = size;
    this.#move(0, BLOCK_BYTES);
  }

  /**
   * Walks as far as `bytes` reach. They begin at `position`, and in memory at a multiple of 4. Appends the files whose
   * headers it saw to `entries`. Throws an error with the offset of the first invalid header; `entries` then has the
   * files before it.
   */
  advance(bytes: Buffer, entries: TarEntry[]): void {
    const windowStart = this.position;
    const windowEnd = windowStart + bytes.length;
    // The data after the end is checked byte by byte, whatever its alignment.
    if (!this.ended && this.#window.bytes !== bytes) this.#window = windowOn(bytes, bytes.length);
    while (!this.done && this.position + this.needed <= windowEnd) {
      const at = this.position - windowStart;
      if (this.ended) this.#zeros(bytes, at);
      else this.#header(this.#window, at, entries);
    }
  }

  #header(window: Window, at: number, entries: TarEntry[]): void {
    const header = decodeHeader(window, at, this.#shard, this.position);
    if (header === null) this.#endMark();
    else if (isRecord(header.type)) this.#record(header, window.bytes, at);
    else this.#entry(header, entries);
  }

  #endMark(): void {
    if (this.#records !== null) throw damaged(this.#shard, this.#records.start, 'belongs to no file');
    this.ended = true;
    this.#move(this.position + BLOCK_BYTES, 1);
  }

  #zeros(window: Buffer, at: number): void {
    for (let i = at; i < window.length; i++) {
      if (window[i] !== 0) throw moreBehindEnd(this.#shard, this.position + i - at);
    }
    this.#move(this.position + window.length - at, 1);
  }

  /** Reads a long name or pax records, once the window holds all of it. */
  #record(header: TarHeader, window: Buffer, at: number): void {
    const start = this.position;
    if (header.bytes > MAX_RECORD_BYTES) throw damaged(this.#shard, start, `has a record of ${header.bytes} bytes`);
    const whole = BLOCK_BYTES + padded(header.bytes);
    if (at + whole > window.length) {
      this.#move(start, whole);
      return;
    }
    this.#keepRecord(header.type, window.subarray(at + BLOCK_BYTES, at + BLOCK_BYTES + header.bytes));
    this.#move(start + whole, BLOCK_BYTES);
  }

  #keepRecord(type: string, payload: Buffer): void {
    const offset = this.position;
    if (type === EntryType.GlobalPax) {
      this.#global = { ...this.#global, ...decodePax(payload, this.#shard, offset) };
      return;
    }
    this.#records ??= { start: offset };
    if (type === EntryType.GnuLongName) {
      this.#records = { ...this.#records, longName: decodeLongName(payload, this.#shard, offset) };
    } else if (type === EntryType.GnuLongLink) {
      this.#records = { ...this.#records, longLink: decodeText(payload, 0, payload.length) ?? '' };
    } else if (type === EntryType.LocalPax) {
      const pax = { ...this.#records.pax, ...decodePax(payload, this.#shard, offset) };
      this.#records = { ...this.#records, pax };
    }
  }

  #entry(header: TarHeader, entries: TarEntry[]): void {
    const headerAt = this.position;
    const records = this.#records;
    const pax = records !== null || this.#global !== null ? { ...this.#global, ...records?.pax } : null;
    this.#records = null;
    const name = pax?.path || records?.longName || header.name;
    if (name === null) throw notText(this.#shard, headerAt);
    const bytes = pax?.bytes ?? header.bytes;
    const offset = headerAt + BLOCK_BYTES;
    const start = records?.start ?? headerAt;
    const hasPayload = hasPayloadOf(header.type, records?.pax !== undefined);
    const end = offset + (hasPayload ? bytes : 0);
    if (end > this.#size) throw cutInPayload(this.#shard, headerAt, name, bytes, this.#size - offset);
    if (isLink(header.type) && end === offset) {
      const target = pax?.linkTarget || records?.longLink || header.linkTarget;
      const isSymbolic = header.type === EntryType.SymbolicLink;
      entries.push({ name, start, offset, bytes: 0, link: { target, isSymbolic } });
    } else if (this.#isFile(header.type, name, headerAt, pax?.sparse === true)) {
      entries.push({ name, start, offset, bytes });
    }
    this.#move(offset + padded(end - offset), BLOCK_BYTES);
  }

  /** False for entries that are skipped: folders and labels. Throws for entries that are not supported. */
  #isFile(type: string, name: string, offset: number, sparse: boolean): boolean {
    if (type === EntryType.Directory || type === GNU_FOLDER_LIST || type === GNU_VOLUME_LABEL) return false;
    const kind = sparse ? SPARSE : (REFUSED[type] ?? `of the unknown type ${JSON.stringify(type)}`);
    // A hard link that carries its payload is a file.
    if (sparse || (type !== EntryType.File && !isLink(type))) throw unsupported(this.#shard, offset, name, kind);
    const reason = whyUnsafe(name);
    if (reason !== null) throw unsafeName(this.#shard, offset, name, reason);
    // Old tars store folders as files whose name ends with a slash.
    return !name.endsWith('/');
  }

  /** Continues at `position`. Throws if the file ends before what is needed there. */
  #move(position: number, needed: number): void {
    this.position = position;
    this.needed = needed;
    if (this.ended) this.done = position >= this.#size;
    else if (position + needed > this.#size) throw cutBeforeEnd(this.#shard, this.#size);
  }
}

/** Decodes a long name, which a NUL ends. Text after a NUL would mean a cut name, and two names could become the same. */
function decodeLongName(payload: Buffer, shard: string, offset: number): string {
  const end = payload.indexOf(0);
  if (end >= 0 && payload.subarray(end).some((byte) => byte !== 0)) throw holdsNul(shard, offset);
  const longName = decodeText(payload, 0, payload.length);
  if (longName === null) throw notText(shard, offset);
  return longName;
}

/**
 * Whether a payload of the given size follows the entry. None follows a folder (POSIX.1-2017 pax, "ustar Interchange
 * Format", typeflag 5) or a symbolic link. Older formats give hard links the size of their target; in pax the size is
 * their own.
 */
function hasPayloadOf(type: string, hasPax: boolean): boolean {
  if (type === EntryType.Directory || type === EntryType.SymbolicLink) return false;
  return type !== EntryType.HardLink || hasPax;
}

function isRecord(type: string): boolean {
  return (
    type === EntryType.LocalPax ||
    type === EntryType.GlobalPax ||
    type === EntryType.GnuLongName ||
    type === EntryType.GnuLongLink
  );
}
