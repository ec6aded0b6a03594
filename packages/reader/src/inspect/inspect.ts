import { OptionError, WatchedCallbacks, withMessages } from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';
import type { Dataset } from '../dataset/dataset.js';
import { openDataset } from '../dataset/open.js';
import { findCopies } from './copies.js';
import { keepGroups } from './keep-groups.js';
import { type MeasureOptions, measureDataset } from './measure-dataset.js';
import { type InspectReport, reportOf } from './report.js';

export interface InspectOptions extends MeasureOptions {
  /** A second dataset: samples that both have are leaks. */
  readonly against?: string | undefined;
  /** How remote locations are asked. What is omitted comes from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** How many samples of a finding, and how many groups, are named. Default 48; all are counted. */
  readonly most?: number | undefined;
}

const MOST = 48;

/**
 * Looks at every image once, in worker threads, and keeps what it measured as columns beside each shard, `inspect.NAME`, which
 * `where` knows. What lies there is not measured again. Throws {@link OptionError} for a mixture, {@link FileError} where
 * a dataset is not there, cannot be read, or the columns cannot be written, DamagedShardError and ShardIndexError of its shards.
 */
export async function inspect(location: string, options: InspectOptions = {}): Promise<InspectReport> {
  const callbacks = new WatchedCallbacks();
  const given = { ...options, onProgress: callbacks.wrap(options.onProgress) };
  return callbacks.watch(() => withMessages(() => inspectDataset(location, given)));
}

async function inspectDataset(location: string, options: InspectOptions): Promise<InspectReport> {
  await using dataset = await openOne(location, options.storage);
  await using other = options.against === undefined ? null : await openOne(options.against, options.storage);
  const { measures, known, isKept } = await measureDataset(dataset, options);
  const against = other === null ? null : (await measureDataset(other, options)).measures;
  const found = findCopies(measures, against);
  await keepGroups(dataset, found, other);
  return reportOf({ dataset, other, measures, known, isKept }, found, options.most ?? MOST);
}

async function openOne(location: string, storage: StorageOptions | undefined): Promise<Dataset> {
  const dataset = await openDataset(location, { storage });
  if (dataset.mixture === null) return dataset;
  await dataset.close();
  throw new OptionError({ path: location }, `${location} is a mixture: inspect the datasets that it is made of.`);
}
