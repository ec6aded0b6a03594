/**
 * All classes of errors that callers can receive, with their packages. docs/errors.md describes when each occurs and what to do.
 * All of them extend ShardtoolError, whose message is one sentence with the remedy.
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
