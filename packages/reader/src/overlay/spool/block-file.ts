import { closeSync, writeSync } from 'node:fs';
import { FileError, openWithoutName, readFullySync, reasonOf, remedyOf, removeLeftWithoutName } from '@shardtool/base';

/** Where a block of rows is in the file. */
export interface Block {
  readonly offset: number;
  readonly bytes: number;
}

/** Blocks of bytes in a file that has no name. */
export class BlockFile {
  readonly #folder: string;
  readonly #fd: number;
  #length = 0;

  constructor(folder: string) {
    this.#folder = folder;
    try {
      removeLeftWithoutName(folder);
      this.#fd = openWithoutName(folder);
    } catch (cause) {
      throw unwritten(folder, cause);
    }
  }

  append(bytes: Uint8Array): Block {
    const block = { offset: this.#length, bytes: bytes.length };
    try {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(this.#fd, bytes, done, bytes.length - done, this.#length + done);
      }
    } catch (cause) {
      throw unwritten(this.#folder, cause);
    }
    this.#length += bytes.length;
    return block;
  }

  read({ offset, bytes }: Block): Buffer {
    const buffer = Buffer.allocUnsafe(bytes);
    readFullySync(this.#fd, buffer, offset);
    return buffer;
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function unwritten(folder: string, cause: unknown): FileError {
  const message = `The labels cannot be sorted in ${folder}: ${reasonOf(cause)}; ${remedyOf(cause as Error)}.`;
  return new FileError({ path: folder }, message, { cause });
}
