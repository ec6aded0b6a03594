import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { availableCores, ShardtoolError, total } from '@shardtool/base';
import { fieldOfKind, imageKindOf } from '@shardtool/format';
import { type Batch, type Dataset, type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';
import { LOADER_OPTIONS } from '@shardtool/reader/option-table';
import { pack } from '@shardtool/writer';
import { lacksCropIndex, quantile, storedSize } from '../bench/bench.js';
import { type Gain, gainsOf, type Remedy, readingLimits, type Tried } from './gains.js';
import { BUSY, processorTimes, shareOfOthers } from './other-programs.js';

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
 * Size of a batch of the sample, in bytes and as a share of a turn, and how many are prepared ahead. Smaller batches than
 * those of training cost more time of the main thread per image; two loops are in memory at a time.
 */
const SAMPLE_BATCH_BYTES = 16 << 20;
const BATCHES_PER_TURN = 4;
const LEAST_SAMPLE_BATCH = 8;
const SAMPLE_PREFETCH = 2;
/** Shares of the time: for the dataset in its location, and for reading it without decoding. The sample gets the rest. */
const DATASET_SHARE = 0.25;
const READING_SHARE = 0.15;
/** Turns in which the sample is read as it is and with each remedy. */
const TURNS = 5;
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

type Given = LoaderOptions & { readonly workers: number; readonly signal: AbortSignal };

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

/**
 * Rate of the sample as it is, the median of all turns, and what each remedy changed. In a turn, the sample is read for
 * `turn` seconds as it is, and for the same time with the remedy. `warmUp`: seconds at the start of each loop that are not
 * measured.
 */
async function tryRemedies(
  folder: string,
  options: Given,
  remedies: readonly Remedy[],
  turn: number,
  warmUp: number,
): Promise<{ readonly rate: number; readonly remedies: readonly Tried[] }> {
  const open = async (name: string, { pack: packing, loader, workers = options.workers }: Partial<Remedy>) => {
    const output = path.join(folder, name);
    await pack(path.join(folder, 'images'), output, { ...packing, onBad: 'quarantine', signal: options.signal });
    return SampleLoop.open(output, { ...options, ...loader, workers }, warmUp);
  };
  await using present = await open('present', {});
  const turns = [await present.measure(turn, 0)];
  const tried: Tried[] = [];
  for (const [i, remedy] of remedies.entries()) {
    await using changed = await open(`remedy-${i}`, remedy);
    const pairs: Pair[] = [];
    const before = processorTimes();
    for (let number = 0; number < TURNS; number++) {
      pairs.push({
        present: await present.measure(turn, changed.busyUntil),
        changed: await changed.measure(turn, present.busyUntil),
      });
    }
    const isBusy = (shareOfOthers(before, processorTimes()) ?? 0) >= BUSY;
    turns.push(...pairs.map((pair) => pair.present));
    tried.push({
      remedy,
      workers: options.workers,
      ratios: ratiosOf(pairs, remedy, isBusy),
      size: changed.bytes / present.bytes,
    });
  }
  const rates = turns.map(({ rate }) => rate).sort((a, b) => a - b);
  return { rate: quantile(rates, 0.5), remedies: tried };
}

/** A turn. */
interface Pair {
  readonly present: Measure;
  readonly changed: Measure;
}

/**
 * How much faster each turn is with a remedy. If other programs take turns with the workers, rates differ by chance, but not
 * the processor time of an image. More workers do not change that.
 */
function ratiosOf(pairs: readonly Pair[], { workers }: Remedy, isBusy: boolean): number[] {
  const figure = isBusy && workers === undefined ? 'imagesPerCpuSecond' : 'rate';
  return pairs.map(({ present, changed }) => changed[figure] / present[figure]);
}

interface Measure {
  /** Images per second. */
  readonly rate: number;
  readonly imagesPerCpuSecond: number;
}

/** An endless loop over the sample, which is measured now and then. In between, the workers prepare some batches and wait. */
class SampleLoop {
  readonly #dataset: Dataset;
  readonly #loader: Loader;
  readonly #batches: AsyncIterator<Batch>;
  /** Time until which the workers prepare batches after the last turn. */
  busyUntil = 0;

  private constructor(dataset: Dataset, loader: Loader) {
    this.#dataset = dataset;
    this.#loader = loader;
    this.#batches = loader[Symbol.asyncIterator]();
  }

  static async open(location: string, options: LoaderOptions, warmUp: number): Promise<SampleLoop> {
    const dataset = await openDataset(location);
    const loop = new SampleLoop(dataset, dataset.loader({ ...options, epochsPerLoop: Number.MAX_SAFE_INTEGER }));
    try {
      await loop.#batches.next();
      await loop.measure(warmUp, 0);
      return loop;
    } catch (error) {
      await loop[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Size of the dataset in bytes. */
  get bytes(): number {
    return total(this.#dataset.shards.map(({ bytes }) => bytes));
  }

  /** Measures for at least `seconds` and one batch, when another loop is no longer busy. */
  async measure(seconds: number, othersBusyUntil: number): Promise<Measure> {
    // Batches that were prepared since the last turn come at once.
    for (let batch = 0; batch <= SAMPLE_PREFETCH || performance.now() < othersBusyUntil; batch++)
      await this.#batches.next();
    const [begin, cpu] = [performance.now(), process.cpuUsage()];
    let [images, batches, end] = [0, 0, begin];
    while (images === 0 || end - begin < seconds * 1000) {
      images += (await this.#batches.next()).value.size;
      batches++;
      end = performance.now();
    }
    // Twice the time of the batches that are prepared, because both loops may share cores.
    this.busyUntil = end + (2 * (SAMPLE_PREFETCH + 1) * (end - begin)) / batches;
    const { user, system } = process.cpuUsage(cpu);
    return { rate: (images * 1000) / (end - begin), imagesPerCpuSecond: (images * 1e6) / (user + system) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loader.close();
    await this.#dataset.close();
  }
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
