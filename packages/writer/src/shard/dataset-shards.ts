import { existsSync } from 'node:fs';
import { inLanes, OptionError, RequestRejectedError } from '@shardtool/base';
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

/** Shards whose files are looked for at a time. */
const LOOKED_AT_ONCE = 32;

/** One shard of a dataset: where it lies, and what is known of it. */
export interface DatasetShard {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The same without its ending. */
  readonly stem: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  readonly format: LayoutName;
  /** How it, and what lies beside it, is asked for where it is remote. */
  readonly storage?: StorageOptions | undefined;
  readonly bytes: number;
  /** Null for a shard of other software whose index nobody has kept. */
  readonly indexPath: string | null;
  /** Of its crop index, which may be missing; null where no shard has one. */
  readonly cropsPath: string | null;
  /** What the manifest says; null for a shard of other software. */
  readonly record: ManifestShard | null;
  /** Its split, where the dataset has shards of several. */
  readonly split?: string | null;
  /** How it is read, where a person has chosen. */
  readonly reading?: ReadChoice | undefined;
  /** What numbers its own classes have in the dataset; absent or null where they are the same. */
  readonly classNumbers?: readonly number[] | null;
}

/** Which of the shards that a place has. */
export interface FindChoice {
  readonly layout?: LayoutName | undefined;
  /** How they are read. */
  readonly reading?: ReadChoice | undefined;
  /** Only those of a split, where their names say splits. */
  readonly split?: string | undefined;
  /** How a remote place is asked. */
  readonly storage?: StorageOptions | undefined;
}

/** The shards of a dataset in their order, and what its manifest says of all of them. */
export interface DatasetShards {
  readonly shards: readonly DatasetShard[];
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
  /** Null where the shards are of other software. */
  readonly manifest: Manifest | null;
  /** The split that they are of, where one was asked for and their names say splits. */
  readonly split?: string;
}

/**
 * Finds the shards of a dataset: what `pack` wrote, shards of other software, or one file of any layout. Throws
 * FileError where there is nothing, UnfinishedPackError for a folder without shards, ManifestError, OptionError.
 */
export async function findDatasetShards(
  location: string,
  { layout: asked, reading: chosen, split: splitOfPlace, storage }: FindChoice = {},
): Promise<DatasetShards> {
  refuseMixture(location);
  const found = await findShards(location, { layout: asked, split: splitOfPlace, storage });
  const { manifest, layout, shards: all, ofSplit } = found;
  const split = ofSplit === undefined ? splitOfPlace : undefined;
  if (manifest !== null && chosen?.links === 'follow') {
    const message = `${location} was packed by shardtool, so it has no links: leave "links" (--links) out.`;
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
      // An index is of all samples, has columns as their usual names say, and no links.
      ...(reading !== undefined && { reading, indexPath: null }),
    })),
    classes,
    columns: [],
    manifest: null,
    ...(split !== undefined && hasSplits && { split }),
    ...(ofSplit && { split: ofSplit.split }),
  };
}

/** A file of a mixture names several datasets, and has no shards of its own. Throws {@link OptionError}. */
function refuseMixture(location: string): void {
  if (!location.endsWith('.json') || isRemote(location) || !existsSync(location)) return;
  throw new OptionError(
    { path: location },
    `${location} is no shard by its name: where it is a mixture, name its datasets one by one, each by its own folder.`,
  );
}

/** Remote shards with the places of their crop indexes, if any of them has one. */
export async function withRemoteCrops(shards: readonly DatasetShard[]): Promise<readonly DatasetShard[]> {
  const placed = await inLanes(shards, LOOKED_AT_ONCE, async (shard) => ({
    ...shard,
    cropsPath: await packedSidecarPath('crops', shard.path, shard.storage),
  }));
  const found = await inLanes(placed, LOOKED_AT_ONCE, ({ cropsPath, storage }) =>
    entryAt(cropsPath, storage).catch((error) => {
      // A bucket that may not be listed says this of what is not there, too.
      if (error instanceof RequestRejectedError) return null;
      throw error;
    }),
  );
  return found.some((entry) => entry !== null) ? placed : shards;
}

/** The class names that shards say; none where their layout has none. */
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

/** The shards that a manifest in the folder `location` names. */
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
  // Of a remote dataset nobody but verify wants to know.
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
  // If there is no such file, opening it says so.
  const bytes = (await entryAt(path, storage))?.size ?? 0;
  const [indexPath, cropsPath] = await Promise.all([
    findSidecars('index', path, storage),
    findSidecars('crops', path, storage),
  ]);
  // One that lies in a folder below is named by it.
  const stem = stemOfShard(plainName(name)).replaceAll('/', '-');
  return { name, stem, path, format, storage, bytes, indexPath, cropsPath, record, classNumbers };
}
