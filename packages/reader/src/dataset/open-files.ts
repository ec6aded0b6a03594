import { statSync } from 'node:fs';
import {
  besidePath,
  type ChosenColumns,
  decodeShardIndex,
  type FoundDataset,
  type FoundShard,
  findShards,
  type IndexPart,
  identityOf,
  indexPathOf,
  type LayoutName,
  layoutOf,
  type Manifest,
  meantLocations,
  OptionError,
  openShard,
  readShardIndex,
  shardsOfSplit,
  splitsOf,
} from '@shardtool/format';
import { isRemote, rememberPlace, type StorageOptions, shownLocation } from '@shardtool/storage';
import type { Mixture } from '../mixture/mixture.js';
import type { MixtureOptions, MixturePart } from '../mixture/open-mixture.js';
import { readOverlays } from '../overlay/find.js';
import { viewOf } from '../overlay/view.js';
import { Dataset, type StoredParts } from './dataset.js';
import { foreignParts } from './foreign/foreign.js';
import { folderParts } from './foreign/plain-folder.js';
import { inspectionBeside } from './inspection-columns.js';
import type { ReadFile, ShardFile } from './shard-files.js';

/** What `shardtool split` makes unless told otherwise. */
export const SPLIT_OVERLAY = 'split';

/** What of a dataset is opened, and how it is seen; the shards stay as they are. */
export interface OpenOptions {
  /** An overlay of `shardtool overlay`: its name, or the path of its file. */
  readonly overlay?: string | undefined;
  /**
   * Only the samples of a split: one that the place itself has, by the names of its files or folders, where no overlay is
   * named; else one that the overlay has, of the overlay `split` unless another is named.
   */
  readonly split?: string | undefined;
  /** What a place is to be taken for that could be several things: `tar`, `mds`, `parquet`, `folder`. */
  readonly layout?: LayoutName | undefined;
  /** Which features of TFRecord are the image, the class and the key, where their names are not the usual ones. */
  readonly features?: ChosenColumns | undefined;
  /** Samples that are left out. */
  readonly excludeKeys?: Iterable<string> | undefined;
  /** A sample of more bytes, all its fields together, is an error where it is read. Default: 1 GiB. */
  readonly maxSampleBytes?: number | undefined;
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
 * shards, also by braces (`train-{000..146}.tar`). A location is a path or begins with http://, https://, s3://, gs:// or hf://. Of what `pack` wrote only the manifest is read; foreign shards are walked once, unless `shardtool index` has
 * kept their indexes. Throws {@link FileError}, UnfinishedPackError where a pack did not end, ManifestError for a
 * dataset.json that has changed, DamagedShardError or UnsupportedShardError for a shard that is walked, VersionError for what a newer
 * version wrote, and OverlayError or OptionError where an overlay, a split or a key does not belong to it.
 */
export async function openDataset(location: string | readonly string[], options: OpenOptions = {}): Promise<Dataset> {
  if (typeof location === 'string' && isMixtureFile(location)) {
    const { mixDatasets, readMixtureFile } = await import('../mixture/open-mixture.js');
    const { parts, options: mixed } = await readMixtureFile(location);
    const { storage, maxSampleBytes, ...others } = options;
    checkWhole(location, others);
    return mixDatasets(parts, mixed, (place, own) => openDataset(place, { storage, maxSampleBytes, ...own }));
  }
  const { storage, maxSampleBytes, excludeKeys, layout, features } = options;
  if (storage !== undefined) for (const place of [location].flat()) rememberPlace(place, storage);
  const stored = await openStored(location, {
    layout,
    features,
    split: options.overlay === undefined ? options.split : undefined,
  });
  const split = stored.split === undefined ? options.split : undefined;
  const overlay = options.overlay ?? (split === undefined ? undefined : SPLIT_OVERLAY);
  const chain = overlay === undefined ? [] : await readOverlays(stored.location, overlay);
  const view = await viewOf(stored, { chain, split, excludeKeys });
  if (maxSampleBytes === undefined) return new Dataset(view);
  if (!(maxSampleBytes >= 1)) throw wrongLimit(maxSampleBytes);
  return new Dataset({ ...view, shards: view.shards.map((shard) => ({ ...shard, maxSampleBytes })) });
}

function wrongLimit(given: unknown): OptionError {
  return new OptionError({}, `maxSampleBytes is a number of bytes, as 4 * 2 ** 30, and not ${JSON.stringify(given)}.`);
}

/**
 * Opens several datasets as one, whose loaders mix their samples: by weights, by how often each comes, by a fixed number of
 * rows in each batch, or, without any of these, every sample of all once. Throws OptionError for parts and options that are not
 * allowed, and for each dataset the errors of {@link openDataset}.
 */
export async function openMixture(parts: readonly MixturePart[], options: MixtureOptions = {}): Promise<Mixture> {
  const { mixDatasets } = await import('../mixture/open-mixture.js');
  return mixDatasets(parts, options, openDataset);
}

/** A file that says what to mix: `{ "mixture": [{ "dataset": "a", "weight": 0.7 }, ...] }`. */
function isMixtureFile(location: string): boolean {
  return location.endsWith('.json') && !isRemote(location) && isFile(location);
}

function isFile(location: string): boolean {
  return statSync(location, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** What is seen of a dataset stands with the dataset. */
function checkWhole(location: string, options: OpenOptions): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined);
  if (given === undefined) return;
  throw new OptionError(
    { path: location },
    `${given[0]} is of a single dataset, and ${location} is a mixture: write it beside the "dataset" that it is of.`,
  );
}

/** The dataset as it is stored, without overlays. Throws {@link FileError}, UnfinishedPackError, ManifestError, DamagedShardError, ShardIndexError. */
export async function openStored(
  location: string | readonly string[],
  { layout, split, features }: Pick<OpenOptions, 'layout' | 'split' | 'features'> = {},
): Promise<StoredParts> {
  const meant = (await Promise.all([location].flat().map(meantLocations))).flat();
  if (typeof location !== 'string' || meant.length > 1) {
    const found = await Promise.all(meant.map((place) => findShards(place, { layout })));
    return splitParts(
      found.flatMap((one) => one.shards),
      split,
      (shards) => foreignParts(shards, found[0]?.layout ?? 'tar', features),
    );
  }
  const found = await findShards(location, { folders: true, layout, split });
  const { ofSplit } = found;
  if (ofSplit === undefined) return partsOf(found, split, features);
  return { ...(await partsOf(found, undefined, features)), ...ofSplit };
}

async function partsOf(
  found: FoundDataset,
  split: string | undefined,
  features: ChosenColumns | undefined,
): Promise<StoredParts> {
  const { location, layout, manifest, shards, others } = found;
  if (layout === 'folder') return folderParts(location, split);
  if (manifest !== null) {
    const { expand } = await layoutOf(manifest.format);
    return packedParts(location, manifest, shards, expand !== undefined);
  }
  const parts = await splitParts(shards, split, (taken) => foreignParts(taken, layout, features));
  return { ...parts, otherLayouts: others, location: shownLocation(location) };
}

/** Of shards whose names say splits, those of the one that is asked for. Throws {@link OptionError} where there is none of its name. */
async function splitParts(
  shards: readonly FoundShard[],
  split: string | undefined,
  open: (taken: readonly FoundShard[]) => Promise<StoredParts>,
): Promise<StoredParts> {
  const splits = splitsOf(shards);
  if (split === undefined || splits.length === 0) return { ...(await open(shards)), splits };
  return { ...(await open(shardsOfSplit(shards, split))), splits, split };
}

async function loadIndex(shardPath: string, read?: ReadFile) {
  const index = indexPathOf(shardPath);
  if (read !== undefined && !isRemote(index)) return decodeShardIndex(await read(index), index);
  if (!isRemote(index)) return readShardIndex(index);
  return { ...(await readShardIndex(index, { parts: REMOTE_PARTS })), source: [] };
}

/** What lies beside a shard is named when it is asked for: there may be very many shards, of which few are read at once. */
function packedParts(
  location: string,
  manifest: Manifest,
  shards: readonly FoundShard[],
  isExpanded: boolean,
): StoredParts {
  return {
    location: shownLocation(location),
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    mostObjects: manifest.columns.find(({ most }) => most !== undefined)?.most,
    identityOfFirst: (count) => identityOf(manifest.shards.slice(0, count)),
    shards: shards.map(
      ({ name, path, record }): ShardFile => ({
        name,
        path,
        bytes: record!.bytes,
        samples: record!.samples,
        ...(isExpanded && { open: () => openShard(manifest.format, path) }),
        loadIndex: (read) => loadIndex(path, read),
        loadParts: (parts) => readShardIndex(indexPathOf(path), { parts }),
        findCropIndex: async () => besidePath('crops', path),
        loadInspection: inspectionBeside(path, () => readShardIndex(indexPathOf(path), { parts: ['fields'] })),
      }),
    ),
  };
}
