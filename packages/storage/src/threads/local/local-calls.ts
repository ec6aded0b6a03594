/** Calls of this machine's files that wait until they are done: for threads that are there to wait. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { unreadable, unusable } from '../../local.js';
import type { OpenedFile } from '../calls.js';

/** Opens a file for reading. Throws {@link FileError} with the path where it is missing, unreadable or no regular file. */
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

/** Fills `target` from byte `offset` of an open file on, as far as there are bytes; returns how many. */
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
