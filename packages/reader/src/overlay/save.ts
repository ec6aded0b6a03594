import { randomBytes } from 'node:crypto';
import { mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { FileError, FileExistsError, flushFolder, nameOnce, remedyOf } from '@shardtool/base';
import { encodeOverlay, type OverlayEntry, OverlayError, type OverlayHeader } from '@shardtool/format';
import { isRemote, openStorage, shownLocation, splitLocation } from '@shardtool/storage';

/** Names of overlays: of files on any system, and of no path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Throws {@link OverlayError} for a name that cannot be the name of a file everywhere. */
export function checkOverlayName(name: string): void {
  if (NAME.test(name) && !name.endsWith('.jsonl')) return;
  throw new OverlayError(
    {},
    `An overlay cannot be named ${JSON.stringify(name)}: take a letter or a digit and up to 99 letters, digits, dots, dashes and ` +
      'underscores behind it, without .jsonl at the end.',
  );
}

/**
 * Writes an overlay under a name that nothing has yet: whole or not at all, also where two do it at the same time, of whom
 * one is told. Returns its hash. Throws {@link OverlayError} where the name is taken, {@link FileError}.
 */
export async function saveOverlay(
  file: string,
  header: OverlayHeader,
  entries: Iterable<OverlayEntry>,
): Promise<string> {
  const { bytes, hash } = encodeOverlay(header, entries);
  if (isRemote(file)) await saveRemote(file, bytes);
  else await saveLocal(file, header.name, bytes);
  return hash;
}

/** The store sees to it that of two who write the same name one is told. */
async function saveRemote(file: string, bytes: Uint8Array): Promise<void> {
  const { folder, name } = splitLocation(file);
  try {
    await (await openStorage(folder)).put(name, bytes, { ifAbsent: true });
  } catch (error) {
    throw error instanceof FileExistsError ? nameTaken(shownLocation(file)) : error;
  }
}

function nameTaken(file: string): OverlayError {
  const message = `There is an overlay ${file} already: take another name, or drop that one with "shardtool overlay drop".`;
  return new OverlayError({ path: file }, message);
}

async function saveLocal(file: string, name: string, bytes: Uint8Array): Promise<void> {
  const folder = path.dirname(file);
  // A name of its own: two processes that write the same overlay do not write into each other's file.
  const temporary = path.join(folder, `.${name}.${randomBytes(6).toString('hex')}.part`);
  try {
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    const handle = await open(temporary, 'wx');
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await nameOnce(temporary, file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw nameTaken(file);
    const message =
      code === 'ENOTDIR'
        ? `${file} cannot be written: overlays lie in a folder beside shards, and ${path.dirname(folder)} is a file; put it into a folder of its own, and name that.`
        : `${file} cannot be written (${(cause as Error).message}); ${remedyOf(cause)}.`;
    throw new FileError({ path: file }, message, { cause });
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
  await flushFolder(folder);
}
