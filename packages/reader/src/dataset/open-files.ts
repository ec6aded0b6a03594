import { statSync } from 'node:fs';
import { abortable, CALL_OPTIONS, checkCallOptions, OptionError, type OptionTable } from '@shardtool/base';
import {
  type ChosenColumns,
  chooseSplit,
  decodeShardIndex,
  type FoundDataset,
  type FoundShard,
  findShards,
  INDEX_PARTS,
  type IndexPart,
  identityOf,
  type LayoutName,
  type LoadedIndex,
  layoutOf,
  type Manifest,
  meantLocations,
  openShard,
  packedSidecarPath,
  readShardIndex,
  shardsOfSplit,
  splitsInside,
  splitsOf,
} from '@shardtool/format';
import { isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { readOverlays } from '../overlay/find.js';
import { viewOf } from '../overlay/view.js';
import { foreignParts } from './foreign/foreign.js';
import { folderParts } from './foreign/plain-folder.js';
import { inspectionSidecar } from './inspection-columns.js';
import type { ReadFile, ShardFile } from './shard-file.js';
import { type DatasetParts, StoredDataset, type StoredParts } from './stored-dataset.js';

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
  /**
   * An earlier version of the dataset, as `shardtool log` lists them: its identity, or the first digits of it (at least 6).
   * Default: the current version.
   */
  readonly version?: string | undefined;
  /** What a place is to be taken for that could be several things: `tar`, `mds`, `parquet`, `folder`. */
  readonly layout?: LayoutName | undefined;
  /** Which features of TFRecord are the image, the class and the key, where their names are not the usual ones. */
  readonly features?: ChosenColumns | undefined;
  /** Samples that are left out. */
  readonly excludeKeys?: Iterable<string> | undefined;
  /** Maximum size of a sample, all fields together, in bytes or as a text such as `4GiB`. Reading a larger one is an error. Default: 1 GiB. */
  readonly maxSampleBytes?: number | string | undefined;
  /** How a remote location is asked. What is left out comes from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Gives up opening, with the signal's reason. The dataset itself does not depend on it. */
  readonly signal?: AbortSignal | undefined;
}

const OPEN_OPTIONS = {
  overlay: { kind: 'path', help: 'An overlay' },
  split: { kind: 'path', help: 'A split' },
  version: { kind: 'text', help: 'An earlier version' },
  layout: { kind: 'text', help: 'What the place is taken for' },
  features: {
    kind: 'own',
    type: 'ChosenColumns',
    must: 'is { image, label, key }',
    help: 'Features of TFRecord or HDF5',
  },
  excludeKeys: { kind: 'own', type: 'Iterable<string>', must: 'is a list of keys', help: 'Samples that are omitted' },
  maxSampleBytes: { kind: 'bytes', from: 1, isEndless: true, help: 'Largest sample' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

type CheckedOpenOptions = Omit<OpenOptions, 'maxSampleBytes'> & { readonly maxSampleBytes?: number | undefined };

/** Options of a dataset, checked. Throws {@link OptionError} for an unknown name or a value that is not allowed. */
export function checkOpenOptions(options: OpenOptions): CheckedOpenOptions {
  const checked = checkCallOptions('openDataset', OPEN_OPTIONS, options, {
    features: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    excludeKeys: (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
  });
  return checked as CheckedOpenOptions;
}

/** What of an index is read from afar: the paths of the packed files are most of it, and nobody here asks for them. */
const REMOTE_PARTS = INDEX_PARTS.filter((part): part is Exclude<IndexPart, 'source'> => part !== 'source');

/**
 * Opens a dataset as `openDataset` does, to look at what is stored: without what makes loaders, unless it is a mixture. Throws the
 * errors of `openDataset`.
 */
export async function openFiles(location: string, options: OpenOptions = {}): Promise<StoredDataset> {
  if (isMixtureFile(location)) return (await import('./open.js')).openDataset(location, options);
  return abortable(
    options.signal,
    async () => new StoredDataset(await findParts(location, options)),
    (dataset) => dataset.close(),
  );
}

/** What is found of a single dataset, with all that changes how it is seen. */
export async function findParts(location: string | readonly string[], given: OpenOptions): Promise<DatasetParts> {
  const options = checkOpenOptions(given);
  const { storage, maxSampleBytes, excludeKeys, layout, features, version } = options;
  const stored = await openStored(location, {
    version,
    layout,
    features,
    storage,
    split: options.overlay === undefined ? options.split : undefined,
  });
  const split = stored.split === undefined ? options.split : undefined;
  const overlay = options.overlay ?? (split === undefined ? undefined : SPLIT_OVERLAY);
  const chain = overlay === undefined ? [] : await readOverlays(stored.folder ?? stored.location, overlay, storage);
  const view = await viewOf(stored, { chain, split, excludeKeys });
  if (maxSampleBytes === undefined) return view;
  return { ...view, shards: view.shards.map((shard) => ({ ...shard, maxSampleBytes })) };
}

/** A file that says what to mix: `{ "mixture": [{ "dataset": "a", "weight": 0.7 }, ...] }`. */
export function isMixtureFile(location: string): boolean {
  return location.endsWith('.json') && !isRemote(location) && isFile(location);
}

function isFile(location: string): boolean {
  return statSync(location, { throwIfNoEntry: false })?.isFile() ?? false;
}

/** The dataset as it is stored, without overlays. Throws {@link FileError}, UnfinishedPackError, ManifestError, DamagedShardError, ShardIndexError. */
export async function openStored(
  location: string | readonly string[],
  {
    layout,
    split,
    features,
    storage,
    version,
  }: Pick<OpenOptions, 'layout' | 'split' | 'features' | 'storage' | 'version'> = {},
): Promise<StoredParts> {
  if (version !== undefined && typeof location !== 'string') {
    throw new OptionError({}, `The option "version" is for one dataset, and ${location.length} locations were given.`);
  }
  const meant = (await Promise.all([location].flat().map(meantLocations))).flat();
  if (typeof location !== 'string' || (meant.length > 1 && version === undefined)) {
    const found = await Promise.all(meant.map((place) => findShards(place, { layout, storage })));
    return splitParts(
      found.flatMap((one) => one.shards),
      split,
      found[0]?.layout ?? 'tar',
      features,
    );
  }
  const found = await findShards(location, { folders: true, layout, split, storage, version });
  const { ofSplit } = found;
  const { location: folder } = found;
  if (ofSplit === undefined) return { ...(await partsOf(found, split, features)), folder };
  return { ...(await partsOf(found, undefined, features)), ...ofSplit, folder };
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
  const parts = await splitParts(shards, split, layout, features);
  return { ...parts, otherLayouts: others, location: shownLocation(location) };
}

/**
 * Of shards whose names say splits, or that have splits in them, those of the one that is asked for. Throws {@link OptionError} where
 * there is none of its name.
 */
async function splitParts(
  shards: readonly FoundShard[],
  split: string | undefined,
  layout: LayoutName,
  features: ChosenColumns | undefined,
): Promise<StoredParts> {
  const splits = splitsOf(shards);
  if (splits.length > 0) {
    const taken = split === undefined ? shards : shardsOfSplit(shards, split);
    return { ...(await foreignParts(taken, layout, features)), splits, ...(split !== undefined && { split }) };
  }
  const inside = split === undefined ? [] : await splitsInside(shards, layout);
  if (split === undefined || inside.length === 0) return foreignParts(shards, layout, features);
  const chosen = chooseSplit(inside, split, shards[0]!.path);
  return { ...(await foreignParts(shards, layout, { ...features, split: chosen })), splits: inside, split };
}

async function loadIndex({ path, storage }: FoundShard, read?: ReadFile): Promise<LoadedIndex> {
  const index = await packedSidecarPath('index', path, storage);
  if (read !== undefined && !isRemote(index)) return decodeShardIndex(await read(index), index);
  if (!isRemote(index)) return readShardIndex(index);
  return readShardIndex(index, { parts: REMOTE_PARTS }, storage);
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
    shards: shards.map((shard) => packedShard(shard, manifest.format, isExpanded)),
  };
}

function packedShard(shard: FoundShard, format: LayoutName, isExpanded: boolean): ShardFile {
  const { name, path, record, storage } = shard;
  const loadParts = async <P extends IndexPart>(parts: readonly P[]) =>
    readShardIndex(await packedSidecarPath('index', path, storage), { parts }, storage);
  return {
    name,
    path,
    storage,
    bytes: record!.bytes,
    samples: record!.samples,
    crc32: record!.crc32,
    ...(isExpanded && { open: () => openShard(format, path, undefined, storage) }),
    loadIndex: (read) => loadIndex(shard, read),
    loadParts,
    findCropIndex: () => packedSidecarPath('crops', path, storage),
    loadInspection: inspectionSidecar(shard, () => loadParts(['fields'])),
  };
}
