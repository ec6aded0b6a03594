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

function fileSource(location: string, size: number, handle: FileHandle): Source {
  return {
    location,
    size,
    async readAt(offset, target) {
      let done = 0;
      while (done < target.length) {
        const { bytesRead } = await handle.read(target, done, target.length - done, offset + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done;
    },
    close: () => handle.close(),
  };
}
