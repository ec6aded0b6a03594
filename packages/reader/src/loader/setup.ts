import { CacheFolder } from '@shardtool/storage';
import type { Dataset } from '../dataset/dataset.js';
import { decodeModeOf } from './loader-state.js';
import type { CheckedOptions } from './options.js';
import { CachedStore } from './read/cached-store.js';
import { type ShardStore, withoutCrops } from './read/load-shards.js';
import { pieceSources } from './read/piece-sources.js';
import { type LoaderMemory, setUpMemory } from './setup/memory.js';
import { type LoaderOrder, setUpOrder } from './setup/order.js';
import { type LoaderOutput, setUpOutput } from './setup/output.js';

/** Everything about a loader that does not change from epoch to epoch. */
export interface LoaderSetup {
  readonly order: LoaderOrder;
  readonly output: LoaderOutput;
  /** Where samples are read from. */
  readonly store: ShardStore;
  /** Whether crop indexes are looked for. */
  readonly cropIndex: 'used' | 'far' | 'unused';
  /** The cache before the shards, if there is one. */
  readonly cached: CachedStore | null;
  readonly memory: LoaderMemory;
}

/** Turns checked options into a setup; reads as much of the dataset as the options ask for. Throws OptionError. */
export async function setUp(dataset: Dataset, options: CheckedOptions): Promise<LoaderSetup> {
  const order = await setUpOrder(dataset, options);
  const decode = decodeModeOf(options.decode, options.state);
  const output = await setUpOutput(dataset, { ...options, decode });
  const { files } = dataset;
  await files.measure();
  const { cache, cacheSize } = options;
  const cached = cache === undefined ? null : cachedStore(dataset, order, new CacheFolder(cache, cacheSize));
  // A crop index is more to fetch, and where reads are slow there mostly is time to decode.
  const cropIndex = !output.usesCropIndex ? 'unused' : files.isFar && options.cropIndex !== true ? 'far' : 'used';
  const store = cropIndex === 'used' ? (cached ?? files) : withoutCrops(cached ?? files);
  const memory = await setUpMemory(dataset, store, order, output, options);
  return { order, output, store, cropIndex, cached, memory };
}

/** The shards behind a cache, for the ranks of this machine. */
function cachedStore({ files }: Dataset, order: LoaderOrder, cache: CacheFolder): CachedStore {
  const bytes = Float64Array.from(files.files, (shard) => shard.bytes);
  return new CachedStore({ files, cache, sources: pieceSources(order, bytes, cache.maxBytes) });
}
