import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FileError, reasonOf } from '@shardtool/base';

/** Reads a file of WebAssembly of this package. Throws FileError if a bundler has moved the code away from it. */
export function readKernel(url: URL): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(readFileSync(url));
  } catch (cause) {
    const path = fileURLToPath(url);
    const message = `${path} cannot be read: ${reasonOf(cause)}. If your program is bundled, keep "shardtool" out of the bundle (docs/bundlers.md).`;
    throw new FileError({ path }, message, { cause });
  }
}
