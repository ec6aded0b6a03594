import { NATIVE_CHECKSUMS } from './native-checksums.js';

/**
 * From this number of bytes on, native code is faster than tables, up to ten times for long payloads. For fewer bytes,
 * the call costs more than it saves.
 */
const NATIVE_FROM = 256;

/** The Castagnoli polynomial, bits reversed (RFC 3720, appendix B.4). */
const POLYNOMIAL = 0x82f63b78;

/** Eight tables of 256 words: table k contains the crc of a byte followed by k zero bytes. */
const TABLES = makeTables();

/** crc32c of bytes as used by TFRecord, an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  return NATIVE_CHECKSUMS === null || bytes.length < NATIVE_FROM
    ? crc32cByTables(bytes)
    : NATIVE_CHECKSUMS.crc32c(bytes);
}

/**
 * Computes crc32c with eight bytes at a time (Kounavis and Berry, "slicing by 8"), for short inputs and for systems
 * without native code.
 */
export function crc32cByTables(bytes: Uint8Array): number {
  let crc = ~0;
  let at = 0;
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  for (const end = bytes.length - 7; at < end; at += 8) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      t7[low & 255]! ^
      t6[(low >>> 8) & 255]! ^
      t5[(low >>> 16) & 255]! ^
      t4[low >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) crc = t0[(crc ^ bytes[at]!) & 255]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/**
 * Masks a crc32c as TFRecord stores it, so that data containing checksums gets a good checksum itself (tensorflow,
 * core/lib/hash/crc32c.h).
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

function makeTables(): Int32Array[] {
  const tables = [new Int32Array(256)];
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    tables[0]![byte] = crc;
  }
  for (let k = 1; k < 8; k++) {
    const before = tables[k - 1]!;
    tables.push(before.map((crc) => tables[0]![crc & 255]! ^ (crc >>> 8)));
  }
  return tables;
}
