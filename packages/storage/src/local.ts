import { readSync, type Stats } from 'node:fs';
import { copyFile, type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  AtomicFile,
  FileChangedError,
  FileError,
  FileExistsError,
  makeFolder,
  openErrorOf,
  reasonOf,
  remedyOf,
} from '@shardtool/base';
import type { Content, Entry, Expected, PutOptions, Source, Storage } from './storage.js';

/** Files of this machine. Names that are absolute paths are used unchanged. */
export class LocalStorage implements Storage {
  readonly location: string;
  readonly costs = { gapBytes: 64 << 10, maxReadBytes: 4 << 20, parallel: 32 };
  readonly counts = { requests: 0, bytes: 0, retries: 0, hedges: 0 };

  constructor(location: string) {
    this.location = location;
  }

  localPath(name: string): string {
    return path.isAbsolute(name) || this.location === '' ? name : path.join(this.location, name);
  }

  async entry(name: string): Promise<Entry | null> {
    const file = this.localPath(name);
    try {
      const found = await stat(file);
      return found.isFile() ? { name, size: found.size, version: versionOf(found), modifiedMs: found.mtimeMs } : null;
    } catch (cause) {
      if (isMissing(cause)) return null;
      throw unusable(file, 'opened', cause);
    }
  }

  async *list(prefix = '', { deep = false }: { readonly deep?: boolean } = {}): AsyncGenerator<Entry> {
    const slash = prefix.lastIndexOf('/') + 1;
    yield* this.#listFolder(prefix.slice(0, slash), prefix.slice(slash), deep);
  }

  async *#listFolder(folder: string, prefix: string, deep: boolean): AsyncGenerator<Entry> {
    const at = this.localPath(folder === '' ? '.' : folder);
    const found = await readdir(at, { withFileTypes: true }).catch((cause) => {
      throw unusable(at, 'listed', cause);
    });
    for (const item of found.filter(({ name }) => name.startsWith(prefix)).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (item.isDirectory()) {
        if (deep) yield* this.#listFolder(`${folder}${item.name}/`, '', true);
        continue;
      }
      const entry = await this.entry(`${folder}${item.name}`);
      if (entry !== null) yield entry;
    }
  }

  async open(name: string, expected: Expected = {}): Promise<Source> {
    const file = this.localPath(name);
    let handle: FileHandle | undefined;
    try {
      handle = await open(file, 'r');
      const found = await handle.stat();
      if (!found.isFile()) throw new Error('it is not a regular file');
      const isOther =
        (expected.version !== undefined && versionOf(found) !== expected.version) ||
        (expected.modifiedMs !== undefined && found.mtimeMs !== expected.modifiedMs);
      if (isOther) throw changed(file);
      return localSource(file, found, handle);
    } catch (cause) {
      await handle?.close();
      if (cause instanceof FileError) throw cause;
      throw unusable(file, 'opened', cause);
    }
  }

  async put(name: string, content: Content, { ifAbsent = false, ifVersion }: PutOptions = {}): Promise<void> {
    const file = this.localPath(name);
    if (ifVersion !== undefined && (await this.entry(name))?.version !== ifVersion) throw changed(file);
    let written: AtomicFile | undefined;
    try {
      makeFolder(path.dirname(file));
      written = await AtomicFile.create(file);
      if (content instanceof Uint8Array) await written.handle.writeFile(content);
      else await copyFile(content.file, written.temporary);
      await written.place({ ifAbsent });
    } catch (cause) {
      await written?.abandon();
      if (ifAbsent && (cause as NodeJS.ErrnoException).code === 'EEXIST') {
        throw new FileExistsError({ path: file }, `${file} already exists.`, { cause });
      }
      throw unusable(file, 'written', cause);
    }
  }

  async remove(name: string): Promise<void> {
    const file = this.localPath(name);
    await rm(file, { force: true }).catch((cause) => {
      throw unusable(file, 'removed', cause);
    });
  }
}

function localSource(location: string, found: Stats, handle: FileHandle): Source {
  return {
    location,
    size: found.size,
    version: versionOf(found),
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

function versionOf({ mtimeMs, size }: { readonly mtimeMs: number; readonly size: number }): string {
  return `${size}-${mtimeMs}`;
}

function isMissing(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function changed(file: string): FileChangedError {
  return new FileChangedError({ path: file }, `${file} has changed since its size was read: open it again.`);
}

export function unusable(file: string, what: string, cause: unknown): FileError {
  const Kind = what === 'opened' ? openErrorOf(cause) : FileError;
  const remedy = (cause as NodeJS.ErrnoException).code === 'EMFILE' ? `; ${remedyOf(cause)}` : '';
  return new Kind({ path: file }, `${file} cannot be ${what}: ${reasonOf(cause)}${remedy}.`, { cause });
}

export function unreadable(location: string, offset: number, cause: unknown): never {
  const message = `${location} cannot be read at byte ${offset}: ${reasonOf(cause)}.`;
  throw new FileError({ path: location, offset }, message, { cause });
}
