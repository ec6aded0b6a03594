/** getrusage(2) counts in blocks of this size, whatever the disk's. */
const BLOCK_BYTES = 512;

/** Bytes that this process has had read from storage so far: what comes out of the page cache does not count. */
export function storageReadBytes(): number {
  return process.resourceUsage().fsRead * BLOCK_BYTES;
}
