import { DiskFullError } from './errors.js';

/** What the system says when there is no room: on the disk, in the user's share of it, or in one file. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** The error that ends what is written: {@link DiskFullError} where `error` is at bottom one of the system's that say so. */
export function asDiskFull(error: unknown, output: string): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!NO_ROOM.has((cause as NodeJS.ErrnoException).code ?? '')) continue;
    const message = `The disk of ${output} is full (${cause.message}); make room and do the same again, or choose a folder on another disk.`;
    return new DiskFullError({ path: output }, message, { cause: error });
  }
  return error;
}
