import { OptionError, type ShardIndex } from '@shardtool/format';
import { type Dataset, openDataset, overlayColumnTypes } from '@shardtool/reader';
import type { DatasetShards } from '../shard/dataset-shards.js';

/** What of a dataset is converted, as `openDataset` takes it. */
export interface ViewOptions {
  readonly overlay?: string | undefined;
  readonly split?: string | undefined;
  readonly excludeKeys?: Iterable<string> | undefined;
}

/** A view as workers are told of it. */
export interface View {
  readonly location: string;
  readonly overlay?: string | undefined;
  readonly split?: string | undefined;
  /** Keys, one a line, in memory that all workers share. */
  readonly excludeKeys?: SharedArrayBuffer | undefined;
}

/** What the new dataset is: the shards of the old one, seen through the view. */
export interface ViewedShards extends DatasetShards {
  readonly view: View;
  /** Of each shard. */
  readonly samples: readonly number[];
  readonly madeFrom: string;
}

/** Null where the dataset is taken as it is. Throws what `openDataset` throws. */
export async function openView(
  location: string,
  input: DatasetShards,
  { overlay, split, excludeKeys }: ViewOptions,
): Promise<ViewedShards | null> {
  if (overlay === undefined && split === undefined && excludeKeys === undefined) return null;
  const keys = excludeKeys === undefined ? undefined : [...excludeKeys];
  const dataset = await openDataset(location, { overlay, split, excludeKeys: keys });
  await dataset.close();
  const known = new Map(input.columns.map(({ name, type }) => [name, type]));
  const chosen = overlay ?? (split === undefined ? undefined : 'split');
  const types = chosen === undefined ? known : await overlayColumnTypes(location, chosen, known);
  if (dataset.size === 0)
    throw new OptionError({ path: location }, `No sample of ${location} is left: widen what is taken.`);
  return {
    ...input,
    samples: dataset.shards.map((shard) => shard.samples),
    classes: dataset.classes,
    columns: Array.from(types, ([name, type]) => ({ name, type })),
    view: { location, overlay, split, excludeKeys: keys && shared(keys.join('\n')) },
    madeFrom: dataset.identity,
  };
}

let opened: { readonly view: string; readonly dataset: Promise<Dataset> } | undefined;

/** The index of a shard as the view shows it. In a worker, which opens the dataset once. */
export async function viewedIndex({ excludeKeys, ...view }: View, shard: number): Promise<ShardIndex> {
  const name = JSON.stringify(view);
  if (opened?.view !== name) {
    const keys = excludeKeys && Buffer.from(new Uint8Array(excludeKeys)).toString().split('\n');
    const { location, ...options } = view;
    opened = { view: name, dataset: openDataset(location, { ...options, excludeKeys: keys }) };
  }
  return (await opened.dataset).shards[shard]!.loadIndex();
}

function shared(text: string): SharedArrayBuffer {
  const bytes = Buffer.from(text);
  const buffer = new SharedArrayBuffer(bytes.length);
  new Uint8Array(buffer).set(bytes);
  return buffer;
}
