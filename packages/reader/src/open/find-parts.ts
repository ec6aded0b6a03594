import { CALL_OPTIONS, checkCallOptions, type OptionTable } from '@shardtool/base';
import type { ChosenColumns, LayoutName } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { openStored } from '../dataset/open-stored.js';
import type { DatasetParts } from '../dataset/stored-dataset.js';
import { readOverlays, SPLIT_OVERLAY } from '../overlay/find.js';
import { viewOf } from '../overlay/view.js';

/** Options that select and change what a dataset contains. The shards do not change. */
export interface OpenOptions {
  /** An overlay of `shardtool overlay`: its name, or the path of its file. */
  readonly overlay?: string | undefined;
  /**
   * Only the samples of this split. If `overlay` is not set and the files or folders of the location are named by
   * splits, it is one of those. Otherwise it is a split of the overlay, by default of the overlay `split`.
   */
  readonly split?: string | undefined;
  /**
   * An earlier version of the dataset, as `shardtool log` lists them: its identity, or the first digits of it (at least 6).
   * Default: the current version.
   */
  readonly version?: string | undefined;
  /** The layout of a location that could be read in several ways: `tar`, `mds`, `parquet`, `folder`. */
  readonly layout?: LayoutName | undefined;
  /** Which features of TFRecord are the image, the class and the key, if they do not have the usual names. */
  readonly features?: ChosenColumns | undefined;
  /** Keys of samples that are omitted. */
  readonly excludeKeys?: Iterable<string> | undefined;
  /**
   * Maximum size of a sample, all fields together, in bytes or as a text such as `4GiB`. Reading a larger one is an
   * error. Default: 1 GiB.
   */
  readonly maxSampleBytes?: number | string | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Gives up opening, with the signal's reason. The dataset itself does not depend on it. */
  readonly signal?: AbortSignal | undefined;
}

const OPEN_OPTIONS = {
  overlay: { kind: 'path', help: 'An overlay' },
  split: { kind: 'path', help: 'A split' },
  version: { kind: 'text', help: 'An earlier version' },
  layout: { kind: 'text', help: 'Layout of the location' },
  features: {
    kind: 'own',
    type: 'ChosenColumns',
    must: 'is { image, label, key }',
    help: 'Features of TFRecord or HDF5',
  },
  excludeKeys: { kind: 'own', type: 'Iterable<string>', must: 'is a list of keys', help: 'Samples that are omitted' },
  maxSampleBytes: { kind: 'bytes', from: 1, isEndless: true, help: 'Largest sample' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

type CheckedOpenOptions = Omit<OpenOptions, 'maxSampleBytes'> & { readonly maxSampleBytes?: number | undefined };

/** Options of a dataset, checked. Throws {@link OptionError} for an unknown name or a value that is not allowed. */
export function checkOpenOptions(options: OpenOptions): CheckedOpenOptions {
  const checked = checkCallOptions('openDataset', OPEN_OPTIONS, options, {
    features: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    excludeKeys: (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
  });
  return checked as CheckedOpenOptions;
}

/** A single dataset with all options that change its content. */
export async function findParts(location: string | readonly string[], given: OpenOptions): Promise<DatasetParts> {
  const options = checkOpenOptions(given);
  const { storage, maxSampleBytes, excludeKeys, layout, features, version } = options;
  const stored = await openStored(location, {
    version,
    layout,
    features,
    storage,
    split: options.overlay === undefined ? options.split : undefined,
  });
  const split = stored.split === undefined ? options.split : undefined;
  const overlay = options.overlay ?? (split === undefined ? undefined : SPLIT_OVERLAY);
  const chain = overlay === undefined ? [] : await readOverlays(stored.folder ?? stored.location, overlay, storage);
  const view = await viewOf(stored, { chain, split, excludeKeys });
  if (maxSampleBytes === undefined) return view;
  return { ...view, shards: view.shards.map((shard) => ({ ...shard, maxSampleBytes })) };
}
