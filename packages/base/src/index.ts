export { availableCores, coresOfThisRank } from './available-cores.js';
export { changedSincePacked, checkFieldCrc32, checkFieldSum, crc32, crc32Hex } from './checksums/checksum.js';
export { crc32Combine } from './checksums/crc32-combine.js';
export { maskedCrc32c } from './checksums/crc32c.js';
export { codePointOrderOf, compareCodePoints, sortByCodePoint } from './code-points.js';
export { HashTable, hashOfBytes, mixedBits } from './collections/hash-table.js';
export { joined } from './collections/joined.js';
export { LruCache } from './collections/lru-cache.js';
export { indexArray, range } from './collections/range.js';
export { Recent } from './collections/recent.js';
export { lastAtMost, lowerBound, partitionPoint } from './collections/sorted.js';
export { TextRows } from './collections/text-rows.js';
export { total, totalOf } from './collections/total.js';
export { abortable } from './concurrency/abortable.js';
export { deferred } from './concurrency/deferred.js';
export { inLanes } from './concurrency/in-lanes.js';
export { inTurn } from './concurrency/in-turn.js';
export { ReadsInFlight, turnOf } from './concurrency/reads-in-flight.js';
export { watchedCall } from './concurrency/watched-call.js';
export { WatchedCallbacks } from './concurrency/watched-callbacks.js';
export { didYouMean } from './did-you-mean.js';
export {
  CropIndexError,
  DamagedShardError,
  DuplicateKeyError,
  EntryNameError,
  type ErrorContext,
  FileChangedError,
  FileError,
  FileExistsError,
  FileNotFoundError,
  ImageError,
  type ImageTrouble,
  KeyLengthError,
  kindsOf,
  LabelsError,
  ManifestError,
  messageIn,
  NpyError,
  OptionError,
  RequestRejectedError,
  replaceTexts,
  SampleChecksumError,
  SampleDecodeError,
  SampleSizeError,
  ShardIndexError,
  ShardtoolError,
  sentenceOf,
  setSentence,
  TruncatedShardError,
  UnfinishedPackError,
  UnsupportedEntryError,
  UnsupportedShardError,
  VersionError,
  WorkerDiedError,
  WriteCheckError,
} from './errors.js';
export { countOf, escapeControls, formatCount, toMessage } from './escape-controls.js';
export { flushData } from './files/flush.js';
export {
  describeHolder,
  type HeldLock,
  holderOf,
  isDead,
  isHeldBy,
  Lock,
  type LockHolder,
  lookAtLock,
  newLockText,
  tryLock,
  underLock,
  warnOfWaiting,
} from './files/lock.js';
export { makeFolder } from './files/make-folder.js';
export { openFileLimit } from './files/open-file-limit.js';
export { newToken, type ProcessState, stateOf } from './files/process-identity.js';
export { readFully, readFullySync } from './files/read-fully.js';
export {
  openWithoutName,
  parseTemporaryName,
  removeAbandoned,
  removeLeftWithoutName,
  removeTemporaries,
  temporaryName,
} from './files/temporary-files.js';
export {
  AtomicFile,
  flushFolder,
  NO_LINKS,
  nameOnce,
  type PlaceOptions,
  writeAtomically,
} from './files/write-atomically.js';
export { nativeCalls } from './native-calls.js';
export { CALL_OPTIONS, checkCallOptions, checkLocation, checkObject } from './options/call.js';
export { allowed, checkGiven, defaultsOf, type OptionOwner, type OwnChecks } from './options/check.js';
export type {
  CheckedValues,
  OptionDefaults,
  OptionEntry,
  OptionGroup,
  OptionTable,
  OptionValue,
} from './options/entry.js';
export { checkStorageOptions } from './options/storage.js';
export { philox, shuffle } from './philox.js';
export {
  codeName,
  inPython,
  inTypeScript,
  onCommandLine,
  option,
  optionName,
  Sentence,
  type SentencePart,
  type Spelling,
  sentence,
  withCodeNames,
} from './sentence.js';
export { parseSize } from './size.js';
export {
  asFileError,
  isLostOnDisk,
  isUnreadable,
  openErrorOf,
  reasonOf,
  remedyOf,
  systemCodeOf,
  withMessages,
} from './system-error.js';
export { type ErrorRecord, recordError, reviveError } from './threads/error-record.js';
export { beginLoading } from './threads/native-loading.js';
export { WakeSignal } from './threads/wake-signal.js';
export { WorkerThread, type WorkerThreadOptions } from './threads/worker-thread.js';
export { redirectWarnings, spellWarnings, warn } from './warnings.js';
