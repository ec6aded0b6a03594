import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileError } from '../errors.js';
import { indexPathOf } from '../shard-index/shard-index.js';
import { MANIFEST_FILE, type Manifest, readManifest } from './manifest.js';

/** The note of a pack that is under way, was interrupted, or has made what lies beside it. */
export const PACK_NOTE_FILE = 'pack.json';

/** What there is at a place: shards that `pack` wrote, or WebDataset tars of other software, in the order of their names. */
export type DatasetFiles =
  | { readonly kind: 'packed'; readonly manifest: Manifest }
  | { readonly kind: 'foreign'; readonly tars: readonly string[] };

/**
 * Looks what a folder holds; a file is taken for a tar. Throws {@link FileError} where there is nothing, and what
 * {@link readManifest} throws, which is UnfinishedPackError for a folder without shards.
 */
export async function findShards(location: string): Promise<DatasetFiles> {
  const found = await stat(location).catch((cause: Error) => {
    throw new FileError({ path: location }, `${location} cannot be opened (${cause.message}).`, { cause });
  });
  if (!found.isDirectory()) return { kind: 'foreign', tars: [location] };
  const names = await readdir(location);
  const tars = names.filter((name) => name.endsWith('.tar')).sort();
  const isPacked = names.includes(MANIFEST_FILE) || names.includes(PACK_NOTE_FILE) || tars.length === 0;
  if (isPacked) return { kind: 'packed', manifest: await readManifest(location) };
  return { kind: 'foreign', tars: tars.map((name) => join(location, name)) };
}

/** The index beside a tar; null where there is none, or where the tar is newer and may be another one. */
export async function keptIndexPath(tar: string): Promise<string | null> {
  const index = indexPathOf(tar);
  const [made, packed] = await Promise.all([stat(index).catch(() => null), stat(tar).catch(() => null)]);
  return made !== null && packed !== null && made.mtimeMs >= packed.mtimeMs ? index : null;
}
