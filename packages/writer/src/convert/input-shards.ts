import { stat } from 'node:fs/promises';
import path from 'node:path';
import { findShards, indexPathOf, keptIndexPath, type LayoutName, layoutOf, type Manifest } from '@shardtool/format';

/** A shard that is to be converted. */
export interface InputShard {
  /** As messages name it: `000000.tar`. */
  readonly name: string;
  /** The same without its ending: what the new shard is called. */
  readonly stem: string;
  readonly path: string;
  readonly format: LayoutName;
  readonly bytes: number;
  /** Null where there is no index, and the samples are those that a walk finds. */
  readonly indexPath: string | null;
  /** As the manifest says; null where there is none. */
  readonly samples: number | null;
}

/** What is to be converted, shards in the order of the dataset. */
export interface InputDataset {
  readonly shards: readonly InputShard[];
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly columns: Manifest['columns'];
}

/**
 * Finds the shards of a dataset: what `pack` wrote, WebDataset tars of other software, or one file of any layout. Throws
 * what {@link findShards} throws.
 */
export async function findInput(location: string): Promise<InputDataset> {
  const single = await singleShard(location);
  if (single !== null) return { shards: [single], classes: [], columns: [] };
  const found = await findShards(location);
  if (found.kind === 'packed') return packedInput(location, found.manifest);
  const shards = await Promise.all(found.tars.map((tar) => foreignShard(tar, tar, 'tar')));
  return { shards, classes: [], columns: [] };
}

function packedInput(location: string, { format, shards, classes, columns }: Manifest): InputDataset {
  return {
    classes: classes.map(({ name }) => name),
    columns,
    shards: shards.map(({ file, bytes, samples }) => {
      // The file of an LMDB shard lies in a folder that has the shard's name.
      const name = file.split('/')[0]!;
      const indexPath = indexPathOf(path.join(location, name));
      return { name, stem: stemOf(name), path: path.join(location, file), format, bytes, indexPath, samples };
    }),
  };
}

/** A shard that is named by itself and is no tar: an LMDB folder, or a file of msgpack maps; null for anything else. */
async function singleShard(location: string): Promise<InputShard | null> {
  const format = (['lmdb', 'msgpack'] as const).find((name) => location.replace(/\/+$/, '').endsWith(`.${name}`));
  if (format === undefined) return null;
  const { innerFile } = await layoutOf(format);
  const file = innerFile === undefined ? location : path.join(location, innerFile);
  const found = await stat(file).catch(() => null);
  return found?.isFile() ? foreignShard(location, file, format) : null;
}

async function foreignShard(shard: string, file: string, format: LayoutName): Promise<InputShard> {
  const name = path.basename(shard);
  // Where there is no such file, opening it says so.
  const bytes = (await stat(file).catch(() => null))?.size ?? 0;
  const indexPath = await keptIndexPath(file);
  return { name, stem: stemOf(name), path: file, format, bytes, indexPath, samples: null };
}

function stemOf(name: string): string {
  return name.replace(/\.(tar|lmdb|msgpack)$/, '');
}
