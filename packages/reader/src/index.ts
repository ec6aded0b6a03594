export { ShardtoolError, WorkerDiedError } from '@shardtool/base';
export type { StackedArray } from '@shardtool/format';
export { columnsText } from './annotations/columns-text.js';
export { type CountOptions, countAnnotations, type ObjectStats, type SampleProgress } from './annotations/count.js';
export {
  type AnnotationOptions,
  type AnnotationSource,
  type BoxFormat,
  checkAnnotations,
} from './annotations/options.js';
export { readAnnotations } from './annotations/read.js';
export type { BatchObjects, BatchPolygons } from './annotations/record.js';
export { annotationSources, nameOfSource } from './annotations/sources.js';
export type { BucketCrop, BucketsInput } from './buckets/options.js';
export { type Checker, createChecker } from './codec/check.js';
export { CropIndexMaker } from './codec/crop-index/make.js';
export { codecReason } from './codec/decode-error.js';
export { readMask } from './codec/mask.js';
export type { CodecChoice } from './codec/select.js';
export { fieldBytes } from './dataset/fields/field-bytes.js';
export type { FieldValue, JsonValue } from './dataset/fields/field-values.js';
export type { Bin, DistributionSummary } from './dataset/figures/distribution.js';
export {
  type DatasetStats,
  findDuplicateKeys,
  getStats,
  type IndexProgress,
  type StatsOptions,
} from './dataset/figures/stats.js';
export { imageOf, type StoredSampleImage } from './dataset/image-of.js';
export type { RepeatedKeys } from './dataset/keys/repeated-keys.js';
export type { Sample, SamplesOptions } from './dataset/samples.js';
export { ShardLengthError } from './dataset/shards/shard-length-error.js';
export { DatasetClosedError } from './dataset/shards/shard-reads.js';
export { type GetOptions, SampleNotFoundError, type StoredDataset } from './dataset/stored-dataset.js';
export type {
  InspectedSample,
  InspectFinding,
  InspectGroup,
  InspectGroups,
  InspectReport,
} from './inspect/report.js';
export { type CropRefusal, refusalOf } from './kernels/crop-index.js';
export { DecodeBufferError } from './kernels/tables.js';
export type { Batch, BatchContent, BatchMix, ImageArray, ViewArrays } from './loader/deliver/batch/batch.js';
export type { ContentBy, ContentOf, ContentOfFields, ContentOfViews } from './loader/deliver/batch/batch-content.js';
export type { LabelValues } from './loader/deliver/batch/label-values.js';
export { BadSampleError, CustomStepError } from './loader/deliver/rows/bad-rows.js';
export {
  type BadSample,
  type LoaderReport,
  type StorageReport,
  spelledBadSample,
} from './loader/deliver/statistics.js';
export type { WaitCause, WaitReport, WaitReports, WaitTimes } from './loader/deliver/waits.js';
export type {
  Channels,
  DeviceArray,
  DeviceBatch,
  DeviceDtype,
  DeviceLayout,
  DeviceObjects,
  DevicePlan,
  DeviceReport,
  DeviceStage,
  HostBatches,
  ReadyEvent,
  StreamHandle,
  Uploads,
} from './loader/device/device-batch.js';
export { type DeviceLoader, NoDevicePackageError } from './loader/device/device-loader.js';
export type { DeviceLoaderOptions, DeviceOptions } from './loader/device/device-options.js';
export type { Loader } from './loader/loader.js';
export { LoaderClosedError } from './loader/loader.js';
export type { LoaderInfo } from './loader/loader-info.js';
export type { LoaderState } from './loader/loader-state.js';
export type { MetricsOptions } from './loader/metrics/address.js';
export type { LoaderOptions } from './loader/options.js';
export { ReadBufferError } from './loader/read/arena.js';
export type { BatchCrop } from './loader/ring/batch-facts.js';
export type {
  BatchStep,
  CustomStep,
  CustomSteps,
  FieldsStep,
  PixelsContext,
  PixelsStep,
  StepBatch,
  StepContext,
} from './loader/setup/custom-steps.js';
export { hasImages } from './loader/setup/image-choice.js';
export type { LabelsInput } from './loader/setup/labels-option.js';
export type { ScheduledTransform } from './loader/setup/transform-schedule.js';
export type { ClassLists } from './mixture/class-lists.js';
export { Dataset } from './open/dataset.js';
export { type InspectOptions, inspect } from './open/inspect.js';
export type { InspectProgress } from './open/measure-dataset.js';
export type { Mixture } from './open/mixture.js';
export { type OpenOptions, openDataset, openMixture } from './open/open.js';
export type { MixtureOptions, MixturePart } from './open/open-mixture.js';
export {
  type DecodedSample,
  type DecodeRequest,
  SampleDecoder,
  type SampleDecoderOptions,
} from './open/sample-decoder.js';
export {
  type Fault,
  provideVerify,
  type VerifyOptions,
  type VerifyProgress,
  type VerifyRecordReport,
  type VerifyReport,
} from './open/verification.js';
export type { PlanReport, StorageEpoch, StorageNeeds } from './order/report/report.js';
export { StateError } from './order/state.js';
export {
  type AddOverlayOptions,
  type AddOverlayReport,
  addOverlay,
  type LabelChanges,
  type LabelFile,
  type OverlayChanges,
} from './overlay/add.js';
export {
  checkOverlays,
  listOverlays,
  type OverlayFault,
  type OverlaySummary,
  overlayColumnTypes,
  overlayHistory,
  readOverlay,
  removeOverlay,
} from './overlay/catalogue.js';
export {
  type FollowReport,
  followOverlays,
  namesKey as overlayNamesKey,
  setsUnnamed as overlaySetsUnnamed,
} from './overlay/follow/follow.js';
export { type SplitOptions, type SplitReport, splitDataset } from './overlay/split.js';
export { type SubsetOptions, type SubsetReport, subsetDataset } from './overlay/subset.js';
export { shardWithout } from './overlay/view.js';
export { type BucketsPlanOptions, type BucketsReport, planAspectBuckets } from './plans/plan-buckets.js';
export { type DatasetPlanOptions, planDataset } from './plans/plan-dataset.js';
export { type MixturePlanOptions, type MixtureReport, planMixture } from './plans/plan-mixture.js';
export type { Indices } from './selection/custom-order.js';
export { selectableOf } from './selection/selectable.js';
export type { Weights } from './selection/weights.js';
export { compileWhere, type RowPredicate, type Where } from './selection/where.js';
export { WhereError } from './selection/where-tokens.js';
export type { GivenAnnotations } from './transform/annotations.js';
export type { MixInput } from './transform/mixes/mix-option.js';
export type { PixelValues } from './transform/pixel-values.js';
export { namedSteps, PRESET_NAMES, PRESETS, type Preset, type PresetName } from './transform/presets.js';
export { outputOf, type StepInput, type TransformInput } from './transform/transform.js';
export type { ViewInput, ViewsInput } from './views/options.js';
export {
  namedViews,
  VIEW_PRESET_NAMES,
  VIEW_PRESETS,
  type ViewPreset,
  type ViewPresetName,
  type ViewsFile,
} from './views/presets.js';
