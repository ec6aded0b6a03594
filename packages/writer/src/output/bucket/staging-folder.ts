import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FileError, makeFolder, option, sentence } from '@shardtool/base';
import type { Entry } from '@shardtool/storage';

/**
 * Returns one folder per location and part: two packs of the same part use the same folder, and files of a killed
 * pack are removed.
 */
export function stagingFolder(location: string, part: string | undefined, staging: string | undefined): string {
  const name = createHash('sha256')
    .update(JSON.stringify([location.replace(/\/+$/, ''), part ?? null, process.getuid?.() ?? -1]))
    .digest('hex')
    .slice(0, 16);
  const folder = join(staging ?? tmpdir(), `shardtool-staging-${name}`);
  try {
    makeFolder(dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') {
      const message = sentence`The staging folder ${folder} cannot be created (${(cause as Error).message}); set ${option('staging')} or TMPDIR to another local folder.`;
      throw new FileError({ path: folder }, message, { cause });
    }
    const found = lstatSync(folder);
    if (!found.isDirectory() || found.uid !== (process.getuid?.() ?? found.uid)) {
      const message = sentence`The staging folder ${folder} does not belong to this user; remove it, or set ${option('staging')} to another folder.`;
      throw new FileError({ path: folder }, message);
    }
  }
  return folder;
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
