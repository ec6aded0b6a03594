import { damaged, holdsNul, notText } from './faults.js';
import { decodeText } from './text.js';

/** The pax records of an entry that are needed to read it. An empty path cancels an earlier one. */
export interface PaxOverrides {
  readonly path?: string;
  readonly bytes?: number;
  /** The target of a link; '' if it is not UTF-8. */
  readonly linkTarget?: string;
  /** Whether the records include one of GNU tar's for sparse files. */
  readonly sparse?: true;
}

const SPACE = 0x20;
const EQUALS = 0x3d;
const NEWLINE = 0x0a;

/**
 * Decodes the records of a pax header: `"%d %s=%s\n"` each, where the number is the length of the whole record
 * (POSIX.1-2017 pax, "pax Extended Header"). `shard` and `offset` are for messages. Throws a `DamagedShardError` if a
 * record or its length is malformed, and an `EntryNameError` if a path is not UTF-8 or contains a NUL.
 */
export function decodePax(payload: Buffer, shard: string, offset: number): PaxOverrides {
  const overrides: { path?: string; bytes?: number; linkTarget?: string; sparse?: true } = {};
  let at = 0;
  while (at < payload.length) {
    const space = payload.indexOf(SPACE, at);
    const length = space < 0 ? '' : payload.toString('latin1', at, space);
    const end = at + Number(length);
    const equals = payload.indexOf(EQUALS, space);
    // The shortest record is "5 a=\n". A length with more digits than a block counts cannot be right either. Some writers add leading
    // zeros.
    const sound = /^0*[1-9]\d{0,8}$/.test(length) && end <= payload.length && equals > space + 1 && equals < end - 1;
    if (!sound || payload[end - 1] !== NEWLINE) throw damaged(shard, offset, 'has a malformed pax record');
    const keyword = payload.toString('latin1', space + 1, equals);
    const value = payload.subarray(equals + 1, end - 1);
    if (keyword === 'path') overrides.path = decodePath(value, shard, offset);
    else if (keyword === 'size') overrides.bytes = decodeSize(value, shard, offset);
    else if (keyword === 'linkpath') overrides.linkTarget = decodeText(value, 0, value.length) ?? '';
    else if (keyword.startsWith('GNU.sparse.')) overrides.sparse = true;
    at = end;
  }
  return overrides;
}

function decodePath(value: Buffer, shard: string, offset: number): string {
  if (value.includes(0)) throw holdsNul(shard, offset);
  const path = decodeText(value, 0, value.length);
  if (path === null) throw notText(shard, offset);
  return path;
}

function decodeSize(value: Buffer, shard: string, offset: number): number {
  const text = value.toString('latin1');
  if (/^0*\d{1,20}$/.test(text)) return Number(text);
  throw damaged(shard, offset, `has a pax record with a size of ${JSON.stringify(text)}`);
}

/** Encodes one record. Its length counts its own digits. */
export function encodePaxRecord(keyword: string, value: string): Buffer {
  const rest = Buffer.from(` ${keyword}=${value}\n`);
  let length = rest.length + 1;
  while (length !== rest.length + String(length).length) length = rest.length + String(length).length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}
