import { existsSync } from 'node:fs';
import { inLanes, OptionError, option, RequestRejectedError, sentence } from '@shardtool/base';
import {
  type ClassUnion,
  chooseSplit,
  type FoundShard,
  findShards,
  findSidecars,
  type LayoutName,
  layoutWith,
  type Manifest,
  type ManifestShard,
  manifestShards,
  openSource,
  packedSidecarPath,
  plainName,
  type ReadChoice,
  shardsOfSplit,
  splitsInside,
  splitsOf,
  stemOfShard,
  uniteClasses,
} from '@shardtool/format';
import { entryAt, isRemote, type StorageOptions } from '@shardtool/storage';

/** Number of shards whose files are looked up concurrently. */
const LOOKED_AT_ONCE = 32;

/** One shard of a dataset: its location and what is known about it. */
export interface DatasetShard {
  /** Name in messages: `000000.tar`. */
  readonly name: string;
  /** The name without its extension. */
  readonly stem: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  readonly format: LayoutName;
  /** Options for requests of the shard and its sidecar files, if they are remote. */
  readonly storage?: StorageOptions | undefined;
  readonly bytes: number;
  /** Null for a shard of another tool that has no stored index. */
  readonly indexPath: string | null;
  /** Path of its crop index, which may be missing; null if no shard of the dataset has a crop index. */
  readonly cropsPath: string | null;
  /** The record in the manifest; null for a shard of another tool. */
  readonly record: ManifestShard | null;
  /** Its split, if the dataset has shards of several splits. */
  readonly split?: string | null;
  /** How to read the shard, if the user chose it. */
  readonly reading?: ReadChoice | undefined;
  /** Maps the shard's own class numbers to those of the dataset; absent or null if they are the same. */
  readonly classNumbers?: readonly number[] | null;
}

/** Selects shards of a location and how they are read. */
export interface FindChoice {
  readonly layout?: LayoutName | undefined;
  /** How to read the shards. */
  readonly reading?: ReadChoice | undefined;
  /** Only the shards of this split, if their names contain splits. */
  readonly split?: string | undefined;
  /** Options for requests to remote storage. */
  readonly storage?: StorageOptions | undefined;
  /** An earlier version of the dataset. */
  readonly version?: string | undefined;
}

/** The shards of a dataset in order, and the manifest for all of them. */
export interface DatasetShards {
  readonly shards: readonly DatasetShard[];
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
  /** Null for shards of other tools. */
  readonly manifest: Manifest | null;
  /** The split of the shards, if one was requested and their names contain splits. */
  readonly split?: string;
}

/**
 * Finds the shards of a dataset: the output of `pack`, shards of other tools, or one file of any layout. Throws
 * FileError if there is nothing, UnfinishedPackError for a folder without shards, ManifestError, and OptionError.
 */
export async function findDatasetShards(
  location: string,
  { layout: asked, reading: chosen, split: splitOfPlace, storage, version }: FindChoice = {},
): Promise<DatasetShards> {
  refuseMixture(location);
  const found = await findShards(location, { layout: asked, split: splitOfPlace, storage, version });
  const { manifest, layout, shards: all, ofSplit } = found;
  const split = ofSplit === undefined ? splitOfPlace : undefined;
  if (manifest !== null && chosen?.links === 'follow') {
    const message = sentence`${location} was packed by shardtool, so it has no links: remove ${option('links')}.`;
    throw new OptionError({ path: location }, message);
  }
  if (manifest !== null)
    return { ...(await packedShards(found.location, manifest, storage)), ...(ofSplit && { split: ofSplit.split }) };
  const isNamed = splitsOf(all).length > 0;
  const inside = split === undefined || isNamed ? [] : await splitsInside(all, layout);
  const hasSplits = isNamed || inside.length > 0;
  const shards = split !== undefined && isNamed ? shardsOfSplit(all, split) : all;
  const reading =
    split === undefined || inside.length === 0
      ? chosen
      : { ...chosen, split: chooseSplit(inside, split, found.location) };
  const { classes, numbers } = await classesOf(shards, layout, reading);
  const isMixed = new Set(shards.map((shard) => shard.split)).size > 1;
  return {
    shards: await inLanes(shards, LOOKED_AT_ONCE, async (shard, k) => ({
      ...(await foreignShard(shard, layout, numbers[k] ?? null)),
      ...(isMixed && { split: shard.split ?? null }),
      // The stored index describes all samples, with columns by their usual names and without links, so a chosen way of
      // reading cannot use it.
      ...(reading !== undefined && { reading, indexPath: null }),
    })),
    classes,
    columns: [],
    manifest: null,
    ...(split !== undefined && hasSplits && { split }),
    ...(ofSplit && { split: ofSplit.split }),
  };
}

/** Rejects a mixture file, which lists several datasets and has no shards itself. Throws {@link OptionError}. */
function refuseMixture(location: string): void {
  if (!location.endsWith('.json') || isRemote(location) || !existsSync(location)) return;
  throw new OptionError(
    { path: location },
    `${location} does not have the name of a shard. If it is a mixture, pass the folder of each of its datasets instead.`,
  );
}

/** Returns remote shards with the paths of their crop indexes, if any of them has one. */
export async function withRemoteCrops(shards: readonly DatasetShard[]): Promise<readonly DatasetShard[]> {
  const placed = await inLanes(shards, LOOKED_AT_ONCE, async (shard) => ({
    ...shard,
    cropsPath: await packedSidecarPath('crops', shard.path, shard.storage),
  }));
  const found = await inLanes(placed, LOOKED_AT_ONCE, ({ cropsPath, storage }) =>
    entryAt(cropsPath, storage).catch((error) => {
      // A bucket without permission to list also answers like this for missing files.
      if (error instanceof RequestRejectedError) return null;
      throw error;
    }),
  );
  return found.some((entry) => entry !== null) ? placed : shards;
}

/** Class names stored in the shards; none if their layout has none. */
async function classesOf(
  shards: readonly FoundShard[],
  layout: LayoutName,
  reading: ReadChoice | undefined,
): Promise<ClassUnion> {
  const { partReader } = await layoutWith(layout, reading);
  const lists: (readonly string[])[] = [];
  if (partReader !== undefined) {
    const read = partReader();
    for (const { path, storage } of shards)
      lists.push((await read(() => openSource(path, undefined, storage))).classes);
  }
  return uniteClasses(lists);
}

/** Returns the shards that a manifest in the folder `location` lists. */
export async function packedShards(
  location: string,
  manifest: Manifest,
  storage?: StorageOptions,
): Promise<DatasetShards> {
  const { format, classes, columns } = manifest;
  const found = manifestShards(location, manifest);
  const [indexes, crops] = await Promise.all(
    (['index', 'crops'] as const).map((kind) =>
      inLanes(found, LOOKED_AT_ONCE, ({ path }) => packedSidecarPath(kind, path, storage)),
    ),
  );
  // Crop indexes of a remote dataset are needed only by verify.
  const hasCrops = !isRemote(location) && crops!.some((path) => existsSync(path));
  return {
    classes: classes.map(({ name }) => name),
    columns,
    manifest,
    shards: found.map(({ name, path, record }, k) => {
      return {
        name,
        stem: stemOfShard(name),
        path,
        format,
        storage,
        bytes: record!.bytes,
        indexPath: indexes![k]!,
        cropsPath: hasCrops ? crops![k]! : null,
        record,
      };
    }),
  };
}

async function foreignShard(
  { name, path, storage, record }: FoundShard,
  format: LayoutName,
  classNumbers: readonly number[] | null,
): Promise<DatasetShard> {
  // If the file is missing, opening it reports that.
  const bytes = (await entryAt(path, storage))?.size ?? 0;
  const [indexPath, cropsPath] = await Promise.all([
    findSidecars('index', path, storage),
    findSidecars('crops', path, storage),
  ]);
  // A file in a subfolder is named after its path.
  const stem = stemOfShard(plainName(name)).replaceAll('/', '-');
  return { name, stem, path, format, storage, bytes, indexPath, cropsPath, record, classNumbers };
}

/** The size of several shards together. */
export function sumOfBytes(shards: readonly { readonly bytes: number }[]): number {
  return shards.reduce((sum, { bytes }) => sum + bytes, 0);
}
