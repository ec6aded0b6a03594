import { OptionError, option, sentence } from '@shardtool/base';
import {
  type ChosenColumns,
  chooseSplit,
  decodeLoadedIndex,
  type FoundDataset,
  type FoundShard,
  findShards,
  INDEX_PARTS,
  type IndexPart,
  identityOf,
  type LayoutName,
  type LoadedIndex,
  layoutOf,
  loadShardIndex,
  type Manifest,
  meantLocations,
  openShard,
  type PartOfIndex,
  packedSidecarPath,
  readShardIndex,
  type ShardIndex,
  shardsOfSplit,
  sideFolder,
  splitsInside,
  splitsOf,
  wrongSamples,
} from '@shardtool/format';
import { isRemote, type StorageOptions, shownLocation } from '@shardtool/storage';
import { foreignParts } from './foreign/foreign.js';
import { folderParts } from './foreign/plain-folder.js';
import { inspectionSidecar } from './inspection-columns.js';
import { KeyIndex } from './keys/key-index.js';
import type { ReadFile, ShardFile } from './shards/shard-file.js';
import type { StoredParts } from './stored-dataset.js';

/** Options for opening a location, and for requests. */
interface StoredOptions {
  /** Identity of an earlier version, or the first digits of it. */
  readonly version?: string | undefined;
  readonly layout?: LayoutName | undefined;
  readonly split?: string | undefined;
  readonly features?: ChosenColumns | undefined;
  readonly storage?: StorageOptions | undefined;
}

/** The parts of an index that are read from remote storage. The paths of the packed files are most of an index, and are not needed here. */
const REMOTE_PARTS = INDEX_PARTS.filter((part): part is Exclude<IndexPart, 'source'> => part !== 'source');

/** The dataset as it is stored, without overlays. Throws {@link FileError}, UnfinishedPackError, ManifestError, DamagedShardError, ShardIndexError. */
export async function openStored(
  location: string | readonly string[],
  { layout, split, features, storage, version }: StoredOptions = {},
): Promise<StoredParts> {
  if (version !== undefined && typeof location !== 'string') {
    throw new OptionError(
      {},
      sentence`The option ${option('version')} is for one dataset, but ${location.length} locations were given: remove it.`,
    );
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
 * Filters shards by the requested split. The split is in the names of the shards, or within them. Throws
 * {@link OptionError} if there is no such split.
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

/** Adds the label columns that later shards brought, with null for every sample, in the order of the dataset. */
function withColumnsOf<
  Index extends { readonly samples: number } & Partial<Pick<ShardIndex, 'columns' | 'columnTypes'>>,
>(index: Index, all: Manifest['columns']): Index {
  const { columns, columnTypes, samples } = index;
  const known = columns ?? columnTypes;
  if (known === undefined || all.every(({ name }) => known.has(name))) return index;
  const valuesOf = (name: string) => columns?.get(name) ?? new Array<null>(samples).fill(null);
  return {
    ...index,
    ...(columns && { columns: new Map([...all.map(({ name }) => [name, valuesOf(name)] as const), ...columns]) }),
    ...(columnTypes && {
      columnTypes: new Map([...all.map(({ name, type }) => [name, type] as const), ...columnTypes]),
    }),
  };
}

async function loadIndex({ path, storage }: FoundShard, read?: ReadFile): Promise<LoadedIndex> {
  const index = await packedSidecarPath('index', path, storage);
  if (read !== undefined && !isRemote(index)) return decodeLoadedIndex(await read(index), index);
  if (!isRemote(index)) return loadShardIndex(index);
  return readShardIndex(index, { parts: REMOTE_PARTS }, storage);
}

/**
 * Names of sidecar files are computed when they are needed, because there may be very many shards, of which few are
 * read at a time.
 */
function packedParts(
  location: string,
  manifest: Manifest,
  shards: readonly FoundShard[],
  isExpanded: boolean,
): StoredParts {
  const files = shards.map((shard) => packedShard(shard, manifest, isExpanded));
  return {
    location: shownLocation(location),
    format: manifest.format,
    identity: manifest.identity,
    classes: manifest.classes.map(({ name }) => name),
    classSamples: manifest.classes.map(({ samples }) => samples),
    fields: manifest.fields.map(({ name }) => name),
    mostObjects: manifest.columns.find(({ most }) => most !== undefined)?.most,
    identityOfFirst: (count) => identityOf(manifest.shards.slice(0, count)),
    shards: files,
    ...keyIndexOf(location, files),
  };
}

/** The index of the keys of these shards, which is made on the first look-up in a large dataset. */
function keyIndexOf(location: string, files: readonly ShardFile[]): Pick<StoredParts, 'keyIndex'> {
  const folder = sideFolder(location);
  if (folder === null) return {};
  const listed = files.map(({ name, crc32, samples, loadParts }) => ({
    name: `${name} ${crc32}`,
    samples,
    keys: async () => (await loadParts(['key'])).key,
  }));
  return { keyIndex: new KeyIndex(folder, listed) };
}

function packedShard(shard: FoundShard, { format, fields, columns }: Manifest, isExpanded: boolean): ShardFile {
  const { name, path, record, storage } = shard;
  // A column made from a field of an appended shard stays unknown, not null, until the shard is indexed again.
  const labels = columns.filter(({ name }) => !fields.some((field) => name.startsWith(`${field.name}.`)));
  const ownIndex = async <Index extends { readonly samples: number }>(index: Index): Promise<Index> => {
    if (index.samples === record!.samples) return index;
    const file = await packedSidecarPath('index', path, storage);
    throw wrongSamples(shownLocation(file), index.samples, record!.samples);
  };
  const loadParts = async <P extends IndexPart>(parts: readonly P[]): Promise<PartOfIndex<P>> => {
    const index = await readShardIndex(await packedSidecarPath('index', path, storage), { parts }, storage);
    return withColumnsOf((await ownIndex(index)) as PartOfIndex<IndexPart>, labels) as PartOfIndex<P>;
  };
  return {
    name,
    path,
    storage,
    bytes: record!.bytes,
    samples: record!.samples,
    crc32: record!.crc32,
    ...(isExpanded && { open: () => openShard(format, path, undefined, storage) }),
    loadIndex: async (read) => withColumnsOf(await ownIndex(await loadIndex(shard, read)), labels),
    loadParts,
    findCropIndex: () => packedSidecarPath('crops', path, storage),
    loadInspection: inspectionSidecar(shard, () => loadParts(['fields']), { isPacked: true }),
  };
}
