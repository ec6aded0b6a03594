import { mkdir, rename } from 'node:fs/promises';
import path from 'node:path';
import {
  FileError,
  FileExistsError,
  flushFolder,
  makeFolder,
  reasonOf,
  remedyOf,
  removeAbandoned,
  writeAtomically,
} from '@shardtool/base';
import { OverlayEncoder, type OverlayEntry, OverlayError, type OverlayHeader } from '@shardtool/format';
import {
  isRemote,
  joinLocation,
  openStorage,
  readWhole,
  type StorageOptions,
  shownLocation,
  splitLocation,
} from '@shardtool/storage';

/** Allowed names of overlays: valid file names on any system, without folders. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Throws {@link OverlayError} if a name is not a valid file name on all systems. */
export function checkOverlayName(name: string): void {
  if (typeof name === 'string' && NAME.test(name) && !name.endsWith('.jsonl')) return;
  throw new OverlayError(
    {},
    `An overlay cannot be named ${typeof name === 'string' ? JSON.stringify(name) : typeof name}: use up to 100 letters, digits, dots, dashes and underscores, ` +
      'starting with a letter or a digit and not ending with .jsonl.',
  );
}

/** Entries of an overlay, many at a time. */
export type EntryBatches = Iterable<Iterable<OverlayEntry>> | AsyncIterable<Iterable<OverlayEntry>>;

/**
 * Writes an overlay under a new name, whole or not at all. Its entries come in batches. If two callers write the same name at the same time, one of
 * them gets an error. Returns the hash of the overlay. Throws {@link OverlayError} if the name is taken, or {@link
 * FileError}.
 */
export async function saveOverlay(
  file: string,
  header: OverlayHeader,
  entries: EntryBatches,
  storage?: StorageOptions,
): Promise<string> {
  const encoder = new OverlayEncoder(header);
  for await (const batch of entries) for (const entry of batch) encoder.add(entry);
  const { pieces, hash } = encoder.finish();
  if (isRemote(file)) await saveRemote(file, Buffer.concat(pieces), storage);
  else await saveLocal(file, pieces);
  return hash;
}

/** Renames an overlay within its folder or a folder below. Returns its new path. */
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

/** If two callers write the same name, the storage rejects one of them. */
async function saveRemote(file: string, bytes: Uint8Array, storage: StorageOptions | undefined): Promise<void> {
  const { folder, name } = splitLocation(file);
  try {
    await (await openStorage(folder, storage)).put(name, bytes, { ifAbsent: true });
  } catch (error) {
    throw error instanceof FileExistsError ? nameTaken(shownLocation(file)) : error;
  }
}

function nameTaken(file: string): OverlayError {
  const message = `The overlay ${file} already exists: choose another name, or remove it with "shardtool overlay rm".`;
  return new OverlayError({ path: file }, message);
}

async function saveLocal(file: string, pieces: readonly Uint8Array[]): Promise<void> {
  const folder = path.dirname(file);
  await mkdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== 'EEXIST') throw withoutFolder(file, cause);
  });
  // What a killed process left may be as large as the overlay.
  removeAbandoned(folder, (name) => name.endsWith('.jsonl'));
  await writeAtomically(file, pieces, { ifAbsent: true }).catch((error) => {
    throw error instanceof FileExistsError ? nameTaken(file) : error;
  });
  await flushFolder(folder);
}

function withoutFolder(file: string, cause: NodeJS.ErrnoException): FileError {
  const place = path.dirname(path.dirname(file));
  const message =
    cause.code === 'ENOTDIR'
      ? `${file} cannot be written: overlays are stored in a folder next to the shards, and ${place} is a file; move it into its own folder, and give that folder.`
      : `${file} cannot be written: ${reasonOf(cause)}; ${remedyOf(cause)}.`;
  return new FileError({ path: file }, message, { cause });
}
