import { constants } from 'node:fs';
import { copyFile, type FileHandle, link, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { FileError, FileExistsError } from '../errors.js';
import { reasonOf, remedyOf } from '../system-error.js';
import { flushFile } from './flush.js';
import { temporaryName } from './temporary-files.js';

export interface PlaceOptions {
  /**
   * Whether the name must be free: if it is not, the promise rejects with EEXIST. Default: false, which replaces an
   * existing file.
   */
  readonly ifAbsent?: boolean;
  /** Whether the content is flushed to the disk before the file gets its name. Default: true. */
  readonly flush?: boolean;
}

/**
 * A file that is written under a temporary name and renamed when it is complete. Methods reject with the system's own
 * errors. The caller then calls {@link AtomicFile.place} or {@link AtomicFile.abandon}.
 */
export class AtomicFile {
  readonly path: string;
  readonly temporary: string;
  readonly handle: FileHandle;
  #isOpen = true;

  private constructor(path: string, temporary: string, handle: FileHandle) {
    this.path = path;
    this.temporary = temporary;
    this.handle = handle;
  }

  /** `token`: the token of the lock under which the file is written, if there is one. */
  static async create(path: string, token?: string): Promise<AtomicFile> {
    const temporary = temporaryName(path, token);
    return new AtomicFile(path, temporary, await open(temporary, 'wx+'));
  }

  /** Closes the file and gives it its final name. If that fails, the file is removed. */
  async place({ ifAbsent = false, flush = true }: PlaceOptions = {}): Promise<void> {
    try {
      if (flush) await flushFile(this.handle);
      await this.#checkSame();
      await this.#close();
      if (ifAbsent) await nameOnce(this.temporary, this.path);
      else await rename(this.temporary, this.path);
    } catch (error) {
      await this.abandon();
      throw error;
    }
    if (ifAbsent) await rm(this.temporary, { force: true });
  }

  /** Closes the file and removes it. */
  async abandon(): Promise<void> {
    await this.#close().catch(() => undefined);
    await rm(this.temporary, { force: true }).catch(() => undefined);
  }

  /** Rejects if the temporary name now points to a file other than the written one. */
  async #checkSame(): Promise<void> {
    const [written, named] = await Promise.all([this.handle.stat(), stat(this.temporary)]);
    if (written.ino === named.ino && written.dev === named.dev && written.size === named.size) return;
    throw new Error(`${this.temporary} was replaced by another process while it was written`);
  }

  async #close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.handle.close();
  }
}

/**
 * Writes a whole file. Readers never see it half written, and if several processes write the same file, one of them
 * wins. Rejects with {@link FileError}, or with {@link FileExistsError} if the name is taken and `ifAbsent` is set.
 * After an error, no temporary file is left. The content may be in pieces.
 */
export async function writeAtomically(
  path: string,
  content: Uint8Array | string | readonly Uint8Array[],
  options?: PlaceOptions,
): Promise<void> {
  try {
    const file = await AtomicFile.create(path);
    try {
      await writeFile(file.handle, content);
    } catch (error) {
      await file.abandon();
      throw error;
    }
    await file.place(options);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST' && options?.ifAbsent) {
      throw new FileExistsError({ path }, `${path} already exists.`, { cause });
    }
    throw new FileError({ path }, `${path} cannot be written: ${reasonOf(cause)}; ${remedyOf(cause)}.`, {
      cause,
    });
  }
}

/** Error codes of file systems without hard links, such as exFAT and many FUSE file systems. */
export const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * Gives a complete file a second name if that name is free. It uses a link, because a rename would replace an existing
 * file. On a file system without hard links, the file is copied and the copy is flushed. Rejects with the system's
 * error, which is EEXIST if the name is taken.
 */
export async function nameOnce(file: string, name: string, hardLink = link): Promise<void> {
  try {
    await hardLink(file, name);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    await copyFile(file, name, constants.COPYFILE_EXCL);
    const copy = await open(name, 'r+');
    try {
      await flushFile(copy);
    } finally {
      await copy.close();
    }
  }
}

/** Error codes of file systems that cannot flush a folder, or do not need to. */
const NOT_FLUSHED = new Set(['EINVAL', 'EISDIR', 'ENOTSUP', 'EPERM']);

/** Flushes a folder, so that the names in it survive a power failure. Rejects with {@link FileError}. */
export async function flushFolder(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    try {
      await flushFile(handle);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    if (NOT_FLUSHED.has((cause as NodeJS.ErrnoException).code ?? '')) return;
    throw new FileError({ path }, `${path} cannot be flushed to the disk (${(cause as Error).message}).`, { cause });
  }
}
