import { closeSync, constants, openSync, readSync } from 'node:fs';
import { FileError } from '@shardtool/format';

/** A file that cannot be packed, and with it its sample. What becomes of it, the caller decides. */
export class BadFile extends Error {}

/** Errors that are the system's limits, not the file's fault: they end the pack. */
const SYSTEM_LIMITS = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);
/** Node reads no more than 2^31 - 1 bytes at once. */
const MAX_READ_BYTES = 1 << 30;
/** A pipe that took a file's place must not be waited for. */
const READ_NOW = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
const BEHIND = new Uint8Array(1);

/**
 * Reads a whole file into `target`, which has the size that the file had when it was measured. Throws {@link BadFile}
 * where the file cannot be read, or has another size by now.
 */
export function readSourceFile(path: string, target: Uint8Array): void {
  let fd: number | undefined;
  try {
    fd = openSync(path, READ_NOW);
    let done = 0;
    while (done < target.length) {
      const read = readSync(fd, target, done, Math.min(target.length - done, MAX_READ_BYTES), null);
      if (read === 0) break;
      done += read;
    }
    if (done < target.length || readSync(fd, BEHIND, 0, 1, null) > 0) {
      throw new BadFile(`${path} has changed since the pack began.`);
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    const message = `${path} cannot be read (${cause.message}).`;
    const isLimit = SYSTEM_LIMITS.has((cause as NodeJS.ErrnoException).code ?? '');
    throw isLimit ? new FileError({ path }, message, { cause }) : new BadFile(message, { cause });
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
