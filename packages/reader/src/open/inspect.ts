import {
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  OptionError,
  type OptionTable,
  watchedCall,
} from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';
import { findCopies } from '../inspect/copies.js';
import { type InspectReport, reportOf } from '../inspect/report.js';
import { hasImages } from '../loader/setup/image-choice.js';
import type { Dataset } from './dataset.js';
import { keepGroups } from './keep-groups.js';
import { type InspectProgress, type MeasureOptions, measureDataset } from './measure-dataset.js';
import { openDataset } from './open.js';

export interface InspectOptions extends MeasureOptions {
  /** A second dataset. Samples that occur in both are leaks. */
  readonly against?: string | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Maximum number of samples and of groups to list per finding. Default: 48. All are counted. */
  readonly limit?: number | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const DEFAULT_MOST = 48;

const OPTIONS = {
  against: { kind: 'path', help: 'A second dataset' },
  overwrite: { kind: 'switch', help: 'Measures again' },
  limit: { kind: 'whole', from: 0, help: 'Maximum number of listed samples' },
  ...CALL_OPTIONS,
} as const satisfies OptionTable;

/**
 * Measures every image once, in worker threads, and stores the results as columns `inspect.NAME` in a sidecar of each shard. `where`
 * can use these columns. Stored results are not measured again. Throws {@link OptionError} for a mixture, {@link FileError} if a
 * dataset does not exist or cannot be read or the columns cannot be written, and DamagedShardError and ShardIndexError for its shards.
 */
export async function inspect(location: string, options: InspectOptions = {}): Promise<InspectReport> {
  checkLocation('inspect', location);
  checkCallOptions('inspect', OPTIONS, options);
  return watchedCall<InspectProgress, InspectReport>(options, (onProgress) =>
    inspectDataset(location, { ...options, onProgress }),
  );
}

async function inspectDataset(location: string, options: InspectOptions): Promise<InspectReport> {
  await using dataset = await openOne(location, options.storage);
  if (!(await hasImages(dataset))) {
    throw new OptionError(
      { path: location },
      `The samples of ${location} have no images, so there is nothing to inspect.`,
    );
  }
  await using other = options.against === undefined ? null : await openOne(options.against, options.storage);
  const { measures, known, isKept } = await measureDataset(dataset, options);
  const against = other === null ? null : (await measureDataset(other, options)).measures;
  const found = findCopies(measures, against);
  await keepGroups(dataset, found, other);
  return reportOf({ dataset, other, measures, known, isKept }, found, options.limit ?? DEFAULT_MOST);
}

async function openOne(location: string, storage: StorageOptions | undefined): Promise<Dataset> {
  const dataset = await openDataset(location, { storage });
  if (dataset.mixture === null) return dataset;
  await dataset.close();
  throw new OptionError({ path: location }, `${location} is a mixture: inspect each of its datasets instead.`);
}
