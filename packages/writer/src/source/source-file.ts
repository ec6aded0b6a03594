import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { FileError, option, reasonOf, Sentence, sentence, sentenceOf, setSentence } from '@shardtool/base';
import { BadFileError } from '../errors.js';
import { type FileTable, pathAt } from './file-table.js';

/** A file that cannot be packed, which makes its sample bad. The caller decides how to handle it. */
export class BadFile extends Error {
  constructor(reason: string | Sentence, options?: { cause?: unknown }) {
    super(String(reason), options);
    if (reason instanceof Sentence) setSentence(this, reason);
  }
}

/** Errors caused by limits of the system, not by the file. They stop the pack. */
const SYSTEM_LIMITS = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);
/** Node reads no more than 2^31 - 1 bytes at once. */
const MAX_READ_BYTES = 1 << 30;
/** A pipe that replaced a file must not be waited for. */
export const READ_NOW = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const BEHIND = new Uint8Array(1);

/**
 * Reads a whole file into `target`, which has the size that was measured. Throws {@link BadFile} if the file cannot be
 * read or its size has changed. The read requests one more byte to detect a file that has grown, so the byte after
 * `target` in its buffer, if there is one, may be overwritten.
 */
export function readSourceFile(path: string, target: Uint8Array): void {
  let fd: number | undefined;
  try {
    fd = openSync(path, READ_NOW);
    const { buffer, byteOffset, length } = target;
    if (length === 0) checkIsFile(path, fstatSync(fd));
    const isRoomBehind = byteOffset + length < buffer.byteLength;
    const place = isRoomBehind ? new Uint8Array(buffer, byteOffset, length + 1) : target;
    let done = 0;
    while (done < place.length) {
      const asked = Math.min(place.length - done, MAX_READ_BYTES);
      const read = readSync(fd, place, done, asked, null);
      done += read;
      if (read === 0 || (read < asked && done === length)) break;
    }
    if (done !== length || (!isRoomBehind && readSync(fd, BEHIND, 0, 1, null) > 0)) {
      throw changedFile(path);
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    throw unreadableFile(path, cause);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

export function isSystemLimit(error: unknown): boolean {
  return SYSTEM_LIMITS.has((error as NodeJS.ErrnoException).code ?? '');
}

/** Converts a system error to an error of the file, unless it is a limit of the system. */
export function unreadableFile(path: string, cause: Error): BadFile | FileError {
  const message = `${path} cannot be read: ${reasonOf(cause)}.`;
  return isSystemLimit(cause) ? new FileError({ path }, message, { cause }) : new BadFile(message, { cause });
}

export function changedFile(path: string): BadFile {
  return new BadFile(`${path} has changed since the pack began.`);
}

/**
 * Throws {@link BadFile} for a pipe, a socket or a device, which have the size 0. A folder is detected when it is read.
 */
export function checkIsFile(path: string, stat: Stats): void {
  if (!stat.isFile() && !stat.isDirectory()) throw new BadFile(`${path} is a pipe or a device, not a file.`);
}

/**
 * Throws {@link BadFile} if one of the files `from` to `to - 1` was modified since it was measured, but kept its size.
 * Changed sizes and deleted files are detected when they are read.
 */
export function checkUnchanged(root: string, files: FileTable, from: number, to: number): void {
  for (let file = from; file < to; file++) {
    const path = root + pathAt(files, file);
    const stat = files.bytes[file] === -1 ? undefined : statSync(path, { throwIfNoEntry: false });
    if (stat === undefined || stat.mtimeMs === files.mtimeMs[file]) continue;
    throw changedFile(path);
  }
}

/** Returns the error that stops a pack at a bad file. */
export function badFile(bad: Error, path: string): BadFileError {
  const message = sentence`${sentenceOf(bad)} To skip such files and list them in quarantine.jsonl, set ${option('onBad', 'quarantine')}.`;
  return new BadFileError({ path }, message, { cause: bad });
}
