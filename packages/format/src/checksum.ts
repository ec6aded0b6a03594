/**
 * crc32 as in zip, gzip and PNG (ISO 3309), an unsigned 32-bit number. A second argument is the crc32 of the bytes
 * before, so that a payload can be summed in pieces.
 */
export { crc32 } from 'node:zlib';

/** Eight lower-case hexadecimal digits. */
export function crc32Hex(checksum: number): string {
  return checksum.toString(16).padStart(8, '0');
}
