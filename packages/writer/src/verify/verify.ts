import {
  abortable,
  availableCores,
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
import { provideVerify, type VerifyOptions, type VerifyReport } from '@shardtool/reader';
import { isRemote, joinLocation, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import type { ShardToVerify, ShardVerdict } from '../check/check-shard.js';
import { DatasetTotals } from '../check/check-totals.js';
import { type DatasetShard, findDatasetShards, withRemoteCrops } from '../shard/dataset-shards.js';
import { isSmallWork } from '../workers/small-work.js';
import { inlineWorker, WorkerPool } from '../workers/worker-pool.js';
import { dueShards, VerifyRecord } from './verify-record.js';
import type { VerifyWorkerData } from './verify-worker.js';

const callback = { kind: 'own', type: 'function', must: 'is a function', help: 'Called with each' } as const;
const OPTIONS = {
  check: { kind: 'choice', values: ['checksums', 'decode'], help: 'What is checked' },
  since: { kind: 'whole', from: 0, help: 'Age of a check from which a shard is verified again, in milliseconds' },
  sample: { kind: 'own', type: 'number', must: 'is a number above 0 and at most 1', help: 'Share that is verified' },
  workers: CALL_OPTIONS.workers,
  storage: CALL_OPTIONS.storage,
  onFault: callback,
  onProgress: CALL_OPTIONS.onProgress,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/**
 * Checks a dataset and its overlays. The output of `pack` is checked against its manifest and indexes. Tars of other
 * tools are checked against their stored indexes; without one, only their headers are checked. Throws {@link
 * OptionError}, and an error if there is no dataset or its manifest cannot be read.
 */
export async function verify(location: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  checkLocation('verify', location);
  checkCallOptions('verify', OPTIONS, options, {
    sample: (value) => typeof value === 'number' && value > 0 && value <= 1,
  });
  const { signal } = options;
  const callbacks = new WatchedCallbacks();
  // The call that each shard makes ends the work if it was aborted.
  const onProgress = callbacks.wrap(options.onProgress ?? (() => undefined));
  const given = { ...options, onFault: callbacks.wrap(options.onFault), onProgress };
  return abortable(signal, () => callbacks.watch(() => withMessages(() => verifyDataset(location, given)), signal));
}

provideVerify(verify);

async function verifyDataset(location: string, options: VerifyOptions): Promise<VerifyReport> {
  checkWorkers(options.workers);
  const { shards: found, manifest } = await findDatasetShards(location, { storage: options.storage });
  const shards = manifest !== null && isRemote(location) ? await withRemoteCrops(found) : found;
  const isByHand = async () =>
    !hasChecksum(Buffer.from(await readWhole(joinLocation(location, MANIFEST_FILE), options.storage)).toString());
  const said = manifest && { said: manifest, isByHand: await isByHand() };
  const report = isByRecord(options)
    ? await verifyDue(location, shards, said, options)
    : await verifyShards(shards, said, options);
  // Overlays are not checked against damaged indexes, which are already reported.
  const faults = report.faults > 0 ? [] : await faultsOfOverlays(location, options.storage);
  for (const { overlay, sentence } of faults) {
    options.onFault?.({ shard: `${OVERLAYS_FOLDER}/${overlay}.jsonl`, reason: sentence });
  }
  return { ...report, faults: report.faults + faults.length };
}

function isByRecord({ since, sample }: VerifyOptions): boolean {
  return since !== undefined || sample !== undefined;
}

/** Verifies the shards that are due, and records the results. */
async function verifyDue(
  location: string,
  shards: readonly DatasetShard[],
  manifest: ManifestToVerify | null,
  options: VerifyOptions,
): Promise<VerifyReport> {
  if (manifest === null) {
    const name = options.since !== undefined ? option('since') : option('sample');
    const path = shownLocation(location);
    const message = sentence`${path} has no dataset.json, so there is no record of its checks: omit ${name}, or make a dataset with "shardtool convert".`;
    throw new OptionError({ path }, message);
  }
  const { check = 'checksums', since, sample = 1 } = options;
  const record = await VerifyRecord.open(location, manifest.said.shards, options.storage);
  const wholeSince = (shard: DatasetShard) => record.wholeSince(shard.record!, check);
  const now = Date.now();
  const { chosen } = dueShards(shards, wholeSince, { since: since ?? 0, sample, now });
  const onShard = (number: number, { faults }: ShardVerdict) =>
    record.add(chosen[number]!.record!, check, faults.length);
  let report: VerifyReport;
  try {
    // The totals of the manifest can be compared only with all shards.
    const said = chosen.length === shards.length ? manifest : null;
    report = await verifyShards(chosen, said, { ...options, onShard });
  } finally {
    await record.save();
  }
  const times = shards.map(wholeSince);
  const isDue = (last: number | null) => last === null || (since !== undefined && now - last >= since);
  const oldest = times.reduce((least, last) => (least === null || last === null ? null : Math.min(least, last)));
  return {
    ...report,
    record: {
      dueShards: times.filter(isDue).length,
      oldest: oldest === null ? null : new Date(oldest).toISOString(),
      file: record.savedAt,
      fault: record.fault,
    },
  };
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
  options: VerifyOptions & { readonly onShard?: OnShard },
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
export function poolSize(workers = availableCores(), shards: readonly unknown[]): number {
  return Math.max(1, Math.min(workers, shards.length));
}

/** Runs the jobs in worker threads, and passes on each answer as it arrives. */
type RunVerify = (jobs: readonly VerifyJob[], done: (answer: VerifyAnswer) => void) => Promise<void>;

/** Called for each shard in order, with its number among the shards to verify. */
type OnShard = (number: number, verdict: ShardVerdict) => void;

/** Runs {@link verify} for these shards with existing workers. Without a `manifest` the totals are not compared. */
export async function verifyIn(
  run: RunVerify,
  shards: readonly ShardToVerify[],
  manifest: ManifestToVerify | null,
  { onFault, onProgress, onShard }: Pick<VerifyOptions, 'onFault' | 'onProgress'> & { readonly onShard?: OnShard },
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
    onShard?.(report.shards - 1, verdict);
    onProgress?.({ shards: report.shards, totalShards: shards.length });
  };
  const inOrder = new InOrder(add);
  const jobs = shards.map((shard, number) => ({ number, shard }));
  await run(jobs, ({ number, verdict }) => inOrder.put(number, verdict));
  for (const reason of manifest === null ? [] : totals.compare(manifest.said, manifest.isByHand)) {
    report.faults++;
    onFault?.({ shard: MANIFEST_FILE, reason });
  }
  return { ...report, checksums, record: null };
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
