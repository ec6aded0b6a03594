import { findShards, indexPathOf, type Manifest, manifestShards, readShardIndex } from '@shardtool/format';
import { Dataset, type DatasetParts } from './dataset.js';
import { foreignParts } from './foreign.js';
import type { ShardFile } from './shard-files.js';

/**
 * Opens a dataset: a folder that `pack` wrote; a folder of shards of other software, or one of them; or a list of such shards. Of what `pack` wrote only
 * the manifest is read; foreign shards are walked once, unless `shardtool index` has kept their indexes.
 * Throws {@link FileError}, UnfinishedPackError where a pack did not end, and what is wrong with a manifest or a shard.
 */
export async function openDataset(location: string | readonly string[]): Promise<Dataset> {
  if (typeof location !== 'string') {
    const found = await Promise.all(location.map((place) => findShards(place)));
    return new Dataset(
      await foreignParts(
        found.flatMap(({ shards }) => shards),
        found[0]?.layout ?? 'tar',
      ),
    );
  }
  const { manifest, layout, shards } = await findShards(location);
  if (manifest !== null) return new Dataset(packedParts(location, manifest));
  return new Dataset({ ...(await foreignParts(shards, layout)), location });
}

function packedParts(location: string, manifest: Manifest): DatasetParts {
  return {
    location,
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    shards: manifestShards(location, manifest).map(({ name, path, record }): ShardFile => {
      const index = indexPathOf(path);
      return {
        name,
        path,
        bytes: record!.bytes,
        samples: record!.samples,
        loadIndex: () => readShardIndex(index),
        loadParts: (parts) => readShardIndex(index, { parts }),
      };
    }),
  };
}
