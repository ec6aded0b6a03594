import { createRequire } from 'node:module';

type Checksum = (bytes: Uint8Array | string, before?: number) => number;

/**
 * Checksums that use instructions of the processor. Null if the optional package is not installed, or has no build for
 * this system.
 */
export const NATIVE_CHECKSUMS: { readonly crc32: Checksum; readonly crc32c: Checksum } | null = load();

function load() {
  try {
    return createRequire(import.meta.url)('@node-rs/crc32');
  } catch {
    return null;
  }
}
