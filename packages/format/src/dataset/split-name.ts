import { OptionError } from '@shardtool/base';

/** What the Hub's `datasets` takes for the name of a split, by the name that it then has (docs, "Structure your repository"). */
const SPLITS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    train: ['train', 'training'],
    validation: ['validation', 'valid', 'val', 'dev'],
    test: ['test', 'testing', 'eval', 'evaluation'],
  }).flatMap(([split, names]) => names.map((name) => [name, split] as const)),
);
/** `train-00000-of-00002.parquet`: whatever stands there is a split. */
const NUMBERED = /^(\w+(?:\.\w+)*)-\d{5}-of-\d{5}/;
/** A folder that holds the files of all splits. */
const DATA_FOLDER = 'data';

/** The name that a split is known by: `validation` for `val`; a name that is not one of the usual stays. */
export function canonicalSplit(name: string): string {
  return SPLITS.get(name.toLowerCase()) ?? name;
}

/** The split that a file is of, by its own name, else by that of a folder; undefined where none says it. */
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

/** Whether a folder is named as a split is: `train`, `val2017`. */
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

/** The folder of the dataset that a file is of: those that say splits, and `data`, are of one dataset. */
export function datasetFolderOf(name: string): string {
  const folders = name.split('/').slice(0, -1);
  return folders.filter((folder) => folder !== DATA_FOLDER && wordIn(folder) === undefined).join('/') || '.';
}

/** What has a split, or none. */
interface OfSplit {
  readonly path: string;
  readonly split?: string | undefined;
}

/** The splits that shards are of, in the order of the shards. */
export function splitsOf(shards: readonly OfSplit[]): string[] {
  return [...new Set(shards.flatMap(({ split }) => split ?? []))];
}

/** The one of these splits that is meant by a name. Throws {@link OptionError} where none is. */
export function chooseSplit(splits: readonly string[], split: string, path: string): string {
  return shardsOfSplit(
    splits.map((name) => ({ path, split: name })),
    split,
  )[0]!.split;
}

/** Those of one split. Throws {@link OptionError} where there are none. */
export function shardsOfSplit<T extends OfSplit>(shards: readonly T[], split: string): T[] {
  const wanted = canonicalSplit(split);
  const taken = shards.filter((shard) => shard.split === wanted || shard.split === split);
  if (taken.length > 0) return taken;
  const message = `There is no split "${split}" here; the files are of ${splitsOf(shards).join(', ')}.`;
  throw new OptionError({ path: shards[0]?.path }, message);
}
