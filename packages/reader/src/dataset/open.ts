import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { FileError, indexPathOf, MANIFEST_FILE, type Manifest, readManifest, readShardIndex } from '@shardtool/format';
import { Dataset } from './dataset.js';
import { foreignParts } from './foreign.js';
import type { ShardFile } from './shard-files.js';

/**
 * Opens a dataset: a folder that `pack` wrote; a folder of WebDataset tars; or a list of tars. Of what `pack` wrote only
 * the manifest is read; foreign tars are walked once, unless `shardtool index` has kept their indexes beside them.
 * Throws {@link FileError}, UnfinishedPackError where a pack did not end, and what is wrong with a manifest or a tar.
 */
export async function openDataset(location: string | readonly string[]): Promise<Dataset> {
  if (typeof location !== 'string') return new Dataset(await foreignParts(location));
  const kind = await stat(location).catch((cause: Error) => {
    throw new FileError({ path: location }, `${location} cannot be opened (${cause.message}).`, { cause });
  });
  if (kind.isFile()) return new Dataset(await foreignParts([location]));
  const names = await readdir(location);
  const tars = names.filter((name) => name.endsWith('.tar')).sort();
  // What `pack` leaves behind when it is interrupted has a note of its own beside the shards: reading the manifest says so.
  const isForeign = !names.includes(MANIFEST_FILE) && !names.includes(PACK_NOTE_FILE) && tars.length > 0;
  if (isForeign) return new Dataset({ ...(await foreignParts(tars.map((name) => path.join(location, name)))), location });
  return new Dataset(partsOf(location, await readManifest(location)));
}

/** The note of a pack that is under way or was interrupted. */
const PACK_NOTE_FILE = 'pack.json';

function partsOf(location: string, manifest: Manifest): ConstructorParameters<typeof Dataset>[0] {
  return {
    location,
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    shards: manifest.shards.map((record): ShardFile => {
      const name = record.file.split('/')[0]!;
      const index = indexPathOf(path.join(location, name));
      return {
        name,
        path: path.join(location, record.file),
        bytes: record.bytes,
        samples: record.samples,
        loadKeys: async () => (await readShardIndex(index, { parts: ['key'] })).key,
        loadIndex: () => readShardIndex(index),
      };
    }),
  };
}
