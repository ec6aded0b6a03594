export * from './errors.js';
export { onRetry } from './http/retry.js';
export * from './location.js';
export { openSource, openStorage, readWhole, requireLocal } from './schemes.js';
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
