export { type CacheContents, CacheFolder, type Claim } from './cache/cache-folder.js';
export { readAhead } from './flight/read-ahead.js';
export { onRetry } from './http/retry.js';
export { countBraces } from './location/braces.js';
export {
  canBeListed,
  expandBraces,
  isRemote,
  joinLocation,
  joinLocations,
  localPathOf,
  schemeOf,
  shownLocation,
  splitLocation,
} from './location/location.js';
export { readAgainIf } from './read-again.js';
export { entryAt, openSource, openStorage, readWhole, readWholeOf, requireLocal } from './schemes.js';
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
export { LocalThreads } from './threads/local/local-threads.js';
export { RemoteThreads } from './threads/remote/remote-threads.js';
