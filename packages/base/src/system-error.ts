import { FileError, FileNotFoundError, ShardtoolError } from './errors.js';

/** Remedies by the system's error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  EROFS: 'work on a copy elsewhere',
  EACCES: 'get permission to use it, or choose another location',
  EPERM: 'get permission to use it, or choose another location',
  ENOSPC: 'make room',
  EDQUOT: 'make room',
  EFBIG: 'choose another file system, or smaller shards',
  EMFILE: 'raise the limit ("ulimit -n")',
  ENFILE: 'end other programs that have files open',
  EIO: 'check the disk',
  ESTALE: 'open it again, and check whether it was replaced or removed on the file server',
  ENAMETOOLONG: 'choose a shorter name',
};

/** Reasons in plain words, by the system's code. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EISDIR: 'it is a folder, not a file',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files on this machine',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the system allows no larger files ("ulimit -f")',
  EADDRINUSE: 'another process is using it',
  EEXIST: 'it already exists',
  ELOOP: 'its symbolic links form a loop',
  ENAMETOOLONG: 'the name is too long for the file system',
  EIO: 'the disk reported an error',
  ESTALE: 'the network file system no longer knows it',
  ETIMEDOUT: 'the file system did not respond in time',
};

/** Codes of Linux for which Node has no name. It reports `Unknown system error -122`. */
const UNNAMED: ReadonlyMap<string, string> = new Map([
  ['Unknown system error -116', 'ESTALE'],
  ['Unknown system error -122', 'EDQUOT'],
]);

/** The code of an error of the system, such as `ENOSPC`; undefined for other errors. */
export function systemCodeOf(error: unknown): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? (UNNAMED.get(code) ?? code) : undefined;
}

/** The reason of a failure, without error codes and names of system calls: `no such file or folder`. */
export function reasonOf(error: unknown): string {
  const { syscall, message } = error as NodeJS.ErrnoException;
  const code = systemCodeOf(error);
  if (code === undefined || typeof syscall !== 'string') return message;
  return REASONS[code] ?? message;
}

/** The class of the error for a file that could not be opened: {@link FileNotFoundError} if it is missing. */
export function openErrorOf(cause: unknown): typeof FileError {
  const code = systemCodeOf(cause);
  return code === 'ENOENT' || code === 'ENOTDIR' ? FileNotFoundError : FileError;
}

/**
 * Converts an error of the system while reading or writing a file to a {@link FileError} with a remedy. Returns any
 * other error unchanged.
 */
export function asFileError(error: unknown): unknown {
  if (error instanceof ShardtoolError || !(error instanceof Error)) return error;
  const { code, syscall, path } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || typeof syscall !== 'string') return error;
  const place = path ?? 'A file';
  return new FileError({ path }, `${place} cannot be used: ${reasonOf(error)}; ${remedyOf(error)}.`, { cause: error });
}

/** Whether a disk has lost data: it finds the file but cannot read it. */
export function isLostOnDisk(error: unknown): boolean {
  return error instanceof FileError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EIO';
}

/**
 * Whether data could not be read for a reason that is not a fault of the data: access is denied, the host is unknown,
 * or the server does not respond. A missing file, or one that the disk has lost, is a fault of the data.
 */
export function isUnreadable(error: unknown): boolean {
  return error instanceof FileError && !(error instanceof FileNotFoundError) && !isLostOnDisk(error);
}

/** Returns the remedy for a system error, as the end of a sentence. */
export function remedyOf(error: unknown): string {
  return REMEDIES[systemCodeOf(error) ?? ''] ?? 'check that it exists and that you may use it';
}

/** Runs `work`. Errors of the system are thrown with a readable message: see {@link asFileError}. */
export async function withMessages<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asFileError(error);
  }
}
