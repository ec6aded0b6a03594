import { availableParallelism } from 'node:os';
import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  OptionError,
  type OptionTable,
  option,
  sentence,
  WatchedCallbacks,
  withMessages,
} from '@shardtool/base';
import { hasChecksum, MANIFEST_FILE, MAX_PIXELS, type Manifest, OVERLAYS_FOLDER } from '@shardtool/format';
import { isRemote, joinLocation, readWhole, type StorageOptions } from '@shardtool/storage';
import type { ShardToVerify, ShardVerdict } from '../check/check-shard.js';
import { DatasetTotals } from '../check/check-totals.js';
import type { Fault } from '../check/faults.js';
import { type DatasetShard, findDatasetShards, withRemoteCrops } from '../shard/dataset-shards.js';
import { isSmallWork } from '../workers/small-work.js';
import { inlineWorker, WorkerPool } from '../workers/worker-pool.js';
import type { VerifyWorkerData } from './verify-worker.js';

export interface VerifyOptions {
  /** `checksums` compares all bytes with their checksums; `decode` also decodes every image completely. Default: `checksums`. */
  readonly check?: 'checksums' | 'decode';
  /** Number of worker threads. Default: the number of cores. If there is little work, no threads are started. */
  readonly workers?: number;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Called for each fault, in the order of the shards. */
  readonly onFault?: ((fault: Fault) => void) | undefined;
  /** Called after each shard. */
  readonly onProgress?: ((done: VerifyProgress) => void) | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const callback = { kind: 'own', type: 'function', must: 'is a function', help: 'Called with each' } as const;
const OPTIONS = {
  check: { kind: 'choice', values: ['checksums', 'decode'], help: 'What is checked' },
  workers: CALL_OPTIONS.workers,
  storage: CALL_OPTIONS.storage,
  onFault: callback,
  onProgress: CALL_OPTIONS.onProgress,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/** Progress, in the order of the shards. */
export interface VerifyProgress {
  readonly shards: number;
  readonly totalShards: number;
}

export interface VerifyReport {
  readonly shards: number;
  readonly samples: number;
  readonly bytes: number;
  /** Number of damaged samples, plus faults of shards and indexes as a whole. */
  readonly faults: number;
  readonly damagedSamples: number;
  /** Number of images that were decoded with warnings. */
  readonly warnings: number;
  /** Number of files in shards of other tools that belong to no sample, except links. */
  readonly skippedEntries: number;
  /** True if every sample had a checksum. Shards of other tools without indexes have none, but zips store their own. */
  readonly checksums: boolean;
}

/**
 * Checks a dataset and its overlays. The output of `pack` is checked against its manifest and indexes. Tars of other
 * tools are checked against their stored indexes; without one, only their headers are checked. Throws {@link
 * OptionError}, and an error if there is no dataset or its manifest cannot be read.
 */
export async function verify(location: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  checkLocation('verify', location);
  checkCallOptions('verify', OPTIONS, options);
  const { signal } = options;
  const callbacks = new WatchedCallbacks();
  // The call that each shard makes ends the work if it was aborted.
  const onProgress = callbacks.wrap(options.onProgress ?? (() => undefined));
  const given = { ...options, onFault: callbacks.wrap(options.onFault), onProgress };
  return abortable(signal, () => callbacks.watch(() => withMessages(() => verifyDataset(location, given)), signal));
}

async function verifyDataset(location: string, options: VerifyOptions): Promise<VerifyReport> {
  checkWorkers(options.workers);
  const { shards: found, manifest } = await findDatasetShards(location, { storage: options.storage });
  const shards = manifest !== null && isRemote(location) ? await withRemoteCrops(found) : found;
  const isByHand = async () =>
    !hasChecksum(Buffer.from(await readWhole(joinLocation(location, MANIFEST_FILE), options.storage)).toString());
  const report = await verifyShards(shards, manifest && { said: manifest, isByHand: await isByHand() }, options);
  // Overlays are not checked against damaged indexes, which are already reported.
  const faults = report.faults > 0 ? [] : await faultsOfOverlays(location, options.storage);
  for (const { overlay, sentence } of faults) {
    options.onFault?.({ shard: `${OVERLAYS_FOLDER}/${overlay}.jsonl`, reason: sentence });
  }
  return { ...report, faults: report.faults + faults.length };
}

async function faultsOfOverlays(location: string, storage: StorageOptions | undefined) {
  const { checkOverlays } = await import('@shardtool/reader');
  return checkOverlays(location, { storage });
}

/** The manifest that the totals of the shards are compared with. */
interface ManifestToVerify {
  readonly said: Manifest;
  /** True if the manifest has no checksum of itself. */
  readonly isByHand: boolean;
}

/** Throws {@link OptionError} unless `workers` is a valid number of threads. */
export function checkWorkers(workers: number | undefined): void {
  if (workers === undefined || (Number.isInteger(workers) && workers >= 1 && workers <= 1024)) return;
  throw new OptionError(
    {},
    sentence`The option ${option('workers')} is ${workers}; it must be a whole number from 1 to 1024.`,
  );
}

async function verifyShards(
  shards: readonly DatasetShard[],
  manifest: ManifestToVerify | null,
  options: VerifyOptions,
): Promise<VerifyReport> {
  const data: VerifyWorkerData = { decode: options.check === 'decode', maxPixels: MAX_PIXELS };
  const script = new URL('./verify-worker.js', import.meta.url);
  const pool: VerifyPool =
    data.decode || !isDoneHere(options.workers, shards)
      ? WorkerPool.ofThreads(script, poolSize(options.workers, shards), () => data)
      : WorkerPool.inline(inlineWorker(verifyHere));
  try {
    return await verifyIn((jobs, done) => pool.run(jobs, done, () => undefined), shards, manifest, options);
  } finally {
    await pool.close();
  }
}

type VerifyPool = WorkerPool<VerifyJob, VerifyAnswer>;

async function verifyHere({ number, shard }: VerifyJob): Promise<VerifyAnswer> {
  return { number, verdict: await (await import('../check/check-shard.js')).checkShard(shard, null) };
}

/** True if the work is done before a thread would have started, and the caller did not set `workers`. */
export function isDoneHere(workers: number | undefined, shards: readonly DatasetShard[]): boolean {
  const files = shards.reduce((sum, { record }) => sum + (record?.samples ?? 0), shards.length);
  const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  return (workers ?? 1) === 1 && isSmallWork({ files, bytes });
}

/** Number of workers: at most one per shard. */
export function poolSize(workers = availableParallelism(), shards: readonly unknown[]): number {
  return Math.max(1, Math.min(workers, shards.length));
}

/** Runs the jobs in worker threads, and passes on each answer as it arrives. */
type RunVerify = (jobs: readonly VerifyJob[], done: (answer: VerifyAnswer) => void) => Promise<void>;

/** Runs {@link verify} for these shards with existing workers. Without a `manifest` the totals are not compared. */
export async function verifyIn(
  run: RunVerify,
  shards: readonly ShardToVerify[],
  manifest: ManifestToVerify | null,
  { onFault, onProgress }: Pick<VerifyOptions, 'onFault' | 'onProgress'>,
): Promise<VerifyReport> {
  const report = { shards: 0, samples: 0, bytes: 0, faults: 0, damagedSamples: 0, warnings: 0, skippedEntries: 0 };
  let checksums = true;
  const totals = new DatasetTotals();
  const add = (verdict: ShardVerdict): void => {
    // The faults of the shard are already reported.
    totals.add(verdict.faults.length > 0 ? null : verdict.totals);
    report.shards++;
    report.samples += verdict.samples;
    report.bytes += verdict.bytes;
    report.faults += verdict.faults.length;
    report.damagedSamples += verdict.faults.filter(({ key }) => key !== undefined).length;
    report.warnings += verdict.warnings;
    report.skippedEntries += verdict.skippedEntries;
    checksums &&= verdict.checksums;
    for (const fault of verdict.faults) onFault?.(fault);
    onProgress?.({ shards: report.shards, totalShards: shards.length });
  };
  const inOrder = new InOrder(add);
  const jobs = shards.map((shard, number) => ({ number, shard }));
  await run(jobs, ({ number, verdict }) => inOrder.put(number, verdict));
  for (const reason of manifest === null ? [] : totals.compare(manifest.said, manifest.isByHand)) {
    report.faults++;
    onFault?.({ shard: MANIFEST_FILE, reason });
  }
  return { ...report, checksums };
}

/** Job and answer of a worker. */
export interface VerifyJob {
  readonly number: number;
  readonly shard: ShardToVerify;
}
export interface VerifyAnswer {
  readonly number: number;
  readonly verdict: ShardVerdict;
}

/** Passes on numbered items in order, starting at 0, although they arrive in any order. */
class InOrder<T> {
  readonly #take: (value: T) => void;
  readonly #waiting = new Map<number, T>();
  #next = 0;

  constructor(take: (value: T) => void) {
    this.#take = take;
  }

  put(number: number, value: T): void {
    this.#waiting.set(number, value);
    for (;;) {
      const next = this.#waiting.get(this.#next);
      if (next === undefined) return;
      this.#waiting.delete(this.#next++);
      this.#take(next);
    }
  }
}
