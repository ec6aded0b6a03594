import { constants } from 'node:fs';
import { copyFile, link, open, rename, rm } from 'node:fs/promises';
import { FileError } from '../errors.js';
import { remedyOf } from '../system-error.js';

/**
 * Writes a whole file under a temporary name, flushes it and renames it into place, so that the file is never seen half
 * written. Throws {@link FileError}; the temporary file is gone then.
 */
export async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.part`;
  try {
    const handle = await open(temporary, 'w');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new FileError({ path }, `${path} cannot be written (${(cause as Error).message}); ${remedyOf(cause)}.`, {
      cause,
    });
  }
}

/** What file systems answer that have no hard links: exFAT, many of FUSE. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Gives a whole file a second name, unless there is something of that name: a rename would replace it, a link does not. Where
 * there are no hard links the file is copied. Rejects with the system's error, EEXIST where the name is taken.
 */
export async function nameOnce(file: string, name: string, hardLink = link): Promise<void> {
  try {
    await hardLink(file, name);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copyFile(file, name, constants.COPYFILE_EXCL);
  }
}

/** What file systems answer that cannot flush a folder, or need not. */
const NOT_FLUSHED = new Set(['EINVAL', 'EISDIR', 'ENOTSUP', 'EPERM']);

/** Flushes a folder, so that the names in it survive a power cut. Throws {@link FileError}. */
export async function flushFolder(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (NOT_FLUSHED.has((cause as NodeJS.ErrnoException).code ?? '')) return;
    throw new FileError({ path }, `${path} cannot be flushed to the disk (${(cause as Error).message}).`, { cause });
  }
}
