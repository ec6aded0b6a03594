/** Calls of this machine's files that wait until they are done: for threads that are there to wait. */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { unreadable, unusable } from '../local.js';

/** Opens a file for reading. Throws {@link FileError} with the path where it is missing, unreadable or no regular file. */
export function openNow(path: string): number {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    if (!fstatSync(file).isFile()) throw new Error('it is not a regular file');
    return file;
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

/** All of a file, in memory of its own, which can go to another thread. */
export function readFileNow(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path));
  } catch (cause) {
    throw unusable(path, 'read', cause);
  }
}
