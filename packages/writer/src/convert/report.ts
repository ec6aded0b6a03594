import { option, type Sentence, sentence, totalOf } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { NoImagesError } from '../errors.js';
import { commitDataset, type DatasetFacts, type PartialField } from '../output/commit.js';
import type { OutputFolder } from '../output/output-folder.js';
import { removeState } from '../output/pack-state.js';
import { checkShardsThere } from '../output/same-dataset.js';
import type { ShardRecord } from '../shard/new-shard.js';

/** Result of a conversion. */
export interface ConvertReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of the new shards in bytes. */
  readonly bytes: number;
  /**
   * Number of files in the input that belong to no sample: dotfiles and names without a dot, and in a tar of class
   * folders also files next to no image.
   */
  readonly skippedEntries: number;
  /** Number of links in the input that were not followed. */
  readonly skippedLinks: number;
  /** Number of samples that have no row in the labels, or do not match `where`. */
  readonly leftOut: number;
  /**
   * Number of samples that webdataset skips when it reads these tars, because their keys start with a folder such as
   * `__x__`.
   */
  readonly metaSamples: number;
  /** Number of samples without a class although they have a field `cls`, because its text is not a number. */
  readonly wordClasses: number;
  /** Number of samples with a class number, if classes have no names. 0 if they have. */
  readonly unnamedClasses: number;
  /** Fields that not all samples have. Some readers require the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** Number of shards that an earlier run had finished. All other numbers include them. */
  readonly keptShards: number;
  /** True if the folder already was the dataset of this input and these options, so that nothing was written. */
  readonly wasCommitted: boolean;
}

/** Counts of items of the input that are not in the new dataset. */
export type SkippedCounts = Pick<ConvertReport, 'skippedEntries' | 'skippedLinks' | 'leftOut'>;

const NOTHING_SKIPPED: SkippedCounts = { skippedEntries: 0, skippedLinks: 0, leftOut: 0 };

/** Writes dataset.json and returns the report. */
export async function commit(
  folder: OutputFolder,
  shards: readonly (ShardRecord & { readonly isKept?: boolean })[],
  facts: Omit<DatasetFacts, 'lock'>,
  counts: SkippedCounts,
): Promise<ConvertReport> {
  const partialFields = await commitDataset(folder.path, shards, { ...facts, lock: folder.lock });
  removeState(folder.path);
  const total = (count: (shard: ShardRecord) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  const withClass = ({ classCounts }: ShardRecord) => totalOf(classCounts, ([, count]) => count);
  return {
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    ...counts,
    metaSamples: total(({ metaSamples = 0 }) => metaSamples),
    wordClasses: total((shard) => Math.max(0, (shard.fieldCounts.get('cls') ?? 0) - withClass(shard))),
    unnamedClasses: facts.classes.length === 0 ? total(withClass) : 0,
    partialFields,
    keptShards: shards.filter(({ isKept }) => isKept === true).length,
    wasCommitted: false,
  };
}

/** Report for a folder that already contains the result. */
export async function madeReport({ path: output }: OutputFolder): Promise<ConvertReport> {
  const manifest = await readManifest(output);
  checkShardsThere(output, manifest);
  removeState(output);
  const { samples, shards, bytes, fields } = manifest;
  const partialFields = fields.filter((field) => field.samples < samples);
  const counts = { samples, shards: shards.length, bytes, ...NOTHING_SKIPPED };
  const classes = { metaSamples: 0, wordClasses: 0, unnamedClasses: 0 };
  return { ...counts, ...classes, partialFields, keptShards: shards.length, wasCommitted: true };
}

export function refuseNothing(): never {
  const message = sentence`No sample is left to convert: use a wider ${option('where')}, or check that the labels list these samples.`;
  throw new NoImagesError({}, message);
}

/** Describes how to include skipped links, for a tar without samples. */
export function skippedLinksRemedy(skippedLinks: number): Sentence {
  const what = skippedLinks === 1 ? 'a link was' : `${skippedLinks} links were`;
  return sentence`${what} skipped; to use the files in the same tar that links point to, set ${option('links', 'follow')}`;
}

/** Rejects shards of other tools without samples. */
export function refuseEmpty(path: string, skippedLinks: number): never {
  const remedy = skippedLinks > 0 ? skippedLinksRemedy(skippedLinks) : 'check that it is the right file';
  const message = sentence`There is no sample to convert in ${path}; ${remedy}.`;
  throw new NoImagesError({ path }, message);
}
