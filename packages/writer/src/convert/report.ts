import { readManifest } from '@shardtool/format';
import { NoImagesError } from '../errors.js';
import { commitDataset, type DatasetFacts, type PartialField } from '../output/commit.js';
import type { OutputFolder } from '../output/output-folder.js';
import { removeState } from '../output/pack-state.js';
import { checkShardsThere } from '../output/same-dataset.js';
import type { ShardRecord } from '../shard/new-shard.js';

/** What a conversion made. */
export interface ConvertReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of the new shards in bytes. */
  readonly bytes: number;
  /** Files in the input that belong to no sample: dotfiles, names without a dot; in a tar of class folders also those beside no image. */
  readonly skippedEntries: number;
  /** Links in the input that were not followed. */
  readonly skippedLinks: number;
  /** Samples that the labels have no row for, or for which `where` does not hold. */
  readonly leftOut: number;
  /** Samples that webdataset skips when it reads these tars, because their keys begin with a folder like `__x__`. */
  readonly metaSamples: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** The folder was the dataset of this input and these options already: nothing was written. */
  readonly wasCommitted: boolean;
}

/** What of the input is not in the new dataset. */
export type SkippedCounts = Pick<ConvertReport, 'skippedEntries' | 'skippedLinks' | 'leftOut'>;

const NOTHING_SKIPPED: SkippedCounts = { skippedEntries: 0, skippedLinks: 0, leftOut: 0 };

/** Writes dataset.json, and tells what was made. */
export async function commit(
  folder: OutputFolder,
  shards: readonly ShardRecord[],
  facts: Omit<DatasetFacts, 'lock'>,
  counts: SkippedCounts,
): Promise<ConvertReport> {
  const partialFields = await commitDataset(folder.path, shards, { ...facts, lock: folder.lock });
  removeState(folder.path);
  const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  return {
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    ...counts,
    metaSamples: total(({ metaSamples = 0 }) => metaSamples),
    partialFields,
    wasCommitted: false,
  };
}

/** Of a folder that holds what was to be made. */
export async function madeReport({ path: output }: OutputFolder): Promise<ConvertReport> {
  const manifest = await readManifest(output);
  checkShardsThere(output, manifest);
  removeState(output);
  const { samples, shards, bytes, fields } = manifest;
  const partialFields = fields.filter((field) => field.samples < samples);
  const counts = { samples, shards: shards.length, bytes, ...NOTHING_SKIPPED, metaSamples: 0 };
  return { ...counts, partialFields, wasCommitted: true };
}

export function refuseNothing(): never {
  const message = 'No sample is left to convert: widen "where", or see whether the labels name these samples.';
  throw new NoImagesError({}, message);
}

/** Of a tar without samples. */
export function skippedLinksRemedy(skippedLinks: number): string {
  const what = skippedLinks === 1 ? 'a link was' : `${skippedLinks} links were`;
  return `${what} skipped, which "links" (--links follow) takes for the files in the same tar that they lead to`;
}

/** Of shards that other software wrote. */
export function refuseEmpty(path: string, skippedLinks: number): never {
  const remedy = skippedLinks > 0 ? skippedLinksRemedy(skippedLinks) : 'see whether it is the file that was meant';
  const message = `There is no sample to convert: ${path} has none; ${remedy}.`;
  throw new NoImagesError({ path }, message);
}
