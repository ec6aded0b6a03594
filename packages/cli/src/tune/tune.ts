import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { ShardtoolError } from '@shardtool/base';
import { isImageField } from '@shardtool/format';
import { type Dataset, type Loader, type LoaderOptions, openDataset } from '@shardtool/reader';
import { type PackOptions, pack } from '@shardtool/writer';
import { lacksCropIndex, storedSize } from '../bench/bench.js';
import { type Gain, gainsOf, type Remedy } from './gains.js';

export interface TuneOptions {
  /** The loader to tune. Its number of workers is what the processor allows. */
  readonly loader: LoaderOptions & { readonly workers: number };
  /** Memory that the process may use, in bytes. */
  readonly memory?: number | undefined;
  /** How long it measures, in seconds, about. */
  readonly seconds: number;
  /** Ends the measurement with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface TuneResult {
  /** Rate of the dataset where it is. */
  readonly imagesPerSecond: number;
  /** Rate with images in memory, so that only decoding and transforms count. */
  readonly decodedPerSecond: number;
  /** Rate at which images come from storage, without decoding. */
  readonly readPerSecond: number;
  readonly limit: 'decoding' | 'reading';
  /** What would make it faster, the largest gain first. */
  readonly gains: readonly Gain[];
  /** Images that were copied for the measurements, and turns that every remedy had. */
  readonly sampleImages: number;
  readonly turns: number;
  /** Peak memory of the process while it read the dataset, in bytes. */
  readonly memoryBytes: number;
  /** Whether `memoryBytes`, or what it becomes with `options`, fits into the given memory. True without one. */
  readonly fitsMemory: boolean;
  /** The loader options to use. */
  readonly options: { readonly workers: number; readonly prefetchBatches: number };
}

/** Images of the sample come from this many places of the dataset. */
const PLACES = 64;
const SAMPLE_IMAGES = 512;
const PREFETCH_BATCHES = 4;
/** Small enough that each epoch of the sample has some batches. */
const SAMPLE_BATCH = 32;
/** Shares of the time: for the dataset where it is, and for reading it without decoding. The sample has the rest. */
const DATASET_SHARE = 0.25;
const READING_SHARE = 0.15;
/** Below this share of the rate from memory, reading limits. */
const READING_LIMITS = 0.92;
/** Shorter side of images that are packed for crops of 224 pixels. */
const PACKED_PER_TARGET = 256 / 224;

/**
 * Measures what limits a loader of this dataset, and what its remedies would bring. Each remedy is tried on copies of
 * some hundred images of the dataset, in turns with the loader as it is.
 */
export async function tuneDataset(
  dataset: Dataset,
  { loader, memory, seconds, signal }: TuneOptions,
): Promise<TuneResult> {
  const given = { ...loader, rank: 0, worldSize: 1, reuse: true as const, signal };
  const here = await rateOf(dataset, given, seconds * DATASET_SHARE);
  const read = await rateOf(dataset, { ...given, transform: 'raw' }, seconds * READING_SHARE);
  const folder = await mkdtemp(path.join(tmpdir(), 'shardtool-tune-'));
  try {
    const sampleImages = await copySample(dataset, path.join(folder, 'images'), loader.image, signal);
    const remedies = await remediesFor(dataset, loader, here);
    const tried = await inTurns(folder, { ...given, batchSize: SAMPLE_BATCH }, remedies, {
      seconds: seconds * (1 - DATASET_SHARE - READING_SHARE),
    });
    const rates = { here: here.rate, read: read.rate, decoded: tried.rate };
    const { prefetchBatches, fits } = prefetchWithin(memory, here, loader);
    return {
      imagesPerSecond: here.rate,
      decodedPerSecond: tried.rate,
      readPerSecond: Math.max(read.rate, here.rate),
      limit: here.rate < READING_LIMITS * tried.rate ? 'reading' : 'decoding',
      gains: gainsOf(rates, tried.remedies),
      sampleImages,
      turns: tried.turns,
      memoryBytes: here.memoryBytes,
      fitsMemory: fits,
      options: { workers: loader.workers, prefetchBatches },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Run {
  readonly rate: number;
  readonly memoryBytes: number;
  /** Bytes of a batch, and the longer side of its images; 0 without decoding. */
  readonly batchBytes: number;
  readonly side: number;
  readonly lacksCropIndex: boolean;
  readonly isTurbojpeg: boolean;
}

/** Reads the dataset for this long, and begins again at its end. The first batch, and so the start, does not count. */
async function rateOf(dataset: Dataset, options: LoaderOptions, seconds: number): Promise<Run> {
  await using loader = dataset.loader({ ...options, epochsPerLoop: Number.MAX_SAFE_INTEGER });
  let [images, begin, end, batchBytes, side] = [0, 0, 0, 0, 0];
  for await (const batch of loader) {
    end = performance.now();
    if (begin === 0) {
      begin = end;
      batchBytes = batch.images?.byteLength ?? 0;
      // The number of channels, which is among the shape, is less than any side.
      side = batch.images === null ? 0 : Math.max(...(batch.shape ?? []).slice(1));
    } else images += batch.size;
    if (end - begin > seconds * 1000 && images > 0) break;
  }
  const info = await loader.info();
  return {
    rate: (images / (end - begin)) * 1000,
    memoryBytes: process.resourceUsage().maxRSS * 1024,
    ...{ batchBytes, side },
    lacksCropIndex: lacksCropIndex(info),
    isTurbojpeg: info.codec?.name === 'turbojpeg',
  };
}

/** Writes images from all over the dataset as files. Returns how many. */
async function copySample(
  dataset: Dataset,
  folder: string,
  field: string | undefined,
  signal: AbortSignal,
): Promise<number> {
  await mkdir(path.join(folder, 'images'), { recursive: true });
  const each = Math.max(1, Math.ceil(Math.min(SAMPLE_IMAGES, dataset.size) / PLACES));
  let images = 0;
  for (let place = 0; place < PLACES; place++) {
    const from = Math.floor((dataset.size * place) / PLACES);
    const to = Math.min(from + each, Math.floor((dataset.size * (place + 1)) / PLACES));
    if (to <= from) continue;
    for await (const { fields } of dataset.samples({ from, to, signal })) {
      const name = field ?? Object.keys(fields).find(isImageField);
      const bytes = name === undefined ? undefined : fields[name];
      if (name === undefined || bytes === undefined) continue;
      // The name of a field may have several parts, of which the last is the kind.
      const file = `${String(images).padStart(6, '0')}.${name.slice(name.lastIndexOf('.') + 1)}`;
      await writeFile(path.join(folder, 'images', file), bytes);
      images++;
    }
  }
  if (images === 0) {
    throw new ShardtoolError({ path: dataset.location }, `${dataset.location} has no images to measure.`);
  }
  return images;
}

/** What may help, by what the run of the dataset found. */
async function remediesFor(
  dataset: Dataset,
  { decode, workers }: TuneOptions['loader'],
  { side, lacksCropIndex, isTurbojpeg }: Run,
): Promise<Remedy[]> {
  const found: Remedy[] = [];
  const cores = availableParallelism();
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

/** Rates of the sample as it is and with each remedy: medians over turns of an epoch each. */
async function inTurns(
  folder: string,
  options: LoaderOptions & { readonly workers: number },
  remedies: readonly Remedy[],
  { seconds }: { readonly seconds: number },
) {
  const images = path.join(folder, 'images');
  const loaders: Loader[] = [];
  const datasets: Dataset[] = [];
  const start = async (name: string, packing: PackOptions, loader: LoaderOptions) => {
    const output = path.join(folder, name);
    await pack(images, output, { ...packing, onBad: 'quarantine', signal: options.signal });
    const dataset = await openDataset(output);
    datasets.push(dataset);
    loaders.push(dataset.loader(loader));
  };
  try {
    await start('as-it-is', {}, options);
    for (const [i, { pack: packing = {}, loader = {}, workers = options.workers }] of remedies.entries()) {
      await start(`remedy-${i}`, packing, { ...options, ...loader, workers });
    }
    const rates: number[][] = loaders.map(() => []);
    const end = performance.now() + seconds * 1000;
    // The first turn starts the workers.
    for (let turn = 0; turn < 2 || performance.now() < end; turn++) {
      for (const [i, loader] of loaders.entries()) {
        const begin = performance.now();
        let read = 0;
        for await (const batch of loader) read += batch.size;
        if (turn > 0) rates[i]!.push((read / (performance.now() - begin)) * 1000);
      }
    }
    const [rate = 0, ...others] = rates.map(median);
    const turns = rates[0]!.length;
    return {
      rate,
      turns,
      remedies: remedies.map((remedy, i) => ({ remedy, workers: options.workers, rate: others[i]! })),
    };
  } finally {
    for (const loader of loaders) await loader.close();
    for (const dataset of datasets) await dataset.close();
  }
}

/** As many batches ahead as the memory allows, from one to the default. */
function prefetchWithin(
  memory: number | undefined,
  { memoryBytes, batchBytes }: Run,
  { prefetchBatches }: LoaderOptions,
) {
  const wanted = prefetchBatches ?? PREFETCH_BATCHES;
  if (memory === undefined || memoryBytes <= memory) return { prefetchBatches: wanted, fits: true };
  const fewer = batchBytes === 0 ? wanted - 1 : Math.ceil((memoryBytes - memory) / batchBytes);
  const left = Math.max(1, wanted - fewer);
  return { prefetchBatches: left, fits: memoryBytes - (wanted - left) * batchBytes <= memory };
}

function median(values: readonly number[]): number {
  const rising = values.toSorted((a, b) => a - b);
  const middle = rising.length >> 1;
  return rising.length % 2 === 1 ? rising[middle]! : (rising[middle - 1]! + rising[middle]!) / 2;
}
