import { checkStorageOptions, LruCache, OptionError } from '@shardtool/base';
import { isRemote, joinLocation, localPathOf, schemeOf, shownLocation, splitLocation } from './location/location.js';
import { SCHEMES } from './scheme-table.js';
import type { Entry, Expected, Source, Storage, StorageOptions } from './storage.js';

/** Remote storages that were opened. They keep connections, credentials and measured latencies. */
const opened = new LruCache<string, Promise<Storage>>(256);

/** Opens a storage by its path or URL, without a request. Throws {@link OptionError} for an unknown scheme. */
export async function openStorage(location: string, options: StorageOptions = {}): Promise<Storage> {
  checkStorageOptions(options);
  const name = schemeOf(location);
  const scheme = Object.hasOwn(SCHEMES, name) ? SCHEMES[name] : undefined;
  if (scheme === undefined) throw unknownScheme(location);
  if (!isRemote(location)) return (await scheme())(location, options);
  const key = JSON.stringify([location, options]);
  let storage = opened.get(key);
  if (storage === undefined) {
    storage = scheme().then((open) => open(location, options));
    storage.catch(() => opened.delete(key));
    opened.set(key, storage);
  }
  return storage;
}

/** Opens a file by its path or URL. Throws {@link FileError} with the path if it is missing, unreadable or not a regular file. */
export async function openSource(location: string, expected?: Expected, options?: StorageOptions): Promise<Source> {
  const { folder, name } = placeOf(location);
  const source = await (await openStorage(folder, options)).open(name, expected);
  const siblings = splitLocation(location).folder;
  return Object.assign(source, { sibling: (other: string) => openSource(joinLocation(siblings, other), {}, options) });
}

/** Returns the entry of a file without opening it; null if there is no file at this location. */
export async function entryAt(location: string, options?: StorageOptions): Promise<Entry | null> {
  const { folder, name } = placeOf(location);
  return (await openStorage(folder, options)).entry(name);
}

/** Returns the folder and the name by which a file is opened, listed and replaced. */
export function placeOf(location: string): { readonly folder: string; readonly name: string } {
  const local = localPathOf(location);
  return local === null ? splitLocation(location) : { folder: '', name: local };
}

/**
 * Size up to which a file that is read as a whole needs one request, and may come from a server that ignores ranges. A
 * dataset.json of 40,000 shards is not longer.
 */
export const WHOLE_BYTES = 4 << 20;

/** Reads a whole file. */
export async function readWhole(location: string, options?: StorageOptions): Promise<Uint8Array> {
  const { folder, name } = placeOf(location);
  return readWholeOf(await openStorage(folder, options), name);
}

/** Reads a whole file of a storage. */
export async function readWholeOf(storage: Storage, name: string): Promise<Uint8Array> {
  const source = await storage.open(name, { firstBytes: WHOLE_BYTES });
  try {
    const bytes = new Uint8Array(source.size);
    return bytes.subarray(0, await source.readAt(0, bytes));
  } finally {
    await source.close();
  }
}

/** Throws {@link OptionError} if the location is remote. `doing` names the action that only works on this machine. */
export function requireLocal(location: string, doing: string, remedy: string): string {
  const local = localPathOf(location);
  if (local !== null) return local;
  throw new OptionError(
    { path: shownLocation(location) },
    `${doing} needs a local folder, and ${shownLocation(location)} is remote: ${remedy}.`,
  );
}

function unknownScheme(location: string): OptionError {
  const known = Object.keys(SCHEMES).filter((name) => name !== 'file');
  return new OptionError(
    { path: shownLocation(location) },
    `${shownLocation(location)} is not a supported location: give a path, or a URL that begins with ${known.map((name) => `${name}://`).join(', ')}. ` +
      'Azure Blob Storage is not supported: mount it, or give https:// locations with a SAS token after "?".',
  );
}
