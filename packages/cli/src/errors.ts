/**
 * Every class of error that a caller can meet, with the package that has it; docs/errors.md says when each comes, and
 * what to do. All of them are a ShardtoolError, whose message is one sentence with the remedy.
 */

export {
  CropIndexError,
  DamagedShardError,
  DuplicateKeyError,
  EntryNameError,
  FileChangedError,
  FileError,
  FileExistsError,
  FileNotFoundError,
  ImageError,
  KeyLengthError,
  ManifestError,
  NpyError,
  OptionError,
  RequestRejectedError,
  SampleChecksumError,
  SampleDecodeError,
  SampleSizeError,
  ShardIndexError,
  ShardtoolError,
  TruncatedShardError,
  UnfinishedPackError,
  UnsupportedEntryError,
  UnsupportedShardError,
  VersionError,
  WorkerDiedError,
  WriteCheckError,
} from '@shardtool/base';
export { CudaError, NoCudaError } from '@shardtool/cuda';
export { OverlayError } from '@shardtool/format';
export {
  BadSampleError,
  CustomStepError,
  DatasetClosedError,
  DecodeBufferError,
  LoaderClosedError,
  NoDevicePackageError,
  ReadBufferError,
  SampleNotFoundError,
  ShardLengthError,
  StateError,
  WhereError,
} from '@shardtool/reader';
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
} from '@shardtool/writer';
