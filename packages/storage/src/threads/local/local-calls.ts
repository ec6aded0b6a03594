/** Blocking calls for local files, for threads whose purpose is to wait. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { unreadable, unusable } from '../../local.js';
import type { OpenedFile } from '../calls.js';

/**
 * Opens a file for reading. Throws {@link FileError} with the path if the file is missing, unreadable or not a regular
 * file.
 */
export function openNow(path: string): OpenedFile {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is not a regular file');
    return { file, size: found.size };
  } catch (cause) {
    if (file !== undefined) closeSync(file);
    throw unusable(path, 'opened', cause);
  }
}

/**
 * Fills `target` from an open file, starting at byte `offset`. Returns the number of bytes read, which is less at the
 * end of the file.
 */
export function readNow(path: string, file: number, offset: number, target: Uint8Array): number {
  let done = 0;
  try {
    while (done < target.length) {
      const got = readSync(file, target, done, target.length - done, offset + done);
      if (got === 0) break;
      done += got;
    }
    return done;
  } catch (cause) {
    return unreadable(path, offset + done, cause);
  }
}
