import { mkdir, rename } from 'node:fs/promises';
import path from 'node:path';
import {
  FileError,
  FileExistsError,
  flushFolder,
  makeFolder,
  reasonOf,
  remedyOf,
  writeAtomically,
} from '@shardtool/base';
import { encodeOverlay, type OverlayEntry, OverlayError, type OverlayHeader } from '@shardtool/format';
import {
  isRemote,
  joinLocation,
  openStorage,
  readWhole,
  type StorageOptions,
  shownLocation,
  splitLocation,
} from '@shardtool/storage';

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
  storage?: StorageOptions,
): Promise<string> {
  const { bytes, hash } = encodeOverlay(header, entries);
  if (isRemote(file)) await saveRemote(file, bytes, storage);
  else await saveLocal(file, bytes);
  return hash;
}

/** Gives an overlay another name, below the folder that it lies in. Returns its new place. */
export async function moveOverlay(file: string, to: string, storage?: StorageOptions): Promise<string> {
  const { folder, name } = splitLocation(file);
  const target = joinLocation(folder, to);
  if (isRemote(folder)) {
    const place = await openStorage(folder, storage);
    await place.put(to, await readWhole(file, storage));
    await place.remove(name);
  } else {
    makeFolder(path.dirname(target));
    await rename(file, target);
  }
  return target;
}

/** The store sees to it that of two who write the same name one is told. */
async function saveRemote(file: string, bytes: Uint8Array, storage: StorageOptions | undefined): Promise<void> {
  const { folder, name } = splitLocation(file);
  try {
    await (await openStorage(folder, storage)).put(name, bytes, { ifAbsent: true });
  } catch (error) {
    throw error instanceof FileExistsError ? nameTaken(shownLocation(file)) : error;
  }
}

function nameTaken(file: string): OverlayError {
  const message = `There is an overlay ${file} already: take another name, or drop that one with "shardtool overlay rm".`;
  return new OverlayError({ path: file }, message);
}

async function saveLocal(file: string, bytes: Uint8Array): Promise<void> {
  const folder = path.dirname(file);
  await mkdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'EEXIST') throw withoutFolder(file, cause);
  });
  await writeAtomically(file, bytes, { ifAbsent: true }).catch((error) => {
    throw error instanceof FileExistsError ? nameTaken(file) : error;
  });
  await flushFolder(folder);
}

function withoutFolder(file: string, cause: NodeJS.ErrnoException): FileError {
  const place = path.dirname(path.dirname(file));
  const message =
    cause.code === 'ENOTDIR'
      ? `${file} cannot be written: overlays lie in a folder beside shards, and ${place} is a file; put it into a folder of its own, and name that.`
      : `${file} cannot be written: ${reasonOf(cause)}; ${remedyOf(cause)}.`;
  return new FileError({ path: file }, message, { cause });
}
