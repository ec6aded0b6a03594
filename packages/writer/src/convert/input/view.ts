import { OptionError } from '@shardtool/base';
import { type ColumnType, INDEX_PARTS, type ReadChoice, type ShardIndex, stemOfShard } from '@shardtool/format';
import type { Dataset, OpenOptions } from '@shardtool/reader';
import type { DatasetShard, DatasetShards } from '../../shard/dataset-shards.js';
import { numberedStem } from '../../shard/shard-paths.js';

/** A shard of an opened dataset: its location, and its index as the view shows it. */
export type ViewedShard = Dataset['shards'][number];

/** Selects the part of a dataset to convert, as `openDataset` takes it. */
export type ViewOptions = Pick<OpenOptions, 'overlay' | 'split' | 'version' | 'layout' | 'features' | 'excludeKeys'>;

/** The selection, with the options of how shards are read. */
export interface InputChoice extends Omit<ViewOptions, 'features'>, Pick<OpenOptions, 'storage'> {
  readonly reading?: ReadChoice | undefined;
}

/** A view in the form that is sent to workers. */
export interface View extends Pick<OpenOptions, 'overlay' | 'split' | 'version' | 'layout' | 'storage'> {
  readonly location: string;
  readonly features?: ReadChoice | undefined;
  /** A list of keys as JSON, in memory shared by all workers. */
  readonly excludeKeys?: SharedArrayBuffer | undefined;
}

/** The new dataset: the shards of the old one as the view shows them. */
export interface ViewedShards extends DatasetShards {
  readonly view: View;
  /** Number of samples of each shard. */
  readonly samples: readonly number[];
  readonly madeFrom: string;
}

/**
 * Returns null if the dataset is not filtered. Throws the errors of `openDataset`: OverlayError, OptionError,
 * FileError.
 */
export async function openView(
  location: string,
  input: DatasetShards,
  { overlay, split, version, layout, reading: features, excludeKeys, storage }: InputChoice,
): Promise<ViewedShards | null> {
  // An empty list excludes nothing: the dataset that is opened has the identity of one without the option.
  const given = excludeKeys === undefined ? [] : [...excludeKeys];
  const keys = given.length === 0 ? undefined : given;
  const isWhole = overlay === undefined && (split === undefined || split === input.split);
  if (isWhole && keys === undefined) return null;
  // Another conversion of this process may have opened an earlier dataset.
  opened = undefined;
  const seen = { overlay, split, version, layout, features, storage };
  const dataset = await openDataset(location, { ...seen, excludeKeys: keys });
  await dataset.close();
  const known = new Map(input.columns.map(({ name, type }) => [name, type]));
  const chosen = overlay ?? (split === undefined || split === input.split ? undefined : 'split');
  const types =
    chosen === undefined
      ? known
      : await (await import('@shardtool/reader')).overlayColumnTypes(location, chosen, known, { storage });
  if (dataset.size === 0)
    throw new OptionError({ path: location }, `No sample of ${location} is selected: use a wider selection.`);
  return {
    ...input,
    // A shard that is read in parts is several shards in the view, and each part becomes a shard.
    shards: dataset.shards.length === input.shards.length ? input.shards : shardsOfView(dataset),
    samples: dataset.shards.map((shard) => shard.samples),
    classes: dataset.classes,
    columns: Array.from(types, ([name, type]) => ({ name, type })),
    view: { location, ...seen, excludeKeys: keys && shared(JSON.stringify(keys)) },
    madeFrom: dataset.identity,
  };
}

function shardsOfView(
  { shards, format }: Dataset,
  stemOf: (name: string, number: number) => string = stemOfPart,
): DatasetShard[] {
  return shards.map(({ name, path, storage, bytes }, number): DatasetShard => {
    const stem = stemOf(name, number);
    return { name, stem, path, storage, bytes, format, indexPath: null, cropsPath: null, record: null };
  });
}

/** Returns the stem of a part: `train-00000-of-00002-0003` for `train-00000-of-00002.parquet[3]`. */
function stemOfPart(name: string): string {
  const at = name.lastIndexOf('[');
  const number = at === -1 ? '' : `-${name.slice(at + 1, -1).padStart(4, '0')}`;
  return `${stemOfShard(name.slice(0, at === -1 ? undefined : at)).replaceAll('/', '-')}${number}`;
}

/**
 * Concatenates the shards of a mixture under new names, with the class list of the mixture. The weights of the mixture
 * only apply when reading. Throws the errors of `openDataset`.
 */
export async function openMixed(location: string, name: string): Promise<ViewedShards> {
  opened = undefined;
  await using dataset = await openDataset(location);
  const { shards, classes, identity } = dataset;
  const types = new Map<string, ColumnType>();
  for (const shard of shards) {
    const { columnTypes = new Map<string, ColumnType>() } = await shard.loadParts(['columnTypes']);
    for (const [column, type] of columnTypes) types.set(column, widerOf(column, types.get(column), type));
  }
  return {
    shards: shardsOfView(dataset, (_, number) => numberedStem(name, number)),
    classes,
    columns: Array.from(types, ([column, type]) => ({ name: column, type })),
    manifest: null,
    samples: shards.map(({ samples }) => samples),
    view: { location },
    madeFrom: identity,
  };
}

function widerOf(column: string, one: ColumnType | undefined, other: ColumnType): ColumnType {
  if (one === undefined || one === other) return other;
  if (one !== 'string' && other !== 'string' && one !== 'bool' && other !== 'bool') return 'double';
  throw new OptionError(
    {},
    `The column "${column}" is of type ${one} in one dataset and of type ${other} in another: set its values again with an overlay.`,
  );
}

let opened: { readonly view: string; readonly dataset: Promise<Dataset> } | undefined;

/** Returns a shard as the view shows it. A worker opens the dataset only once. */
export async function viewedShard({ excludeKeys, ...view }: View, shard: number): Promise<ViewedShard> {
  const name = JSON.stringify(view);
  if (opened?.view !== name) {
    const keys = excludeKeys && JSON.parse(Buffer.from(new Uint8Array(excludeKeys)).toString());
    const { location, ...options } = view;
    opened = { view: name, dataset: openDataset(location, { ...options, excludeKeys: keys }) };
  }
  return (await opened.dataset).shards[shard]!;
}

/** Returns its complete index, including the paths of the packed files. */
export function wholeIndex(shard: ViewedShard): Promise<ShardIndex> {
  return shard.loadParts(INDEX_PARTS);
}

function shared(text: string): SharedArrayBuffer {
  const bytes = Buffer.from(text);
  const buffer = new SharedArrayBuffer(bytes.length);
  new Uint8Array(buffer).set(bytes);
  return buffer;
}

/** Loads the reader only if a view is used, because packing does not need it. */
async function openDataset(location: string, options?: OpenOptions): Promise<Dataset> {
  return (await import('@shardtool/reader')).openDataset(location, options);
}
