import { crc32 as zlibCrc32 } from 'node:zlib';
import { SampleChecksumError } from '../errors.js';
import { NATIVE_CHECKSUMS } from './native-checksums.js';

/**
 * From this number of bytes on, native code is two to three times as fast as Node's zlib. For fewer bytes, the call
 * costs more than it saves.
 */
const NATIVE_FROM = 1024;

/**
 * crc32 as in zip, gzip and PNG (ISO 3309), as an unsigned 32-bit number. To sum a payload in pieces, pass the crc32 of
 * the preceding bytes as the second argument.
 */
export function crc32(bytes: Uint8Array | string, before = 0): number {
  // For no bytes, zlib returns 0 if they have no memory (crc32.c: buf == Z_NULL), as those of an empty Float64Array.
  if (bytes.length === 0) return before;
  return NATIVE_CHECKSUMS === null || bytes.length < NATIVE_FROM
    ? zlibCrc32(bytes, before)
    : NATIVE_CHECKSUMS.crc32(bytes, before);
}

/** Eight lower-case hexadecimal digits. */
export function crc32Hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}

/** The end of an error message about bytes whose crc32 differs from the one in the index. */
export function changedSincePacked(actual: number, expected: number): string {
  return `has changed since it was packed (checksum: crc32 ${crc32Hex(actual)}, the index says ${crc32Hex(expected)})`;
}

/** Compares the checksum of a field with the one in the index. Throws {@link SampleChecksumError} if they differ. */
export function checkFieldCrc32(field: {
  readonly shard: string;
  readonly key: string;
  readonly field: string;
  readonly bytes: Uint8Array;
  readonly expected: number;
}): void {
  checkFieldSum({ ...field, actual: crc32(field.bytes) });
}

/** Like {@link checkFieldCrc32}, for a crc32 that is already known. */
export function checkFieldSum(field: {
  readonly shard: string;
  readonly key: string;
  readonly field: string;
  readonly actual: number;
  readonly expected: number;
}): void {
  const { shard, key, field: name, actual, expected } = field;
  if (actual === expected) return;
  throw new SampleChecksumError(
    { shard, key, field: name, expected, actual },
    `${shard}: field "${name}" of sample "${key}" ${changedSincePacked(actual, expected)}. Run "shardtool verify" to list ` +
      'every damaged sample.',
  );
}
