import { findShards, identityOf, indexPathOf, type Manifest, manifestShards, readShardIndex } from '@shardtool/format';
import { readOverlays } from '../overlay/find.js';
import { viewOf } from '../overlay/view.js';
import { Dataset, type StoredParts } from './dataset.js';
import { foreignParts } from './foreign.js';
import type { ShardFile } from './shard-files.js';

/** What `shardtool split` makes unless told otherwise. */
export const SPLIT_OVERLAY = 'split';

/** What of a dataset is opened, and how it is seen; the shards stay as they are. */
export interface OpenOptions {
  /** An overlay of `shardtool overlay`: its name, or the path of its file. */
  readonly overlay?: string | undefined;
  /** Only the samples of a split that the overlay has; of the overlay `split` unless another is named. */
  readonly split?: string | undefined;
  /** Samples that are left out. */
  readonly excludeKeys?: Iterable<string> | undefined;
}

/**
 * Opens a dataset: a folder that `pack` wrote; a folder of shards of other software, or one of them; or a list of such
 * shards. Of what `pack` wrote only the manifest is read; foreign shards are walked once, unless `shardtool index` has
 * kept their indexes. Throws {@link FileError}, UnfinishedPackError where a pack did not end, what is wrong with a manifest
 * or a shard, and OverlayError or OptionError where an overlay, a split or a key does not belong to it.
 */
export async function openDataset(location: string | readonly string[], options: OpenOptions = {}): Promise<Dataset> {
  const { split, excludeKeys, overlay = split === undefined ? undefined : SPLIT_OVERLAY } = options;
  const stored = await openStored(location);
  const chain = overlay === undefined ? [] : await readOverlays(stored.location, overlay);
  return new Dataset(await viewOf(stored, { chain, split, excludeKeys }));
}

/** The dataset as it is stored, without overlays. Throws what {@link openDataset} throws of the dataset itself. */
export async function openStored(location: string | readonly string[]): Promise<StoredParts> {
  if (typeof location !== 'string') {
    const found = await Promise.all(location.map((place) => findShards(place)));
    const shards = found.flatMap((one) => one.shards);
    return foreignParts(shards, found[0]?.layout ?? 'tar');
  }
  const { manifest, layout, shards } = await findShards(location);
  if (manifest !== null) return packedParts(location, manifest);
  return { ...(await foreignParts(shards, layout)), location };
}

function packedParts(location: string, manifest: Manifest): StoredParts {
  return {
    location,
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    identityOfFirst: (shards) => identityOf(manifest.shards.slice(0, shards)),
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
