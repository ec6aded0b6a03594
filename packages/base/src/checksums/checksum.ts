import { crc32 as zlibCrc32 } from 'node:zlib';
import { SampleChecksumError } from '../errors.js';
import { NATIVE_CHECKSUMS } from './native-checksums.js';

/** Two to three times as fast as Node's zlib from here on, in bytes; below, calling it costs more than it saves. */
const NATIVE_FROM = 1024;

/**
 * crc32 as in zip, gzip and PNG (ISO 3309), an unsigned 32-bit number. A second argument is the crc32 of the bytes
 * before, so that a payload can be summed in pieces.
 */
export function crc32(bytes: Uint8Array | string, before = 0): number {
  return NATIVE_CHECKSUMS === null || bytes.length < NATIVE_FROM
    ? zlibCrc32(bytes, before)
    : NATIVE_CHECKSUMS.crc32(bytes, before);
}

/** Eight lower-case hexadecimal digits. */
export function crc32Hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}

/** The end of a sentence about bytes whose crc32 is not the one in the index. */
export function changedSincePacked(actual: number, expected: number): string {
  return `has changed since it was packed (checksum: crc32 ${crc32Hex(actual)}, the index says ${crc32Hex(expected)})`;
}

/** Compares one field of a sample with what the index says. Throws {@link SampleChecksumError}. */
export function checkFieldCrc32(field: {
  readonly shard: string;
  readonly key: string;
  readonly field: string;
  readonly bytes: Uint8Array;
  readonly expected: number;
}): void {
  checkFieldSum({ ...field, actual: crc32(field.bytes) });
}

/** The same, if the crc32 is already known. */
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
