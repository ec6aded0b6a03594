import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  OptionError,
  type OptionTable,
  type OwnChecks,
} from '@shardtool/base';
import { Dataset } from './dataset.js';
import { checkOpenOptions, findParts, type OpenOptions } from './find-parts.js';
import type { Mixture } from './mixture.js';
import { isMixtureFile } from './open-files.js';
import type { MixtureOptions, MixturePart } from './open-mixture.js';

/**
 * Opens a dataset: a folder that `pack` wrote, a folder of shards of other software or one such shard, or a list of
 * such shards, also with braces (`train-{000..146}.tar`). A location is a path or a URL that starts with http://,
 * https://, s3://, gs:// or hf://. For a packed dataset, only the manifest is read. Shards of other software are read
 * once to find their samples, unless `shardtool index` has stored their indexes. Throws {@link FileError},
 * UnfinishedPackError if a pack did not finish, ManifestError for a damaged dataset.json, DamagedShardError or
 * UnsupportedShardError for a shard of other software, VersionError for a file that a newer version wrote, and
 * OverlayError or OptionError for an overlay, a split or a key that does not belong to the dataset.
 */
export async function openDataset(location: string | readonly string[], options: OpenOptions = {}): Promise<Dataset> {
  for (const one of Array.isArray(location) ? location : [location]) checkLocation('openDataset', one);
  const { signal } = checkOpenOptions(options);
  return abortable(
    signal,
    () => open(location, options),
    (dataset) => dataset.close(),
  );
}

async function open(location: string | readonly string[], given: OpenOptions): Promise<Dataset> {
  const options = checkOpenOptions(given);
  if (typeof location !== 'string' || !isMixtureFile(location)) return new Dataset(await findParts(location, options));
  const { mixDatasets, readMixtureFile } = await import('./open-mixture.js');
  const { parts, options: mixed } = await readMixtureFile(location);
  const { storage, maxSampleBytes, signal: _, ...others } = options;
  checkWhole(location, others);
  return mixDatasets(parts, mixed, (place, own) => openDataset(place, { storage, maxSampleBytes, ...own }));
}

/**
 * Opens several datasets as one. Its loaders mix their samples: by weights, by a number of passes, by a fixed number of
 * rows in each batch, or, without any of these, every sample of all datasets once. Throws OptionError for invalid parts
 * and options, and the errors of {@link openDataset} for each dataset.
 */
export async function openMixture(parts: readonly MixturePart[], options: MixtureOptions = {}): Promise<Mixture> {
  const { mixDatasets } = await import('./open-mixture.js');
  checkCallOptions('openMixture', MIXTURE_OPTIONS, options, VALUES_LATER);
  const { signal, ...mixed } = options;
  return abortable(
    signal,
    () => mixDatasets(parts, mixed, (location, own) => openDataset(location, { ...own, signal })),
    (mixture) => mixture.close(),
  );
}

const CHECKED_LATER = { kind: 'own', type: 'unknown', must: '', help: '' } as const;

/** Names of the options of a mixture. {@link MixtureOptions} describes them, and their values are checked together. */
const MIXTURE_OPTIONS = {
  end: CHECKED_LATER,
  samplesPerEpoch: CHECKED_LATER,
  perBatch: CHECKED_LATER,
  classLists: CHECKED_LATER,
  group: CHECKED_LATER,
  window: CHECKED_LATER,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

const VALUES_LATER: OwnChecks = Object.fromEntries(
  ['end', 'samplesPerEpoch', 'perBatch', 'classLists', 'group', 'window'].map((name) => [name, () => true]),
);

/** Options that change the content of a dataset belong to that dataset. */
function checkWhole(location: string, options: OpenOptions): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined);
  if (given === undefined) return;
  throw new OptionError(
    { path: location },
    `${given[0]} is for a single dataset, but ${location} is a mixture: set it in the entry of the mixture that has this "dataset".`,
  );
}

export type { OpenOptions } from './find-parts.js';
