import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { FileError, reasonOf } from '@shardtool/base';
import { OVERLAYS_FOLDER } from '@shardtool/format';
import { isRemote, openStorage, type StorageOptions } from '@shardtool/storage';

/** Returns the names of the overlays in the dataset's own folder, sorted. Throws {@link FileError} if the location cannot be listed. */
export async function overlayNames(location: string, storage: StorageOptions | undefined): Promise<string[]> {
  const names = isRemote(location) ? await remoteNames(location, storage) : await localNames(location);
  return names
    .filter((name) => name.endsWith('.jsonl') && !name.startsWith('.'))
    .map((name) => name.slice(0, -'.jsonl'.length))
    .sort();
}

async function localNames(location: string): Promise<string[]> {
  const folder = path.join(location, OVERLAYS_FOLDER);
  return readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR') return [];
    throw new FileError({ path: folder }, `${folder} cannot be listed: ${reasonOf(cause)}.`, { cause });
  });
}

async function remoteNames(location: string, storage: StorageOptions | undefined): Promise<string[]> {
  const names: string[] = [];
  const prefix = `${OVERLAYS_FOLDER}/`;
  for await (const { name } of (await openStorage(location, storage)).list(prefix))
    names.push(name.slice(prefix.length));
  return names;
}
