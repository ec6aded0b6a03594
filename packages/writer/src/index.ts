export type {
  Fault,
  VerifyOptions,
  VerifyProgress,
  VerifyRecordReport,
  VerifyReport,
} from '@shardtool/reader';
export { type CollectOptions, type CollectReport, collectGarbage } from './change/collect.js';
export { type CompactOptions, type CompactReport, compactDataset } from './change/compact.js';
export type { ChangeOptions } from './change/dataset-change.js';
export { type EraseOptions, type EraseReport, eraseSamples } from './change/erase.js';
export { type RestoreReport, restoreVersion } from './change/restore.js';
export { type DatasetVersion, type LogOptions, listVersions } from './change/version-log.js';
export { type ConvertOptions, convert } from './convert/convert.js';
export type { ConvertReport } from './convert/report.js';
export {
  BadFileError,
  DatasetChangedError,
  DiskFullError,
  FileNameError,
  KeyCollisionError,
  LabelsError,
  LinkLoopError,
  NoImagesError,
  OutputLockedError,
  OutputNotEmptyError,
  PartFinishedError,
  PartsMissingError,
  PlanChangedError,
  PlanRecordError,
  SourceError,
  SourceTimeoutError,
  TooManyBadError,
} from './errors.js';
export type { ColumnsReport } from './indexing/index-columns.js';
export { type IndexOptions, type IndexReport, indexShards } from './indexing/index-shards.js';
export {
  changesBytes,
  type ImageFormat,
  type LmdbValues,
  type OtherIndex,
  PACK_DEFAULTS,
  type PackOptions,
  type PackProgress,
  type PackSource,
  type PairedFolder,
} from './options.js';
export type { PartialField } from './output/commit.js';
export type { QuarantinedSample } from './output/quarantine.js';
export { type CommitOptions, type CommitReport, commitParts } from './pack/commit-plan.js';
export { pack } from './pack/pack.js';
export type { PackReport } from './pack/report.js';
export {
  autoPart,
  type PartOf,
  type PartOfEnvironment,
  type PartOption,
  parsePart,
  partOfEnvironment,
  type WriterPartOption,
} from './part.js';
export { type PackPlan, type PlannedLabels, type PlanOptions, planShards } from './plan/plan-shards.js';
export { type RepairOptions, type RepairReport, repair } from './repair/repair.js';
export type { NewSample, NewValue } from './samples/new-sample.js';
export { Writer, type WriterOptions, type WriterReport } from './samples/writer.js';
export type { CropIndexCounts } from './shard/crop-index.js';
export { openPackedLabels, type PackedLabels, readPackedLabels } from './source/labels/labels.js';
export { verify } from './verify/verify.js';
