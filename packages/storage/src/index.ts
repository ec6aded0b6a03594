export { type CacheContents, CacheFolder, type Claim } from './cache/cache-folder.js';
export { didYouMean } from './did-you-mean.js';
export {
  FileChangedError,
  FileError,
  FileExistsError,
  NoSuchFileError,
  OptionError,
  RefusedError,
  ShardtoolError,
  type Whereabouts,
} from './errors.js';
export { inLanes } from './flight/in-lanes.js';
export { inTurn } from './flight/in-turn.js';
export { readAhead } from './flight/read-ahead.js';
export { ReadsInFlight } from './flight/reads-in-flight.js';
export { onRetry } from './http/retry.js';
export { countBraces } from './location/braces.js';
export {
  expandBraces,
  isRemote,
  joinLocation,
  joinLocations,
  localPathOf,
  schemeOf,
  shownLocation,
  splitLocation,
} from './location/location.js';
export { makeFolder } from './make-folder.js';
export { nativeCalls } from './native-calls.js';
export { openSource, openStorage, optionsOf, readWhole, rememberPlace, requireLocal } from './schemes.js';
export { parseSize } from './size.js';
export type {
  Content,
  Entry,
  Expected,
  PutOptions,
  ReadCosts,
  Retry,
  Source,
  Storage,
  StorageCounts,
  StorageOptions,
} from './storage.js';
export { asFileError, remedyOf, withSentences } from './system-error.js';
export { LocalThreads } from './threads/local/local-threads.js';
export { RemoteThreads } from './threads/remote/remote-threads.js';
