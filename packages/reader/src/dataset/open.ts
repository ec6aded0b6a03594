import path from 'node:path';
import { findShards, indexPathOf, type Manifest, readShardIndex } from '@shardtool/format';
import { Dataset, type DatasetParts } from './dataset.js';
import { foreignParts } from './foreign.js';
import type { ShardFile } from './shard-files.js';

/**
 * Opens a dataset: a folder that `pack` wrote; a folder of WebDataset tars; or a list of tars. Of what `pack` wrote only
 * the manifest is read; foreign tars are walked once, unless `shardtool index` has kept their indexes beside them.
 * Throws {@link FileError}, UnfinishedPackError where a pack did not end, and what is wrong with a manifest or a tar.
 */
export async function openDataset(location: string | readonly string[]): Promise<Dataset> {
  if (typeof location !== 'string') return new Dataset(await foreignParts(location));
  const found = await findShards(location);
  if (found.kind === 'packed') return new Dataset(packedParts(location, found.manifest));
  return new Dataset({ ...(await foreignParts(found.tars)), location });
}

function packedParts(location: string, manifest: Manifest): DatasetParts {
  return {
    location,
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    shards: manifest.shards.map((record): ShardFile => {
      // The file of an LMDB shard lies in a folder that has the shard's name.
      const name = record.file.split('/')[0]!;
      const index = indexPathOf(path.join(location, name));
      return {
        name,
        path: path.join(location, record.file),
        bytes: record.bytes,
        samples: record.samples,
        loadIndex: () => readShardIndex(index),
        loadParts: (parts) => readShardIndex(index, { parts }),
      };
    }),
  };
}
