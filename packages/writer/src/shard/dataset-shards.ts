import { stat } from 'node:fs/promises';
import path from 'node:path';
import {
  findShards,
  indexPathOf,
  keptIndexPath,
  type LayoutName,
  layoutOf,
  type Manifest,
  type ManifestShard,
} from '@shardtool/format';

/** One shard of a dataset: where it lies, and what is known of it. */
export interface DatasetShard {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The same without its ending. */
  readonly stem: string;
  /** The file to read; for LMDB the `data.mdb` inside the folder. */
  readonly path: string;
  readonly format: LayoutName;
  readonly bytes: number;
  /** Null for a shard of other software whose index nobody has kept. */
  readonly indexPath: string | null;
  /** What the manifest says; null for a shard of other software. */
  readonly record: ManifestShard | null;
}

/** The shards of a dataset in their order, and what its manifest says of all of them. */
export interface DatasetShards {
  readonly shards: readonly DatasetShard[];
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
}

/**
 * Finds the shards of a dataset: what `pack` wrote, WebDataset tars of other software, or one file of any layout. Throws
 * what {@link findShards} throws.
 */
export async function findDatasetShards(location: string): Promise<DatasetShards> {
  const single = await singleShard(location);
  if (single !== null) return { shards: [single], classes: [], columns: [] };
  const found = await findShards(location);
  if (found.kind === 'packed') return packedShards(location, found.manifest);
  const shards = await Promise.all(found.tars.map((tar) => foreignShard(tar, tar, 'tar')));
  return { shards, classes: [], columns: [] };
}

/** The shards that a manifest in the folder `location` names. */
export function packedShards(location: string, { format, shards, classes, columns }: Manifest): DatasetShards {
  return {
    classes: classes.map(({ name }) => name),
    columns,
    shards: shards.map((record) => {
      // The file of an LMDB shard lies in a folder that has the shard's name.
      const name = record.file.split('/')[0]!;
      const indexPath = indexPathOf(path.join(location, name));
      const file = path.join(location, record.file);
      return { name, stem: stemOf(name), path: file, format, bytes: record.bytes, indexPath, record };
    }),
  };
}

/** A shard that is named by itself and is no tar: an LMDB folder, or a file of msgpack maps; null for anything else. */
async function singleShard(location: string): Promise<DatasetShard | null> {
  const format = (['lmdb', 'msgpack'] as const).find((name) => location.replace(/\/+$/, '').endsWith(`.${name}`));
  if (format === undefined) return null;
  const { innerFile } = await layoutOf(format);
  const file = innerFile === undefined ? location : path.join(location, innerFile);
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? foreignShard(location, file, format) : null;
}

async function foreignShard(shard: string, file: string, format: LayoutName): Promise<DatasetShard> {
  const name = path.basename(shard);
  // Where there is no such file, opening it says so.
  const bytes = (await stat(file).catch(() => null))?.size ?? 0;
  return { name, stem: stemOf(name), path: file, format, bytes, indexPath: await keptIndexPath(file), record: null };
}

function stemOf(name: string): string {
  return name.replace(/\.(tar|lmdb|msgpack)$/, '');
}
