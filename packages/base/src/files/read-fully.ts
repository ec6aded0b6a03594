import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';

/**
 * Fills `target` with the bytes from `offset` of a file: a single read may return fewer. Returns the number of bytes that were read,
 * which is less than `target.length` only at the end of the file.
 */
export async function readFully(file: FileHandle, target: Uint8Array, offset: number): Promise<number> {
  let done = 0;
  for (let more = -1; more !== 0 && done < target.length; done += more) {
    more = (await file.read(target, done, target.length - done, offset + done)).bytesRead;
  }
  return done;
}

/** {@link readFully}, by synchronous calls. */
export function readFullySync(fd: number, target: Uint8Array, offset: number): number {
  let done = 0;
  for (let more = -1; more !== 0 && done < target.length; done += more) {
    more = readSync(fd, target, done, target.length - done, offset + done);
  }
  return done;
}
