import { crc32, crc32Hex } from '@shardtool/base';

/**
 * The last entry of the footer's key-value metadata: crc32 of the whole file, computed with zeros in place of its own
 * eight digits. Parquet has checksums only for pages, so a damaged footer would go unnoticed.
 */
export const SEAL_KEY = 'shardtool.crc32';
export const OPEN_SEAL = '00000000';

/** Bytes between key and value: the field header and the length of the value in Thrift's compact protocol. */
const GAP_BYTES = 2;

/** Replaces {@link OPEN_SEAL} in a file by the file's checksum. */
export function seal(file: Uint8Array): void {
  const at = sealOffset(file);
  Buffer.from(file.buffer, file.byteOffset, file.byteLength).write(crc32Hex(crc32(file)), at, 'latin1');
}

export type SealState = 'whole' | 'damaged' | 'missing';

export function sealState(file: Uint8Array): SealState {
  const at = sealOffset(file);
  if (at < 0 || at + OPEN_SEAL.length > file.length) return 'missing';
  const end = at + OPEN_SEAL.length;
  const found = Buffer.from(file.buffer, file.byteOffset + at, OPEN_SEAL.length).toString('latin1');
  const head = crc32(OPEN_SEAL, crc32(file.subarray(0, at)));
  return found === crc32Hex(crc32(file.subarray(end), head)) ? 'whole' : 'damaged';
}

/** The offset of the digits; negative if there are none. */
function sealOffset(file: Uint8Array): number {
  const key = Buffer.from(file.buffer, file.byteOffset, file.byteLength).lastIndexOf(SEAL_KEY, undefined, 'latin1');
  return key < 0 ? -1 : key + SEAL_KEY.length + GAP_BYTES;
}
