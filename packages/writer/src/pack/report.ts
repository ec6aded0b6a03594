import type { Manifest } from '@shardtool/format';
import type { PartialField } from '../output/commit.js';
import type { PlanFacts, PlanHeader, SourceChanges } from '../plan/plan-record.js';
import { type CropIndexCounts, cropTotals } from '../shard/crop-index.js';
import type { CheckedShard } from '../shard/shard-job.js';
import type { PreparedPack } from './prepare.js';
import type { PackedShard } from './workers/pack-jobs.js';

/** What a pack made, or with `dryRun` would make. Of a part: what it made itself. */
export interface PackReport {
  /** Files that were packed, the ones beside images included. */
  readonly files: number;
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes; 0 after a dry run. */
  readonly bytes: number;
  /** Size of these files in bytes. */
  readonly sourceBytes: number;
  /** Names of the classes in the order of their numbers. */
  readonly classes: readonly string[];
  /** Files that belong to no image, or to one that no row of the labels names. */
  readonly skippedFiles: number;
  /** The same by their endings, or other reasons; skipped.jsonl lists them. */
  readonly skipped: Readonly<Record<string, number>>;
  /** Annotations that were left out, by the reason; skipped.jsonl lists them. */
  readonly skippedAnnotations: Readonly<Record<string, number>>;
  /** Folders that were left out because another path leads to them too. */
  readonly skippedFolders: readonly string[];
  /** Folders that were left out for the dot in front of their names. torchvision's ImageFolder takes their images. */
  readonly hiddenFolders: readonly string[];
  /** Folders right below the source that no packed image is in: they are no classes, though ImageFolder numbers them. */
  readonly emptyFolders: readonly string[];
  /** Samples that webdataset skips when it reads these tars, because their keys begin with a folder like `__x__`. */
  readonly metaSamples: number;
  /** Images of the source that were left out because no row of the labels names them. */
  readonly unlabelled: number;
  /** With `allowMissingFiles`, rows of the labels whose files are not there; skipped.jsonl lists them. */
  readonly missingFiles: number;
  /** Images with the bytes of another one that stands for them; duplicates.jsonl lists them. */
  readonly duplicates: number;
  /** Duplicates whose class is another one than that of the image that stands for them. */
  readonly classConflicts: number;
  /** Images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  /** Images of another kind than their name says; their field is named by the content. */
  readonly renamed: number;
  /** Images that were turned as their EXIF orientation says, when they were encoded anew. */
  readonly orientationBaked: number;
  /** Images that "check" decoded although something in them is odd. */
  readonly warnings: number;
  /** Images that "stripMetadata" leaves as they are: TIFF and AVIF, and those that are damaged, so that their end is not found. */
  readonly metadataKept: number;
  /** Images, and further images of samples, of more than 8 bits a channel: loaders give the upper 8. */
  readonly narrowed: number;
  /** Images whose values are floating-point, signed or longer than 16 bits: loaders take them for bad samples. */
  readonly refused: number;
  /** What the crop indexes have; null where none were made. */
  readonly crops: CropIndexCounts | null;
  /** Fields that not all samples have: some readers want the same fields in every sample. */
  readonly partialFields: readonly PartialField[];
  /** Shards that an earlier pack had finished. They count in everything else. */
  readonly keptShards: number;
  /** Shards that other parts have not finished yet. */
  readonly pendingShards: number;
  /** The dataset is whole: dataset.json is written, by this pack or by another part. */
  readonly isCommitted: boolean;
  /** The table in the source that was taken as labels, since it has a column `file_name`; null where none was. */
  readonly metadata: string | null;
  /** Of a pack of several parts: what each made. The rest is the sum of these. */
  readonly splits?: readonly { readonly name: string; readonly report: PackReport }[];
  /** Of a pack of several parts: files and folders of the source that are in none of them. */
  readonly splitSidecars?: readonly string[];
  /** Of a dataset that grows: what has become of the files that it has; changed.jsonl lists them. Absent where nothing has changed. */
  readonly changes?: SourceChanges;
  /** Of a dataset that grows: options that were left out and are as it was made with, by name. */
  readonly keptOptions?: Readonly<Record<string, unknown>>;
  /** The folder was the dataset of this source and these options already: nothing was written. */
  readonly wasCommitted: boolean;
}

/** What a pack reports that wrote nothing. */
const NOTHING = {
  ...{ files: 0, samples: 0, shards: 0, bytes: 0, sourceBytes: 0, quarantined: 0, renamed: 0, orientationBaked: 0 },
  ...{ duplicates: 0, classConflicts: 0, warnings: 0, metadataKept: 0, crops: null, metadata: null },
  ...{ narrowed: 0, refused: 0 },
  ...{ metaSamples: 0, partialFields: [], keptShards: 0, pendingShards: 0, isCommitted: false, wasCommitted: false },
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
  } = facts;
  return {
    ...(changes !== undefined && { changes }),
    ...{ classes, skippedFiles, skipped, skippedAnnotations, skippedFolders, hiddenFolders },
    ...{ emptyFolders, unlabelled, missingFiles, duplicates, classConflicts },
  };
}

/** Of a dry run. */
export function plannedReport({ facts, shardCount }: PreparedPack): PackReport {
  const { files, samples, sourceBytes } = facts;
  const quarantined = facts.quarantined?.length ?? 0;
  return { ...NOTHING, ...factsOf(facts), files, samples, shards: shardCount, sourceBytes, quarantined };
}

/** Of a dry run that has looked at every file. */
export function checkedReport(prepared: PreparedPack, checked: readonly CheckedShard[]): PackReport {
  const planned = plannedReport(prepared);
  const total = (count: (shard: CheckedShard) => number) => checked.reduce((sum, shard) => sum + count(shard), 0);
  const bad = total(({ quarantined }) => quarantined.length);
  return {
    ...planned,
    files: total(({ files }) => files),
    samples: planned.samples - bad,
    sourceBytes: planned.sourceBytes - total(({ badBytes = 0 }) => badBytes),
    quarantined: planned.quarantined + bad,
    renamed: total(({ renamed }) => renamed),
    orientationBaked: total(({ orientationBaked }) => orientationBaked),
    warnings: total(({ warnings }) => warnings),
    metadataKept: total(({ metadataKept }) => metadataKept),
    narrowed: total(({ narrowed = 0 }) => narrowed),
    refused: total(({ refused = 0 }) => refused),
  };
}

/** Of shards that were written, or kept. */
export function writtenReport(header: PlanHeader, shards: readonly PackedShard[]): PackReport {
  const total = (count: (shard: PackedShard) => number) => shards.reduce((sum, shard) => sum + count(shard), 0);
  return {
    ...NOTHING,
    ...factsOf(header),
    files: total(({ files }) => files),
    samples: total(({ samples }) => samples),
    shards: shards.length,
    bytes: total(({ bytes }) => bytes),
    sourceBytes: total(({ shard, badBytes = 0 }) => header.shards[shard]!.sourceBytes - badBytes),
    quarantined: total(({ quarantined }) => quarantined.length) + (header.quarantined?.length ?? 0),
    renamed: total(({ renamed }) => renamed),
    orientationBaked: total(({ orientationBaked }) => orientationBaked),
    warnings: total(({ warnings }) => warnings),
    metadataKept: total(({ metadataKept }) => metadataKept),
    narrowed: total(({ narrowed = 0 }) => narrowed),
    refused: total(({ refused = 0 }) => refused),
    crops: shards.some(({ crops }) => crops !== undefined)
      ? cropTotals(shards.flatMap(({ crops }) => crops ?? []))
      : null,
    metaSamples: total(({ metaSamples = 0 }) => metaSamples),
    keptShards: shards.filter(({ isKept }) => isKept).length,
  };
}

/** Of a folder that holds what was to be packed. */
export function presentReport({ samples, shards, bytes, classes, fields }: Manifest): PackReport {
  return {
    ...{ ...NOTHING, skippedFiles: 0, skipped: {}, skippedAnnotations: {}, skippedFolders: [], hiddenFolders: [] },
    ...{ emptyFolders: [], unlabelled: 0, missingFiles: 0 },
    ...{ samples, bytes, shards: shards.length, keptShards: shards.length, isCommitted: true, wasCommitted: true },
    classes: classes.map(({ name }) => name),
    partialFields: fields.filter((field) => field.samples < samples),
  };
}

/** Of a part that found the work of all parts committed. */
export function committedReport(facts: PlanFacts): PackReport {
  return { ...NOTHING, ...factsOf(facts), isCommitted: true };
}
