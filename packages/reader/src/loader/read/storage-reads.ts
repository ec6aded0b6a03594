/** Unit of getrusage(2), whatever the block size of the disk. */
const BLOCK_BYTES = 512;

/** Returns the bytes that this process has read from storage so far, without those from the page cache. */
export function storageReadBytes(): number {
  return process.resourceUsage().fsRead * BLOCK_BYTES;
}
