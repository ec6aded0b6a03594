/** crc32 of `node:zlib` for browsers. They cannot decompress synchronously, so the rest of it throws. */
import { UnsupportedShardError } from '../../errors.js';

/** Eight tables of crc32 (ISO 3309): a step takes eight bytes. */
const TABLES = tables();

export function crc32(given: Uint8Array | string, before = 0): number {
  const bytes = typeof given === 'string' ? new TextEncoder().encode(given) : given;
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as unknown as FixedTables;
  let sum = ~before;
  let at = 0;
  for (const end = bytes.length - 7; at < end; at += 8) {
    const low = sum ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    sum =
      t7[low & 0xff]! ^
      t6[(low >>> 8) & 0xff]! ^
      t5[(low >>> 16) & 0xff]! ^
      t4[low >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) sum = t0[(sum ^ bytes[at]!) & 0xff]! ^ (sum >>> 8);
  return ~sum >>> 0;
}

type Table = Int32Array;
type FixedTables = readonly [Table, Table, Table, Table, Table, Table, Table, Table];

function tables(): Table[] {
  const first = Int32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
    return value;
  });
  const all = [first];
  for (let k = 1; k < 8; k++) {
    const last = all[k - 1]!;
    all.push(last.map((value) => first[value & 0xff]! ^ (value >>> 8)));
  }
  return all;
}

function refuse(): never {
  throw new UnsupportedShardError({}, 'A browser cannot decompress this shard: convert it with "shardtool convert".');
}

export const gunzipSync = refuse;
export const brotliDecompressSync = refuse;
export const inflateSync = refuse;
export const inflateRawSync = refuse;
