import type { ShardFiles } from '../dataset/shards/shard-files.js';
import type { Statistics, StorageReport } from './deliver/statistics.js';
import type { CachedBytes } from './read/cached-bytes.js';

/** Counts of requests to storage, and of reads that were served from the cache. */
export type StorageCounted = Omit<StorageReport, keyof ReturnType<Statistics['ofStorage']>>;

export const NOTHING_COUNTED: StorageCounted = {
  requests: 0,
  fetchedBytes: 0,
  retries: 0,
  hedges: 0,
  cacheHits: 0,
  cacheHitBytes: 0,
};

/** Returns the counts so far, or null if all shards are local and there is no cache. */
export function storageCounts({ fetched }: ShardFiles, cached: CachedBytes | null): StorageCounted | null {
  if (fetched === null && cached === null) return null;
  const { requests, bytes: fetchedBytes, retries, hedges } = fetched ?? { ...NOTHING_COUNTED, bytes: 0 };
  const { hits: cacheHits, hitBytes: cacheHitBytes } = cached?.counts ?? { hits: 0, hitBytes: 0 };
  return { requests, fetchedBytes, retries, hedges, cacheHits, cacheHitBytes };
}

/** Returns what was counted between two moments. */
export function countedSince(before: StorageCounted, now: StorageCounted): StorageCounted {
  const names = Object.keys(now) as (keyof StorageCounted)[];
  return Object.fromEntries(names.map((name) => [name, now[name] - before[name]])) as unknown as StorageCounted;
}
