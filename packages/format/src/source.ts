import { readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { FileError } from './errors.js';

/**
 * Something that can be read at any position. All reading goes through this one function, so that HTTP ranges or an
 * object store can stand behind it without a change above it.
 */
export interface Source {
  /** The file's path, for messages. */
  readonly location: string;
  /** Size in bytes when it was opened. */
  readonly size: number;
  /**
   * Fills `target` (at most) with the bytes from `offset` on and returns how many there were: fewer than
   * `target.length` only where the file ends. `target` may lie in shared memory.
   */
  readAt(offset: number, target: Uint8Array): Promise<number>;
  /**
   * The same without a turn of the event loop, which costs ten times what a short read of a cached page does. Only
   * files on this machine have it; for reads of a few KiB.
   */
  readNow?(offset: number, target: Uint8Array): number;
  close(): Promise<void>;
}

/** Opens a file. Throws {@link FileError} with the path where it is missing, unreadable or no regular file. */
export async function openSource(location: string): Promise<Source> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(location, 'r');
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error('it is not a regular file');
    return fileSource(location, stat.size, handle);
  } catch (cause) {
    await handle?.close();
    throw new FileError({ path: location }, `${location} cannot be opened (${(cause as Error).message}).`, { cause });
  }
}

/** The part of a file from `start` on, as if it were one. */
export function shiftedSource(source: Source, start: number): Source {
  const { location, size } = source;
  return {
    location,
    size: size - start,
    readAt: (offset, target) => source.readAt(start + offset, target),
    ...(source.readNow && { readNow: (offset: number, target: Uint8Array) => source.readNow!(start + offset, target) }),
    close: () => source.close(),
  };
}

function fileSource(location: string, size: number, handle: FileHandle): Source {
  return {
    location,
    size,
    async readAt(offset, target) {
      let done = 0;
      while (done < target.length) {
        const { bytesRead } = await handle
          .read(target, done, target.length - done, offset + done)
          .catch((cause) => unreadable(location, offset + done, cause));
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done;
    },
    readNow(offset, target) {
      try {
        return readSync(handle.fd, target, 0, target.length, offset);
      } catch (cause) {
        return unreadable(location, offset, cause);
      }
    },
    close: () => handle.close(),
  };
}

function unreadable(location: string, offset: number, cause: unknown): never {
  const message = `${location} cannot be read at byte ${offset} (${(cause as Error).message}).`;
  throw new FileError({ path: location, offset }, message, { cause });
}
