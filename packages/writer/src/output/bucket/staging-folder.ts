import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FileError, makeFolder, option, sentence } from '@shardtool/base';
import type { Entry } from '@shardtool/storage';
import { lockFolderPatiently } from '../../folder-lock.js';

/** A folder in which the files of a bucket are made and shown. This process alone uses it until it is closed. */
export interface StagingFolder {
  readonly path: string;
  /** Removes the folder. */
  close(): void;
}

/**
 * Opens the folder of a location and part. What a killed process left in it is kept. The lock is next to the folder and not in
 * it: a process that does not get the lock, or has just released it, must not remove the folder of another one. Throws
 * {@link OutputLockedError} if another process of this machine has the folder.
 */
export async function openStagingFolder(
  location: string,
  part: string | undefined,
  staging: string | undefined,
  signal: AbortSignal | undefined,
): Promise<StagingFolder> {
  const hash = createHash('sha256')
    .update(JSON.stringify([location.replace(/\/+$/, ''), part ?? null, process.getuid?.() ?? -1]))
    .digest('hex')
    .slice(0, 16);
  const above = staging ?? tmpdir();
  const name = `shardtool-staging-${hash}`;
  const path = join(above, name);
  const lock = await withStagingMessage(path, async () => {
    makeFolder(above);
    return lockFolderPatiently(above, `${name}.lock`, signal);
  });
  const close = (): void => {
    rmSync(path, { recursive: true, force: true });
    lock.release();
  };
  try {
    await withStagingMessage(path, async () => makeOwnFolder(path));
  } catch (error) {
    lock.release();
    throw error;
  }
  return { path, close };
}

/** Runs `work`. An error of the system is thrown as one that names the folder and the option for another one. */
async function withStagingMessage<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    const message = sentence`The staging folder ${folder} cannot be created (${cause.message}); set ${option('staging')} or TMPDIR to another local folder.`;
    throw new FileError({ path: folder }, message, { cause });
  }
}

function makeOwnFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
    const found = lstatSync(folder);
    if (found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid)) return;
    const message = sentence`The staging folder ${folder} does not belong to this user; remove it, or set ${option('staging')} to another folder.`;
    throw new FileError({ path: folder }, message);
  }
}

/**
 * Shows an object in the folder as a file of its size without content, and returns that file's name: the object's own,
 * or another if no folder can have it.
 */
export function showBySize(folder: string, { name, size, modifiedMs }: Entry): string {
  const isPlain = name.split('/').every((part) => /^(?!\.{1,2}$)[^\\\0]{1,200}$/.test(part));
  const own = `object-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;
  for (const shadow of isPlain ? [name, own] : [own]) {
    const path = join(folder, shadow);
    try {
      makeFolder(dirname(path));
      writeFileSync(path, '', { flag: 'wx' });
      truncateSync(path, size);
      if (modifiedMs !== undefined) utimesSync(path, modifiedMs / 1000, modifiedMs / 1000);
      return shadow;
    } catch (error) {
      // One object has the name of another one's folder.
      if (shadow === own) throw error;
    }
  }
  return own;
}

/** Empties the file in the folder, but keeps its name and size. */
export function keepSize(path: string, size: number): void {
  truncateSync(path, 0);
  truncateSync(path, size);
}
