import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { availableCores, ShardtoolError } from '@shardtool/base';
import { fieldOfKind, imageKindOf } from '@shardtool/format';
import type { Dataset, LoaderOptions } from '@shardtool/reader';
import { LOADER_OPTIONS } from '@shardtool/reader/option-table';
import { lacksCropIndex, storedSize } from '../bench/bench.js';
import { type Gain, gainsOf, type Remedy, readingLimits } from './gains.js';
import { processorTimes, shareOfOthers } from './other-programs.js';
import { SAMPLE_PREFETCH } from './sample-loop.js';
import { type Given, TURNS, tryRemedies } from './trials.js';

export interface TuneOptions {
  /** The loader to tune, with as many workers as the cores allow. */
  readonly loader: LoaderOptions & { readonly workers: number };
  /** Memory that the process may use, in bytes. */
  readonly memory?: number | undefined;
  /** Approximate duration of the measurement, in seconds. */
  readonly seconds: number;
  /** Ends the measurement with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface TuneResult {
  /** Rate with the dataset in its location. */
  readonly imagesPerSecond: number;
  /** Rate with images in memory, so that only decoding and transforms count. */
  readonly decodedPerSecond: number;
  /** Rate of reading from storage, without decoding. */
  readonly readPerSecond: number;
  readonly limit: 'decoding' | 'reading';
  /** Remedies that were tried, the largest gain first. */
  readonly gains: readonly Gain[];
  /** Number of images that were copied for the measurements, and number of turns for each remedy. */
  readonly sampleImages: number;
  readonly turns: number;
  /** Share of the processor time that other programs used during the measurement, from 0 to 1. Null if it is not known. */
  readonly otherPrograms: number | null;
  /** Peak memory of the process while it read the dataset, in bytes. */
  readonly memoryBytes: number;
  /** True if the memory with `options` is within the limit, or if there is no limit. */
  readonly fitsMemory: boolean;
  /** The loader options to use. */
  readonly options: { readonly workers: number; readonly prefetchBatches: number };
}

const SAMPLE_IMAGES = 512;
/**
 * Size of a batch of the sample, in bytes and as a share of a turn. Smaller batches than those of training cost more time of the main thread per image; two loops are in memory at a time.
 */
const SAMPLE_BATCH_BYTES = 16 << 20;
const BATCHES_PER_TURN = 4;
const LEAST_SAMPLE_BATCH = 8;
/** Shares of the time: for the dataset in its location, and for reading it without decoding. The sample gets the rest. */
const DATASET_SHARE = 0.25;
const READING_SHARE = 0.15;
/**
 * A loop becomes faster in its first second: code is compiled, and memory is used for the first time. This costs each image
 * the same time, so that a remedy would seem to bring less. This share of the time is not measured, at the start of each loop.
 */
const WARM_UP_SHARE = 0.05;
/** Shorter side of images that are packed for crops of 224 pixels. */
const PACKED_PER_TARGET = 256 / 224;

/**
 * Measures what limits a loader of this dataset, and how much faster each remedy would make it. Remedies are tried on
 * copies of a few hundred images of the dataset, in turns with the loader as it is.
 */
export async function tuneDataset(
  dataset: Dataset,
  { loader, memory, seconds, signal }: TuneOptions,
): Promise<TuneResult> {
  const given = { ...loader, rank: 0, worldSize: 1, reuse: true as const, signal };
  const before = processorTimes();
  const here = await runOf(dataset, given, seconds * DATASET_SHARE, seconds * WARM_UP_SHARE);
  const folder = await mkdtemp(path.join(tmpdir(), 'shardtool-tune-'));
  try {
    const sampleImages = await copySample(dataset, path.join(folder, 'images', 'sample'), encoded(given));
    // Another epoch begins with other samples, which the runs before have not left in memory.
    const read = await runOf(dataset, { ...encoded(given), epoch: 1 }, seconds * READING_SHARE, 0);
    const remedies = await remediesFor(dataset, loader, here);
    const left = seconds * (1 - DATASET_SHARE - READING_SHARE);
    const turn = left / TURNS / 2 / Math.max(1, remedies.length);
    const tried = await tryRemedies(folder, ofSample(given, here, turn), remedies, turn, seconds * WARM_UP_SHARE);
    const rates = { here: here.rate, read: Math.max(read.rate, here.rate), decoded: tried.rate };
    const { prefetchBatches, fits } = prefetchWithin(memory, here, loader);
    return {
      imagesPerSecond: rates.here,
      decodedPerSecond: rates.decoded,
      readPerSecond: rates.read,
      limit: readingLimits(rates) ? 'reading' : 'decoding',
      gains: gainsOf(rates, tried.remedies),
      otherPrograms: shareOfOthers(before, processorTimes()),
      sampleImages,
      turns: TURNS,
      memoryBytes: here.memoryBytes,
      fitsMemory: fits,
      options: { workers: loader.workers, prefetchBatches },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The options for the sample: a local dataset, which has only the chosen images, in a field of another name. */
function ofSample(
  { where, image, streams, cache, cacheSize, ...options }: Given,
  { rate, batchBytes, batchSize }: Run,
  turn: number,
): Given {
  const rows = Math.floor(Math.min(SAMPLE_BATCH_BYTES / (batchBytes / batchSize), (rate * turn) / BATCHES_PER_TURN));
  return {
    ...options,
    batchSize: Math.min(batchSize, Math.max(LEAST_SAMPLE_BATCH, rows)),
    prefetchBatches: SAMPLE_PREFETCH,
  };
}

/** The options for images that are not decoded. */
function encoded({ aspectBuckets, holdBytes, ...options }: Given): Given {
  return { ...options, transform: 'raw' };
}

/** Writes some hundred images of the dataset as files, in the order of an epoch. Returns how many. */
async function copySample(dataset: Dataset, folder: string, options: Given): Promise<number> {
  await mkdir(folder, { recursive: true });
  await using loader = dataset.loader(options);
  let images = 0;
  for await (const batch of loader) {
    for (const [row, bytes] of batch.encoded!.entries()) {
      const kind = imageKindOf(bytes);
      if (kind === undefined || !batch.valid[row]) continue;
      await writeFile(path.join(folder, `${String(images++).padStart(6, '0')}.${fieldOfKind(kind)}`), bytes);
      if (images === SAMPLE_IMAGES) return images;
    }
  }
  if (images === 0) {
    throw new ShardtoolError({ path: dataset.location }, `${dataset.location} has no images to measure.`);
  }
  return images;
}

interface Run {
  readonly rate: number;
  readonly memoryBytes: number;
  readonly batchSize: number;
  /** Bytes of a batch, and the longer side of its images; 0 without decoding. */
  readonly batchBytes: number;
  readonly side: number;
  readonly lacksCropIndex: boolean;
  readonly isTurbojpeg: boolean;
}

/**
 * Reads the dataset for `seconds`, in several epochs if it is short. The time until the first batch and `warmUp` seconds
 * after it are not counted.
 */
async function runOf(dataset: Dataset, options: LoaderOptions, seconds: number, warmUp: number): Promise<Run> {
  await using loader = dataset.loader({ ...options, epochsPerLoop: Number.MAX_SAFE_INTEGER });
  let [first, images, begin, end, batchSize, batchBytes, side] = [0, 0, 0, 0, 0, 0, 0];
  for await (const batch of loader) {
    end = performance.now();
    if (first === 0) {
      first = end;
      batchSize = batch.size;
      batchBytes = batch.images?.byteLength ?? 0;
      // The shape includes the number of channels, which is smaller than either side.
      side = batch.images === null ? 0 : Math.max(...(batch.shape ?? []).slice(1));
    }
    if (begin > 0) images += batch.size;
    else if (end - first >= warmUp * 1000) begin = end;
    if (images > 0 && end - first >= seconds * 1000) break;
  }
  const info = await loader.info();
  return {
    rate: (images / (end - begin)) * 1000,
    memoryBytes: process.resourceUsage().maxRSS * 1024,
    batchSize,
    batchBytes,
    side,
    lacksCropIndex: lacksCropIndex(info),
    isTurbojpeg: info.codec?.name === 'turbojpeg',
  };
}

/** The remedies that apply to this dataset and machine. */
async function remediesFor(
  dataset: Dataset,
  { decode, workers }: TuneOptions['loader'],
  { side, lacksCropIndex, isTurbojpeg }: Run,
): Promise<Remedy[]> {
  const found: Remedy[] = [];
  const cores = availableCores();
  if (workers < cores) found.push({ what: 'core', workers: workers + 1, how: `--cpu-budget ${workers + 1}` });
  else if (workers > 1) found.push({ what: 'core', workers: workers - 1, how: 'a machine with one more core' });
  if (lacksCropIndex)
    found.push({ what: 'crop index', pack: { index: ['crops'] }, how: 'shardtool index FOLDER --index crops' });
  const target = Math.round(side * PACKED_PER_TARGET);
  const stored = await storedSize(dataset);
  if (stored !== null && target > 0 && Math.min(stored.width, stored.height) > target) {
    found.push({ what: 'resized copy', pack: { resize: target }, how: `shardtool pack ... --resize ${target}` });
  }
  if (isTurbojpeg && decode !== 'fast')
    found.push({ what: 'decode fast', loader: { decode: 'fast' }, how: '--decode fast' });
  return found;
}

/** Number of batches to prepare ahead: as many as the memory allows, from one to the default. */
function prefetchWithin(
  memory: number | undefined,
  { memoryBytes, batchBytes }: Run,
  { prefetchBatches }: LoaderOptions,
) {
  const wanted = prefetchBatches ?? LOADER_OPTIONS.prefetchBatches.default;
  if (memory === undefined || memoryBytes <= memory) return { prefetchBatches: wanted, fits: true };
  const fewer = batchBytes === 0 ? wanted - 1 : Math.ceil((memoryBytes - memory) / batchBytes);
  const left = Math.max(1, wanted - fewer);
  return { prefetchBatches: left, fits: memoryBytes - (wanted - left) * batchBytes <= memory };
}
