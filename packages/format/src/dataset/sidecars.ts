import path from 'node:path';
import { isRemote, joinLocation, splitLocation } from '@shardtool/storage';
import {
  entryOf,
  type LayoutEntry,
  type LayoutName,
  layoutNames,
  layoutOfName,
  stemOfShard,
} from '../layouts/registry.js';

/** One kind of sidecar file: its name, which shards have it, and how a file written by shardtool is recognised. */
export interface SidecarKind {
  /** Whether there is one per shard, or one for all shards of a folder. */
  readonly of: 'shard' | 'folder';
  /** Only tar shards have one. */
  readonly isOfTars?: true;
  /** The sidecar is measured from finished shards, so no pack writes or notes it. */
  readonly isFoundOut?: true;
  /** The file name, from the name of the shard (`000000.tar`, `000000.lmdb`). The name for a folder is constant. */
  fileName(shard: string): string;
  /** The name to use if a file of other software has the usual name. Absent if readers accept only the usual name. */
  otherName?(shard: string): string;
  /**
   * A text near the end of every such file that shardtool wrote. Absent if other software writes identical files; then
   * the pack's note tells which ones shardtool wrote.
   */
  readonly mark?: string;
}

/**
 * Every kind of sidecar file. The index is always written, and each other kind on request, which pack.json notes. For
 * all kinds: a pack does not start if such a name is taken; `--overwrite` and `--restart` remove only files that
 * shardtool wrote; `verify --fix` rebuilds those of a repaired shard and keeps the old ones in quarantine; `convert`
 * does not copy them but makes those of the new shards. A sidecar that was measured later (`isFoundOut`) never blocks a
 * pack, is removed with its shard, and is valid only for the shard bytes that it was measured from.
 */
export const SIDECARS = {
  /** The index of shardtool. */
  index: {
    of: 'shard',
    // An index is itself a Parquet file, so next to a Parquet shard it has another extension.
    fileName: (shard) => `${stemOfShard(shard)}.${isReadByFolder(shard) ? 'shardtool' : 'parquet'}`,
    otherName: (shard) => `${shard}.shardtool`,
    mark: 'shardtool.index',
  },
  /** For wids of webdataset, whose own tool (`widsindex create`) writes the same file. */
  wids: {
    of: 'folder',
    isOfTars: true,
    fileName: () => 'shardindex.json',
  },
  /** For `fn.readers.webdataset` of NVIDIA DALI, whose own tool (`wds2idx`) writes the same file. */
  dali: {
    of: 'shard',
    isOfTars: true,
    fileName: (shard) => `${stemOfShard(shard)}.idx`,
  },
  /** Where the MCUs of baseline JPEGs begin, so that a crop can be decoded without the rest. */
  crops: {
    of: 'shard',
    fileName: (shard) => `${stemOfShard(shard)}.crops`,
    otherName: (shard) => `${shard}.crops`,
    mark: 'shardtool.crops',
  },
  /** The measurements of the samples by `shardtool inspect`. */
  inspection: {
    of: 'shard',
    isFoundOut: true,
    fileName: (shard) => `${stemOfShard(shard)}.inspect`,
    otherName: (shard) => `${shard}.inspect`,
    mark: 'shardtool.inspect',
  },
} satisfies Record<string, SidecarKind>;

export type SidecarName = keyof typeof SIDECARS;

/** Sidecars that are made with a shard, or from it by `shardtool index`. A pack notes them. */
export type DerivedSidecar = Exclude<SidecarName, 'inspection'>;

/** All kinds, in the order of the table. */
export const SIDECAR_NAMES = Object.keys(SIDECARS) as SidecarName[];

/** All kinds of {@link DerivedSidecar}. */
export const DERIVED_SIDECARS = SIDECAR_NAMES.filter(
  (name): name is DerivedSidecar => kindOf(name).isFoundOut !== true,
);

export function kindOf(name: SidecarName): SidecarKind {
  return SIDECARS[name];
}

/** Whether shards of this layout can have this kind of sidecar. */
export function isOfLayout(kind: SidecarName, layout: LayoutName): boolean {
  return layout === 'tar' || kindOf(kind).isOfTars !== true;
}

/** The paths of the per-shard sidecars among `kinds`, as {@link sidecarPath} gives them. */
export function sidecarOfShard(shardPath: string, kinds: readonly SidecarName[] = SIDECAR_NAMES): string[] {
  return kinds.filter((kind) => kindOf(kind).of === 'shard').map((kind) => sidecarPath(kind, shardPath));
}

/** The names of the per-folder sidecars among `kinds`. */
export function sidecarPaths(kinds: readonly SidecarName[]): string[] {
  return kinds.filter((kind) => kindOf(kind).of === 'folder').map((kind) => kindOf(kind).fileName(''));
}

/**
 * The path of a sidecar, as `pack` writes it: `shards/000000.parquet` for `shards/000000.tar` and for
 * `shards/000000.lmdb/data.mdb`. If shards have a folder to themselves, the sidecar is in the folder above, that of the
 * dataset: `train.shardtool` for `data/train.parquet`. In the folder of a pack, the file always belongs to shardtool,
 * because a pack does not start if the name is taken. For shards of other software, {@link findSidecars} and {@link
 * placeSidecar} give the path.
 */
export function sidecarPath(kind: SidecarName, shardPath: string): string {
  const { folder, shard } = splitShardPath(shardPath);
  return joinLocation(datasetFolder(folder, shard), kindOf(kind).fileName(shard));
}

/**
 * The path where earlier versions wrote a sidecar of a packed shard: among the shards, even if these have a folder to
 * themselves. Null if that is also today's path.
 */
export function earlierSidecarPath(kind: SidecarName, shardPath: string): string | null {
  const { folder, shard } = splitShardPath(shardPath);
  const earlier = joinLocation(folder, kindOf(kind).fileName(shard));
  return earlier === sidecarPath(kind, shardPath) ? null : earlier;
}

/** Whether other software reads all files of a folder as shards of this layout. */
export function isReadByFolder(shard: string): boolean {
  return entryOfShard(shard)?.isReadByFolder === true;
}

/** The folder of the dataset that a packed shard belongs to: the parent of `folder` if `folder` is for shards only. */
export function datasetFolder(folder: string, shard: string): string {
  const shardFolder = entryOfShard(shard)?.shardFolder;
  if (shardFolder === undefined) return folder;
  const { folder: above, name } = splitLocation(folder);
  return name === shardFolder || name === hiddenFolder(shardFolder) ? above : folder;
}

/** The hidden folder in which a pack writes shards, so that other software does not take an incomplete set for all shards. */
export function hiddenFolder(shardFolder: string): string {
  return `.${shardFolder}`;
}

function entryOfShard(shard: string): LayoutEntry | undefined {
  const layout = layoutOfName(shard);
  return layout === null ? undefined : entryOf(layout);
}

export function splitShardPath(shardPath: string): { readonly folder: string; readonly shard: string } {
  if (isRemote(shardPath)) {
    const place = splitLocation(shardPath);
    const inner = layoutNames()
      .map(entryOf)
      .find(({ innerFile }) => innerFile === place.name);
    const own = splitLocation(place.folder);
    const isInner = inner !== undefined && own.name.endsWith(inner.extension);
    return isInner ? { folder: own.folder, shard: own.name } : { folder: place.folder, shard: place.name };
  }
  const file = shardPath.replace(/[/\\]+$/, '');
  const own = path.dirname(file);
  const isInner = layoutNames()
    .map(entryOf)
    .some(({ extension, innerFile }) => innerFile === path.basename(file) && own.endsWith(extension));
  const shard = isInner ? own : file;
  return { folder: path.dirname(shard), shard: path.basename(shard) };
}
