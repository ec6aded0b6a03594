import { OptionError } from '@shardtool/base';

/** Split names that Hugging Face datasets recognises, and the canonical name of each (docs, "Structure your repository"). */
const SPLITS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    train: ['train', 'training'],
    validation: ['validation', 'valid', 'val', 'dev'],
    test: ['test', 'testing', 'eval', 'evaluation'],
  }).flatMap(([split, names]) => names.map((name) => [name, split] as const)),
);
/** `train-00000-of-00002.parquet`: the part before the number is a split. */
const NUMBERED = /^(\w+(?:\.\w+)*)-\d{5}-of-\d{5}/;
/** A folder that holds the files of all splits. */
const DATA_FOLDER = 'data';

/** The canonical name of a split: `validation` for `val`. Other names stay as given. */
export function canonicalSplit(name: string): string {
  return SPLITS.get(name.toLowerCase()) ?? name;
}

/** The folder of a key at this depth, 0 for the first; null if the last part of the key is at that depth or above. */
export function folderAt(key: string, depth: number): string | null {
  const parts = key.split('/');
  return parts.length > depth + 1 ? parts[depth]! : null;
}

/** The split of a file, by its own name, else by its folder's name; undefined if neither indicates one. */
export function splitOf(name: string): string | undefined {
  const parts = name.split('/');
  const file = parts.pop()!;
  const numbered = NUMBERED.exec(file)?.[1];
  if (numbered !== undefined) return canonicalSplit(numbered);
  return (
    wordIn(file) ??
    parts
      .reverse()
      .map(wordIn)
      .find((split) => split !== undefined)
  );
}

/** Whether a folder is named like a split: `train`, `val2017`. */
export function saysSplit(folder: string): boolean {
  return wordIn(folder) !== undefined;
}

function wordIn(name: string): string | undefined {
  return name
    .toLowerCase()
    .split(/[^a-z]+/)
    .map((word) => SPLITS.get(word))
    .find((split) => split !== undefined);
}

/** The folder of the dataset that a file belongs to: folders named like splits, and `data`, belong to one dataset. */
export function datasetFolderOf(name: string): string {
  const folders = name.split('/').slice(0, -1);
  return folders.filter((folder) => folder !== DATA_FOLDER && wordIn(folder) === undefined).join('/') || '.';
}

/** Something that may belong to a split. */
interface OfSplit {
  readonly path: string;
  readonly split?: string | undefined;
}

/** The splits of these shards, in the order of the shards. */
export function splitsOf(shards: readonly OfSplit[]): string[] {
  return [...new Set(shards.flatMap(({ split }) => split ?? []))];
}

/**
 * The split with this name, or with another common form of it. Throws {@link OptionError} if there is no such split.
 */
export function chooseSplit(splits: readonly string[], split: string, path: string): string {
  return shardsOfSplit(
    splits.map((name) => ({ path, split: name })),
    split,
  )[0]!.split;
}

/** The shards of one split. Throws {@link OptionError} if there are none. */
export function shardsOfSplit<T extends OfSplit>(shards: readonly T[], split: string): T[] {
  const wanted = canonicalSplit(split);
  const taken = shards.filter((shard) => shard.split === wanted || shard.split === split);
  if (taken.length > 0) return taken;
  const message = `No split "${split}" here; the files belong to ${splitsOf(shards).join(', ')}.`;
  throw new OptionError({ path: shards[0]?.path }, message);
}
