import { OptionError, optionName, sentence } from '@shardtool/base';
import { CacheFolder } from '@shardtool/storage';
import { checkBuckets } from '../buckets/options.js';
import { formatOf } from '../codec/pixel-format.js';
import { CutShards } from '../dataset/shards/cut-shards.js';
import { type ShardStore, withoutCrops } from '../dataset/shards/shard-store.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import type { DecodeMode } from '../transform/plan.js';
import { checkFormatOf, decodeModeOf, warnOfOtherCodec } from './loader-state.js';
import type { CheckedOptions } from './options.js';
import { CachedBytes } from './read/cached-bytes.js';
import { fetchFirstIndexes } from './read/readers/opening.js';
import { keepIndexes, type LoaderMemory, setUpMemory } from './setup/memory.js';
import { type LoaderBuckets, refuseBucketState, setUpBuckets } from './setup/order/bucket-order.js';
import { cutDatasets } from './setup/order/cut-datasets.js';
import { type LoaderOrder, setUpOrder } from './setup/order/order.js';
import { repeatsRefused } from './setup/order/order-request.js';
import { type LoaderOutput, setUpOutput } from './setup/output.js';
import type { TransformSchedule } from './setup/transform-schedule.js';

/** Everything about a loader that does not change from epoch to epoch. */
export interface LoaderSetup {
  readonly order: LoaderOrder;
  /** The sizes of batches, if there are several. */
  readonly buckets: LoaderBuckets | null;
  readonly output: LoaderOutput;
  /** The shards that samples are read from, and those that are cut: bad samples are skipped or replaced. */
  readonly store: ShardStore;
  readonly cuts: CutShards;
  /**
   * `used`: crop indexes are used. `slow`: they are not used, because storage is slow. `unused`: the options do not
   * allow them.
   */
  readonly cropIndex: 'used' | 'slow' | 'unused';
  /** Whether workers read the images from the shards, and the page cache of the system is all that is between them. */
  readonly staysInShards: boolean;
  /** The cache in front of the shards, if there is one. */
  readonly cached: CachedBytes | null;
  readonly memory: LoaderMemory;
  /** Which epoch has which transform. */
  readonly schedule: TransformSchedule;
}

/** With aspect-ratio buckets, images are rotated by default, because their orientation determines the bucket. */
function turnsImages({ applyExifOrientation, aspectBuckets }: CheckedOptions): boolean {
  return applyExifOrientation ?? aspectBuckets !== undefined;
}

async function bucketsOf(
  dataset: StoredDataset,
  base: LoaderOrder,
  options: CheckedOptions,
): Promise<LoaderBuckets | null> {
  if (options.aspectBuckets !== undefined) {
    return setUpBuckets(dataset, base, checkBuckets(options.aspectBuckets), {
      ...options,
      turns: turnsImages(options),
    });
  }
  refuseBucketState(options.state);
  return null;
}

/**
 * Throws for options that would move a sample to another batch than the rest of its group, or replace it by another
 * sample.
 */
function refuseSplitGroups({ aspectBuckets, onBad }: CheckedOptions): void {
  if (aspectBuckets !== undefined) {
    throw new OptionError(
      {},
      sentence`${optionName('aspectBuckets')} would separate the samples of a group: give indices without groups, or remove it.`,
    );
  }
  if (onBad === 'replace') {
    throw new OptionError(
      {},
      sentence`${optionName('onBad')} 'replace' would put a sample of another group in place of a bad one: use 'skip' or 'raise', or indices without groups.`,
    );
  }
}

/**
 * Throws for options that move samples to other batches, or put another sample of the block in place of one: which
 * samples of a block are repeated on a rank depends on the number of ranks.
 */
function refuseWithRepeats({ aspectBuckets, onBad }: CheckedOptions): void {
  if (aspectBuckets !== undefined) throw repeatsRefused(sentence`${optionName('aspectBuckets')}`);
  if (onBad === 'replace') throw repeatsRefused(sentence`${optionName('onBad')} 'replace'`);
}

/** Makes a setup from checked options. Reads the parts of the dataset that the options need. Throws OptionError. */
export async function setUp(
  dataset: StoredDataset,
  options: CheckedOptions,
  schedule: TransformSchedule,
): Promise<LoaderSetup> {
  const base = await setUpOrder(dataset, options);
  if (base.repeats > 1) refuseWithRepeats(options);
  if (base.groupSize > 1) refuseSplitGroups(options);
  const buckets = await bucketsOf(dataset, base, options);
  const order = buckets?.order ?? base;
  const { files } = dataset;
  await files.measure();
  keepIndexes(dataset, order, options);
  // Each request to remote storage takes long, so those for the first indexes begin as soon as it is known which are needed.
  if (files.isSlow) fetchFirstIndexes(order, files.store);
  const decode = decodeModeOf(options.decode, options.state);
  checkFormatOf(formatOf(options), options.state);
  const output = await setUpOutput(dataset, outputRequest(options, { decode, buckets, schedule }));
  warnOfOtherCodec(options.state, output.codec?.name ?? null, decode);
  const { cache, cacheSize } = options;
  const cached = cache === undefined ? null : cachedBytes(dataset, order, await CacheFolder.open(cache, cacheSize));
  // Fetching a crop index costs bytes, and if reads are slow, there usually is enough time to decode without it.
  const cropIndex = !output.usesCropIndex ? 'unused' : files.isSlow && options.cropIndex !== true ? 'slow' : 'used';
  const withCrops: ShardStore = cached === null ? files.store : { ...files.store, bytes: cached };
  const whole = cropIndex === 'used' ? withCrops : withoutCrops(withCrops);
  const cuts = new CutShards();
  const store = options.onBad === 'raise' ? whole : cuts.within(whole);
  const staysInShards = cached === null && (await canStayInShards(dataset, store, output, options));
  const memory = await setUpMemory(dataset, store, order, output, { ...options, staysInShards });
  return { order, buckets, output, store, cuts, cropIndex, staysInShards, cached, memory, schedule };
}

/**
 * Whether workers can read the images from the shards. Read buffers are used if the user sets their size, for crop
 * indexes, and for data that the main thread needs.
 */
async function canStayInShards(
  { files }: StoredDataset,
  store: ShardStore,
  output: LoaderOutput,
  { aspectBuckets, readBufferBytes }: CheckedOptions,
): Promise<boolean> {
  if (!output.isImageOnly || aspectBuckets !== undefined || readBufferBytes !== undefined) return false;
  if (files.isSlow || files.isRemote || files.files.some(({ open }) => open !== undefined)) return false;
  const shard = files.samples.findIndex((samples) => samples > 0);
  return shard < 0 || (await store.crops.columns(shard)) === null;
}

/** The same setup with another schedule. Throws OptionError. */
export async function setUpSchedule(
  dataset: StoredDataset,
  options: CheckedOptions,
  setup: LoaderSetup,
  schedule: TransformSchedule,
): Promise<LoaderSetup> {
  if (schedule.hasTransformsOf(setup.schedule)) return { ...setup, schedule };
  const { order, buckets, store } = setup;
  const request = outputRequest(options, { decode: setup.output.decode, buckets, schedule });
  const output = await setUpOutput(dataset, request);
  const { staysInShards } = setup;
  const memory = await setUpMemory(dataset, store, order, output, { ...options, staysInShards });
  return { ...setup, output, memory, schedule };
}

function outputRequest(
  options: CheckedOptions,
  {
    decode,
    buckets,
    schedule,
  }: { readonly decode: DecodeMode; readonly buckets: LoaderBuckets | null; readonly schedule: TransformSchedule },
): Parameters<typeof setUpOutput>[1] {
  return {
    ...options,
    decode,
    applyExifOrientation: turnsImages(options),
    cover: buckets && { sizes: buckets.sized.sizes, crop: buckets.crop },
    // The transform of epoch 0, not that of the option: an entry for epoch 0 replaces the option.
    transform: schedule.transforms[0],
    transforms: schedule.transforms,
  };
}

/** Wraps the bytes of the shards in a cache, which computes when the ranks of this machine need each piece. */
function cachedBytes({ files }: StoredDataset, order: LoaderOrder, cache: CacheFolder): CachedBytes {
  const bytes = Float64Array.from(files.files, (shard) => shard.bytes);
  const sources = cutDatasets(order, bytes, cache.maxBytes);
  return new CachedBytes({ store: files.store, files: files.files, cache, sources });
}
