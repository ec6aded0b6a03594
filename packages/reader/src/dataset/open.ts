import {
  findShards,
  type IndexPart,
  identityOf,
  indexPathOf,
  type Manifest,
  manifestShards,
  meantLocations,
  readShardIndex,
} from '@shardtool/format';
import { isRemote, rememberPlace, type StorageOptions, shownLocation } from '@shardtool/storage';
import { readOverlays } from '../overlay/find.js';
import { viewOf } from '../overlay/view.js';
import { Dataset, type StoredParts } from './dataset.js';
import { foreignParts } from './foreign.js';
import { folderParts } from './plain-folder.js';
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
  /** How a remote location is asked. What is left out comes from the environment. */
  readonly storage?: StorageOptions | undefined;
}

/** What of an index is read from afar: the paths of the packed files are most of it, and nobody here asks for them. */
const REMOTE_PARTS = [
  'key',
  'offset',
  'bytes',
  'fields',
  'width',
  'height',
  'orientation',
  'cls',
  'columns',
  'columnTypes',
] as const satisfies readonly IndexPart[];

/**
 * Opens a dataset: a folder that `pack` wrote; a folder of shards of other software, or one of them; or a list of such
 * shards, also by braces (`train-{000..146}.tar`). A location is a path or begins with http://, https://, s3:// or gs://. Of what `pack` wrote only the manifest is read; foreign shards are walked once, unless `shardtool index` has
 * kept their indexes. Throws {@link FileError}, UnfinishedPackError where a pack did not end, what is wrong with a manifest
 * or a shard, and OverlayError or OptionError where an overlay, a split or a key does not belong to it.
 */
export async function openDataset(location: string | readonly string[], options: OpenOptions = {}): Promise<Dataset> {
  const { storage, split, excludeKeys, overlay = split === undefined ? undefined : SPLIT_OVERLAY } = options;
  if (storage !== undefined) for (const place of [location].flat()) rememberPlace(place, storage);
  const stored = await openStored(location);
  const chain = overlay === undefined ? [] : await readOverlays(stored.location, overlay);
  return new Dataset(await viewOf(stored, { chain, split, excludeKeys }));
}

/** The dataset as it is stored, without overlays. Throws what {@link openDataset} throws of the dataset itself. */
export async function openStored(location: string | readonly string[]): Promise<StoredParts> {
  const meant = (await Promise.all([location].flat().map(meantLocations))).flat();
  if (typeof location !== 'string' || meant.length > 1) {
    const found = await Promise.all(meant.map((place) => findShards(place)));
    const shards = found.flatMap((one) => one.shards);
    return foreignParts(shards, found[0]?.layout ?? 'tar');
  }
  const { manifest, layout, shards } = await findShards(location, { folders: true });
  if (layout === 'folder') return folderParts(location);
  if (manifest !== null) return packedParts(location, manifest);
  return { ...(await foreignParts(shards, layout)), location: shownLocation(location) };
}

async function loadIndex(index: string) {
  if (!isRemote(index)) return readShardIndex(index);
  return { ...(await readShardIndex(index, { parts: REMOTE_PARTS })), source: [] };
}

function packedParts(location: string, manifest: Manifest): StoredParts {
  return {
    location: shownLocation(location),
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
        loadIndex: () => loadIndex(index),
        loadParts: (parts) => readShardIndex(index, { parts }),
      };
    }),
  };
}
