import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';

/** Number of digits of the count. The text always has the same length, so one write replaces all of it or nothing. */
const DIGITS = 16;

/**
 * The count of a cache folder: bytes that are stored or reserved by a claim, as text in a file. Change it only under
 * the lock of the folder. The count is never less than what the folder holds.
 */
export class UsedBytes {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  /** The count; 0 if the file is missing or cannot be read. */
  get bytes(): number {
    try {
      return Number(readFileSync(this.#file, 'utf8')) || 0;
    } catch {
      return 0;
    }
  }

  set(bytes: number): void {
    const fd = openSync(this.#file, constants.O_WRONLY | constants.O_CREAT, 0o600);
    try {
      writeSync(fd, String(Math.max(0, bytes)).padStart(DIGITS, '0'), 0);
    } finally {
      closeSync(fd);
    }
  }

  add(bytes: number): void {
    this.set(this.bytes + bytes);
  }
}
