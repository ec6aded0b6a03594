import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { availableCores, ShardtoolError, total } from '@shardtool/base';
import { packedSidecarPath } from '@shardtool/format';
import type { CodecChoice, Dataset, LoaderInfo, LoaderOptions, LoaderReport } from '@shardtool/reader';
import { adviceOn, type Findings } from './advice.js';

export interface BenchOptions {
  /** The loader that is measured. */
  readonly loader: LoaderOptions;
  readonly epochs: number;
  /** Duration of the simulated training step for each batch, in milliseconds. */
  readonly stepMs: number;
  readonly cold: boolean;
}

export interface BenchResult {
  /**
   * True if the rate includes the first batch, and so the start of the workers. This is the case only if there is no
   * other batch.
   */
  readonly isFirstInRate: boolean;
  /** True if a step after the first waited for its batch. Null if no step is simulated. */
  readonly step: Findings['step'];
  /** The remedy. */
  readonly advice: readonly string[];
  readonly imagesPerSecond: number;
  readonly images: number;
  readonly batches: number;
  readonly batchSize: number;
  readonly workers: number;
  readonly checksum: string;
  /** Values without the first batch, which is reported separately. */
  readonly batchWaitP50Ms: number;
  /** 99th percentile; with fewer than 100 batches, the maximum. */
  readonly batchWaitP99Ms: number;
  /** Time from the creation of the loader. */
  readonly firstBatchMs: number;
  readonly peakRssBytes: number;
  readonly readBufferPeakBytes: number;
  readonly slotBytes: number;
  readonly mainThreadMicrosPerSample: number;
  /** Shares of the time. */
  readonly boundBy: { readonly io: number; readonly decode: number; readonly consumer: number };
  readonly codec: CodecChoice | null;
  /** Whether crop indexes were used and why not, and images of all epochs that were decoded with one and without. */
  readonly cropIndex: {
    readonly used: boolean;
    readonly reason: string;
    readonly spliced: number;
    readonly others: number;
  };
  /** Duration of the measurement, from the first batch on. */
  readonly seconds: number;
  readonly storage: LoaderReport['storage'];
  readonly warnings: number;
  readonly bad: number;
  readonly badKeys: readonly string[];
}

/** Goes through `epochs` epochs and measures. The workers' start belongs to the first batch and not to the rate. */
export async function benchDataset(dataset: Dataset, options: BenchOptions): Promise<BenchResult> {
  if (options.cold) await dropFromCache(dataset);
  const { epochs, stepMs } = options;
  const { batchSize = 64, checksum = 'first-epoch' } = options.loader;
  const asked = performance.now();
  // One rank, even if a launcher has set RANK and WORLD_SIZE.
  await using loader = dataset.loader({ ...options.loader, reuse: true, epochsPerLoop: epochs, rank: 0, worldSize: 1 });
  const waits: number[] = [];
  let firstBatchMs = 0;
  let images = 0;
  let firstImages = 0;
  let firstAt = 0;
  let cpuAt = 0;
  let askedAt = asked;
  for await (const batch of loader) {
    const now = performance.now();
    if (firstAt === 0) {
      firstBatchMs = now - asked;
      firstAt = now;
      firstImages = batch.size;
      cpuAt = mainThreadMicros();
    } else waits.push(now - askedAt);
    images += batch.size;
    if (stepMs > 0) await sleep(stepMs);
    askedAt = performance.now();
  }
  const seconds = (performance.now() - firstAt) / 1000;
  const cpu = mainThreadMicros() - cpuAt;
  const timed = images - firstImages;
  const report = loader.report();
  const info = await loader.info();
  const stored = await storedSize(dataset);
  waits.sort((a, b) => a - b);
  const late = waits.filter((wait) => wait > READY_MS);
  const step =
    stepMs === 0
      ? null
      : { stepMs, batches: waits.length, waited: late.length, share: total(late) / 1000 / Math.max(1e-9, seconds) };
  const busyMs = Math.max(1e-9, report.ioMs + report.decodeMs + report.consumerMs);
  const boundBy = { io: report.ioMs / busyMs, decode: report.decodeMs / busyMs, consumer: report.consumerMs / busyMs };
  const { cache, prefetchBatches = 4 } = options.loader;
  const findings = {
    boundBy,
    workers: info.workers,
    cores: availableCores(),
    prefetchBatches,
    step,
    stored: info.codec === null ? null : stored,
    lacksCropIndex: lacksCropIndex(info),
    isRemote: dataset.files.isRemote,
    hasCache: cache !== undefined,
  };
  return {
    isFirstInRate: timed === 0,
    step,
    advice: adviceOn(findings),
    imagesPerSecond: timed === 0 ? images / (firstBatchMs / 1000) : timed / seconds,
    images,
    batches: report.batches,
    batchSize,
    workers: info.workers,
    checksum,
    batchWaitP50Ms: quantile(waits, 0.5),
    batchWaitP99Ms: quantile(waits, waits.length < 100 ? 1 : 0.99),
    firstBatchMs,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
    readBufferPeakBytes: report.readBufferPeakBytes,
    slotBytes: info.slotBytes,
    mainThreadMicrosPerSample: timed === 0 ? 0 : cpu / timed,
    boundBy,
    codec: info.codec,
    cropIndex: info.cropIndex,
    seconds,
    storage: report.storage,
    warnings: report.warnings,
    bad: report.bad,
    badKeys: report.badSamples.map(({ key }) => key),
  };
}

/** A batch that is ready is delivered within this time, in milliseconds. */
const READY_MS = 1;

/** Whether shards of JPEGs lack a crop index that this machine could use. */
export function lacksCropIndex({ cropIndex, codec }: LoaderInfo): boolean {
  return codec?.name === 'turbojpeg' && !cropIndex.used && cropIndex.reason.includes('--index crops');
}

/** Mean size of the images of one shard, as an estimate for all shards. Null if its index does not have it. */
export async function storedSize(dataset: Dataset): Promise<{ width: number; height: number } | null> {
  const shard = dataset.shards.findIndex(({ samples }) => samples > 0);
  if (shard < 0) return null;
  const { width, height } = await dataset.files.index(shard);
  const known = Array.from(width, (value, row) => [value, height[row]!] as const).filter(([value]) => value > 0);
  const mean = (of: (size: readonly [number, number]) => number) => total(known.map(of)) / known.length;
  return known.length === 0 ? null : { width: mean(([value]) => value), height: mean(([, value]) => value) };
}

/** The value below which this share of the values is. `rising` is sorted. 0 if it is empty. */
export function quantile(rising: readonly number[], q: number): number {
  if (rising.length === 0) return 0;
  return rising[Math.min(rising.length - 1, Math.floor(rising.length * q))]!;
}

/** CPU time of the main thread: from the kernel on Linux, elsewhere the time its event loop was busy. */
function mainThreadMicros(): number {
  try {
    const [nanoseconds] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1000;
  } catch {
    return performance.eventLoopUtilization().active * 1000;
  }
}

/** Drops shards and indexes from the page cache, by GNU dd's `nocache`, which asks for it with posix_fadvise. */
async function dropFromCache(dataset: Dataset): Promise<void> {
  try {
    for (const { path } of dataset.shards) {
      const sidecars = [await packedSidecarPath('index', path), await packedSidecarPath('crops', path)];
      const files = [path, ...sidecars].filter((file) => existsSync(file));
      for (const file of files) await promisify(execFile)('dd', [`if=${file}`, 'iflag=nocache', 'count=0']);
    }
  } catch (cause) {
    const why = (cause as Error).message.trim().split('\n').at(-1);
    const message = `The shards cannot be dropped from the page cache (${why}); --cold needs GNU dd.`;
    throw new ShardtoolError({ path: dataset.location }, message, { cause });
  }
}
