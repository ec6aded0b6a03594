import { totalOf } from '@shardtool/base';
import type { Manifest } from '@shardtool/format';
import type { PartialField } from '../output/commit.js';
import type { PlanFacts, PlanHeader, SourceChanges } from '../plan/plan-record.js';
import { type CropIndexCounts, cropTotals } from '../shard/crop-index.js';
import type { CheckedShard } from '../shard/shard-job.js';
import type { PreparedPack } from './planning/prepare.js';
import type { PackedShard } from './workers/pack-jobs.js';

/** Result of a pack, or with `dryRun` the expected result. For a part, it describes that part. */
export interface PackReport {
  /** Number of packed files, including those next to images. */
  readonly files: number;
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes; 0 after a dry run. */
  readonly bytes: number;
  /** Size of these files in bytes. */
  readonly sourceBytes: number;
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  /** Number of files that belong to no image, or to an image without a row in the labels. */
  readonly skippedFiles: number;
  /** Number of these files by extension or by another reason; skipped.jsonl lists them. */
  readonly skipped: Readonly<Record<string, number>>;
  /** Number of skipped annotations by reason; skipped.jsonl lists them. */
  readonly skippedAnnotations: Readonly<Record<string, number>>;
  /** Folders that were skipped because another path leads to them too. */
  readonly skippedFolders: readonly string[];
  /**
   * Folders that were skipped because their names start with a dot. torchvision's ImageFolder does not skip their
   * images.
   */
  readonly hiddenFolders: readonly string[];
  /** Folders right below the source without packed images. They are not classes, although ImageFolder numbers them. */
  readonly emptyFolders: readonly string[];
  /**
   * Number of samples that webdataset skips when it reads these tars, because their keys start with a folder such as
   * `__x__`.
   */
  readonly metaSamples: number;
  /** Number of images that were skipped because they have no row in the labels. */
  readonly unlabelled: number;
  /** With `allowMissingFiles`: number of rows of the labels whose file is missing; skipped.jsonl lists them. */
  readonly missingFiles: number;
  /** Number of images that were not packed because another has the same bytes; duplicates.jsonl lists them. */
  readonly duplicates: number;
  /** Number of duplicates whose class differs from that of the packed image. */
  readonly classConflicts: number;
  /** Number of images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  /** Number of images of another kind than their name says. Their field is named after the content. */
  readonly renamed: number;
  /** Number of images that were rotated by their EXIF orientation when they were re-encoded. */
  readonly orientationBaked: number;
  /** Number of images that "check" decoded with warnings. */
  readonly warnings: number;
  /** Number of images that "stripMetadata" did not change: TIFF, AVIF, and damaged images whose end cannot be found. */
  readonly metadataKept: number;
  /**
   * Number of images, including further images of samples, with more than 8 bits per channel. Loaders return the upper
   * 8.
   */
  readonly narrowed: number;
  /** Number of images with floating-point, signed or longer than 16-bit values. Loaders treat them as bad samples. */
  readonly refused: number;
  /** Contents of the crop indexes; null if none were made. */
  readonly crops: CropIndexCounts | null;
  /** Fields that not all samples have. Some readers require the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** Number of shards that an earlier run had finished. All other numbers include them. */
  readonly keptShards: number;
  /** Number of shards that other parts have not finished yet. */
  readonly pendingShards: number;
  /** True if the dataset is complete: dataset.json was written by this pack or by another part. */
  readonly isCommitted: boolean;
  /** File in the source that was used as labels because it has a column `file_name`; null if there is none. */
  readonly metadata: string | null;
  /** Reports of the splits, if several were packed. The other values are the sums of these. */
  readonly splits?: readonly { readonly name: string; readonly report: PackReport }[];
  /** With several splits: files and folders of the source that are in none of them. */
  readonly splitSidecars?: readonly string[];
  /**
   * For a growing dataset: how its packed files have changed; changed.jsonl lists them, and `isApplied` says that their samples were replaced or removed. Absent if nothing has changed.
   */
  readonly changes?: SourceChanges;
  /**
   * For a growing dataset: number of packed files that the source lacks, if it lacks more than 100,000 and more than half
   * of them. It then seems to have only new files, so `changes` does not count these files. Absent if there are none.
   */
  readonly unlistedMissing?: number;
  /** For a growing dataset: omitted options whose values were taken from it, by name. */
  readonly keptOptions?: Readonly<Record<string, unknown>>;
  /** True if the folder already was the dataset of this source and these options, so that nothing was written. */
  readonly wasCommitted: boolean;
}

/** Report of a pack that wrote nothing. */
const NOTHING = {
  files: 0,
  samples: 0,
  shards: 0,
  bytes: 0,
  sourceBytes: 0,
  quarantined: 0,
  renamed: 0,
  orientationBaked: 0,
  duplicates: 0,
  classConflicts: 0,
  warnings: 0,
  metadataKept: 0,
  crops: null,
  metadata: null,
  narrowed: 0,
  refused: 0,
  metaSamples: 0,
  partialFields: [],
  keptShards: 0,
  pendingShards: 0,
  isCommitted: false,
  wasCommitted: false,
};

function factsOf(facts: PlanFacts) {
  const {
    classes,
    skippedFiles,
    skipped = {},
    skippedAnnotations = {},
    skippedFolders,
    hiddenFolders,
    emptyFolders = [],
    unlabelled = 0,
    missingFiles = 0,
    duplicates,
    classConflicts,
    changes,
    unlistedMissing,
  } = facts;
  return {
    ...(changes !== undefined && { changes }),
    ...(unlistedMissing !== undefined && { unlistedMissing }),
    classes,
    skippedFiles,
    skipped,
    skippedAnnotations,
    skippedFolders,
    hiddenFolders,
    emptyFolders,
    unlabelled,
    missingFiles,
    duplicates,
    classConflicts,
  };
}

/** Report of a dry run. */
export function plannedReport({ facts, shardCount }: PreparedPack): PackReport {
  const { files, samples, sourceBytes } = facts;
  const quarantined = facts.quarantined?.length ?? 0;
  return { ...NOTHING, ...factsOf(facts), files, samples, shards: shardCount, sourceBytes, quarantined };
}

/** Counts of the files of shards by what was done with them. */
function filesOf(shards: readonly (CheckedShard | PackedShard)[]) {
  const total = (count: (shard: CheckedShard | PackedShard) => number) => totalOf(shards, count);
  return {
    renamed: total(({ renamed }) => renamed),
    orientationBaked: total(({ orientationBaked }) => orientationBaked),
    warnings: total(({ warnings }) => warnings),
    metadataKept: total(({ metadataKept }) => metadataKept),
    narrowed: total(({ narrowed = 0 }) => narrowed),
    refused: total(({ refused = 0 }) => refused),
  };
}

/** Report of a dry run that has checked every file. */
export function checkedReport(prepared: PreparedPack, checked: readonly CheckedShard[]): PackReport {
  const planned = plannedReport(prepared);
  const total = (count: (shard: CheckedShard) => number) => totalOf(checked, count);
  const bad = total(({ quarantined }) => quarantined.length);
  return {
    ...planned,
    files: total(({ files }) => files),
    samples: planned.samples - bad,
    sourceBytes: planned.sourceBytes - total(({ badBytes = 0 }) => badBytes),
    quarantined: planned.quarantined + bad,
    ...filesOf(checked),
  };
}

/** Report for shards that were written or kept. */
export function writtenReport(header: PlanHeader, shards: readonly PackedShard[]): PackReport {
  const total = (count: (shard: PackedShard) => number) => totalOf(shards, count);
  return {
    ...NOTHING,
    ...factsOf(header),
    files: total(({ files }) => files),
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    sourceBytes: total(({ shard, badBytes = 0 }) => header.shards[shard]!.sourceBytes - badBytes),
    quarantined: total(({ quarantined }) => quarantined.length) + (header.quarantined?.length ?? 0),
    ...filesOf(shards),
    crops: shards.some(({ crops }) => crops !== undefined)
      ? cropTotals(shards.flatMap(({ crops }) => crops ?? []))
      : null,
    metaSamples: total(({ metaSamples = 0 }) => metaSamples),
    keptShards: shards.filter(({ isKept }) => isKept).length,
  };
}

/** Report for a folder that already contains the result. */
export function presentReport({ samples, shards, bytes, classes, fields }: Manifest): PackReport {
  return {
    ...NOTHING,
    skippedFiles: 0,
    skipped: {},
    skippedAnnotations: {},
    skippedFolders: [],
    hiddenFolders: [],
    emptyFolders: [],
    unlabelled: 0,
    missingFiles: 0,
    samples,
    bytes,
    shards: shards.length,
    keptShards: shards.length,
    isCommitted: true,
    wasCommitted: true,
    classes: classes.map(({ name }) => name),
    partialFields: fields.filter((field) => field.samples < samples),
  };
}

/** Report of a part that found the work of all parts committed. */
export function committedReport(facts: PlanFacts): PackReport {
  return { ...NOTHING, ...factsOf(facts), isCommitted: true };
}
