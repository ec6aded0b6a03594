import { OptionError } from '@shardtool/base';
import { findShards, type Manifest } from '@shardtool/format';
import { type StorageOptions, shownLocation } from '@shardtool/storage';

/**
 * The current manifest of a dataset that shardtool wrote. Throws FileError if there is nothing at the location, OptionError
 * for shards of other software, UnfinishedPackError and ManifestError.
 */
export async function currentManifest(location: string, storage: StorageOptions | undefined): Promise<Manifest> {
  const { manifest } = await findShards(location, { storage });
  if (manifest !== null) return manifest;
  const path = shownLocation(location);
  const message = `${path} has no dataset.json, so it has no versions and cannot be changed; "shardtool convert" makes a dataset of its shards.`;
  throw new OptionError({ path }, message);
}
