import { createRequire } from 'node:module';

type Checksum = (bytes: Uint8Array | string, before?: number) => number;

/**
 * Checksums by the processor's own instructions; null where the package is not installed or has no build for this system: it is
 * a dependency that may be missing.
 */
export const NATIVE_CHECKSUMS: { readonly crc32: Checksum; readonly crc32c: Checksum } | null = load();

function load() {
  try {
    return createRequire(import.meta.url)('@node-rs/crc32');
  } catch {
    return null;
  }
}
