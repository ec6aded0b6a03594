import { reasonOf, systemCodeOf } from '@shardtool/base';
import { DiskFullError } from './errors.js';

/** Codes of the system's errors for a lack of space: on the disk, in the user's quota, or in one file. */
const NO_ROOM = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * The error to throw when writing fails: {@link DiskFullError} if `error` was caused by a lack of space, else `error`
 * itself.
 */
export function asDiskFull(error: unknown, output: string): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!NO_ROOM.has(systemCodeOf(cause) ?? '')) continue;
    const message = `The disk of ${output} is full: ${reasonOf(cause)}; free some space and run the same command again, or choose a folder on another disk.`;
    return new DiskFullError({ path: output }, message, { cause: error });
  }
  return error;
}
