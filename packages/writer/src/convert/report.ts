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
  /** Samples that the labels have no row for, or for which `where` does not hold. */
  readonly leftOut: number;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** The folder was the dataset of this input and these options already: nothing was written. */
  readonly wasCommitted: boolean;
}

/** Writes dataset.json, and tells what was made. */
export async function commit(
  folder: OutputFolder,
  shards: readonly ShardRecord[],
  facts: DatasetFacts,
  skippedEntries: number,
  leftOut = 0,
): Promise<ConvertReport> {
  const partialFields = await commitDataset(folder.path, shards, facts);
  removeState(folder.path);
  const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  return {
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    skippedEntries,
    leftOut,
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
  return { samples, shards: shards.length, bytes, skippedEntries: 0, leftOut: 0, partialFields, wasCommitted: true };
}
export function refuseNothing(): never {
  const message = 'No sample is left to convert: widen "where", or see whether the labels name these samples.';
  throw new NoImagesError({}, message);
}

/** Of shards that other software wrote. */
export function refuseEmpty(path: string): never {
  const message = `There is no sample to convert: ${path} has none; see whether it is the file that was meant.`;
  throw new NoImagesError({ path }, message);
}
