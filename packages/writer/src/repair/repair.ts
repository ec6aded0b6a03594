import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
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
import {
  findShards,
  hasSameValues,
  isOfLayout,
  isTableLayout,
  type LayoutName,
  MANIFEST_FILE,
  MAX_SAMPLE_BYTES,
  type Manifest,
  readManifest,
  readShardIndex,
  SIDECARS,
  sidecarOfShard,
  sidecarPaths,
  writtenLayoutOf,
} from '@shardtool/format';
import type { VerifyProgress } from '@shardtool/reader';
import { isRemote, requireLocal, type StorageOptions } from '@shardtool/storage';
import { type HeldOutput, lockFolder } from '../folder-lock.js';
import type { OtherIndex } from '../options.js';
import { commitDataset } from '../output/commit.js';
import { forgetMadeFrom } from '../output/pack-note.js';
import { addToQuarantine, type QuarantinedSample } from '../output/quarantine.js';
import { type DatasetShard, packedShards } from '../shard/dataset-shards.js';
import type { ShardRecord } from '../shard/new-shard.js';
import { md5OfFile, OTHER_INDEXES } from '../shard/other-indexes.js';
import { checkSource } from '../source/folder/scan.js';
import { checkWorkers, isDoneHere, poolSize, type VerifyAnswer, verifyIn } from '../verify/verify.js';
import { inlineWorker, type PoolWorker, WorkerPool } from '../workers/worker-pool.js';
import { exchangeShard, keepReplaced } from './exchange.js';
import { checkBucket } from './packed-bucket.js';
import { type RepairAnswer, RepairJobs, type ShardWork } from './repair-job.js';
import { type RepairedShard, type RepairSetting, recordOfIndex } from './repair-shard.js';
import { knownManifest } from './salvage-manifest.js';

export interface RepairOptions {
  /**
   * Folder or remote location that the dataset was packed from. Damaged samples are restored from it if their files are
   * unchanged.
   */
  readonly source?: string;
  /** Options for requests to a remote source. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** `decode` also removes images that cannot be fully decoded. Default: `checksums`. */
  readonly check?: 'checksums' | 'decode';
  /**
   * Maximum size of a sample that a worker keeps in memory, all fields together, in bytes or as a text such as `4GiB`. It applies to samples
   * of msgpack and LMDB that are written again, and to images in tars that must be decoded. Other samples of tars can
   * have any size. Default: 1 GiB.
   */
  readonly maxSampleBytes?: number | string | undefined;
  /** Number of worker threads. Default: the number of cores. */
  readonly workers?: number;
  /** Called for each sample that was removed, in the order of the shards. */
  readonly onTakenOut?: ((sample: QuarantinedSample) => void) | undefined;
  /** Called for each sample that was kept although no checksum verifies all of it. */
  readonly onUnproven?: ((sample: QuarantinedSample) => void) | undefined;
  /** Called after each shard that was checked. */
  readonly onProgress?: ((done: VerifyProgress) => void) | undefined;
  /** Ends the call with the signal's reason, after the shard that is being checked. Ignored while shards are replaced. */
  readonly signal?: AbortSignal | undefined;
}

const callback = { kind: 'own', type: 'function', must: 'is a function', help: 'Called with each' } as const;
const OPTIONS = {
  source: { kind: 'path', help: 'What the dataset was packed from' },
  check: { kind: 'choice', values: ['checksums', 'decode'], help: 'What is checked' },
  maxSampleBytes: { kind: 'bytes', from: 1, isEndless: true, help: 'Largest sample' },
  workers: CALL_OPTIONS.workers,
  storage: CALL_OPTIONS.storage,
  onTakenOut: callback,
  onUnproven: callback,
  onProgress: CALL_OPTIONS.onProgress,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

export interface RepairReport {
  /** Number of shards of the repaired dataset. */
  readonly shards: number;
  readonly samples: number;
  /** Number of shards that were rewritten, or whose index was. */
  readonly repairedShards: number;
  /** Number of shards without any sample left. */
  readonly removedShards: number;
  /** True if dataset.json was damaged and has been rebuilt. */
  readonly newManifest: boolean;
  /** Number of removed samples; quarantine.jsonl lists them. */
  readonly takenOut: number;
  /** Number of samples restored from the source folder, completely or in part. */
  readonly restored: number;
  /** Number of samples that were kept although no checksum verifies all of them; their images can be fully decoded. */
  readonly unproven: number;
  /**
   * Index columns with lost values, each as `shard: column`: paths, labels, classes, and fields that samples may have
   * had.
   */
  readonly lostColumns: readonly string[];
  /** Numbers of classes whose names are lost. Their names are now their numbers. */
  readonly lostClasses: readonly number[];
  /** Names of classes from a damaged dataset.json that nothing else confirms. */
  readonly unprovenClasses: readonly string[];
}

const WORK_FOLDER = 'repair.part';

type CheckedRepairOptions = Omit<RepairOptions, 'maxSampleBytes'> & { readonly maxSampleBytes: number | undefined };

/**
 * Repairs a dataset that `pack` or `convert` wrote: verifies it, rewrites damaged shards without the damaged samples
 * (or with samples restored from `source`), and commits the result. Everything undamaged remains unchanged, byte for
 * byte. Replaced files are kept in the folder `quarantine`. After an interruption it can be run again. Throws {@link
 * OptionError} for shards of other tools, UnfinishedPackError if a pack did not end, {@link OutputLockedError} if a
 * pack is running, and errors that also stop a pack (a full disk, files that cannot be opened). Before anything is
 * replaced, it throws {@link SampleSizeError} for a sample that must be in memory and exceeds the limit.
 */
export async function repair(location: string, options: RepairOptions = {}): Promise<RepairReport> {
  checkLocation('repair', location);
  const { maxSampleBytes } = checkCallOptions('repair', OPTIONS, options);
  const callbacks = new WatchedCallbacks();
  const given = {
    ...options,
    maxSampleBytes,
    onTakenOut: callbacks.wrap(options.onTakenOut),
    onUnproven: callbacks.wrap(options.onUnproven),
    onProgress: callbacks.wrap(options.onProgress ?? (() => undefined)),
  };
  return callbacks.watch(() => withMessages(() => repairDataset(location, given)), options.signal);
}

async function repairDataset(location: string, options: CheckedRepairOptions): Promise<RepairReport> {
  checkWorkers(options.workers);
  const { source } = options;
  if (source !== undefined) await (isRemote(source) ? checkBucket(source, options.storage) : checkSource(source));
  requireLocal(location, 'Repairing', 'copy it here, repair the copy, and replace the original with it');
  await refuseImported(location);
  const lock = lockFolder(location);
  const work = join(location, WORK_FOLDER);
  try {
    rmSync(work, { force: true, recursive: true });
    return await repairLocked(location, work, lock, options);
  } finally {
    rmSync(work, { force: true, recursive: true });
    lock.release();
  }
}

/** A damaged manifest is not a reason to refuse. */
async function refuseImported(location: string): Promise<void> {
  if (existsSync(join(location, MANIFEST_FILE))) return;
  // Throws if there is nothing, or a pack that did not end.
  await findShards(location);
  throw new OptionError(
    { path: location },
    `${location} contains shards of other software, which have no checksums, so they cannot be repaired; convert them first.`,
  );
}

async function repairLocked(
  location: string,
  work: string,
  lock: HeldOutput,
  options: CheckedRepairOptions,
): Promise<RepairReport> {
  const { manifest, isWhole, lostClasses, unprovenClasses } = await knownManifest(location);
  if (isTableLayout(manifest.format)) throw notRepaired(location, manifest.format);
  // A shard that is listed twice counts once.
  const known = new Map((await packedShards(location, manifest)).shards.map((shard) => [shard.name, shard]));
  const shards = [...known.values()];
  const otherIndexes = otherIndexesOf(location, manifest.format, shards);
  const setting = settingOf(manifest, { workFolder: work, otherIndexes, isManifestWhole: isWhole }, options);
  const { faulty, repaired } = await verifyAndRepair(shards, setting, options);
  const doubts = unprovenClasses.map((cls) => manifest.classes[cls]!.name);
  const report = reportOf(shards, repaired, { isWhole, lostClasses, unprovenClasses: doubts });
  if (report.samples === 0) {
    throw new OptionError(
      { path: location },
      sentence`Nothing in ${location} can be repaired; pack again, or set ${option('source')} to the folder from which it was packed.`,
    );
  }
  if (faulty.size === 0 && isWhole) return report;
  const takenOut = [...repaired.values()].flatMap((shard) => shard.takenOut);
  for (const sample of takenOut) options.onTakenOut?.(sample);
  for (const sample of [...repaired.values()].flatMap(({ unproven }) => unproven)) options.onUnproven?.(sample);
  await addToQuarantine(location, takenOut);
  if (takenOut.length > 0) await forgetMadeFrom(location);
  const layout = await writtenLayoutOf(manifest.format);
  for (const [number, { record, isFileNew }] of repaired) {
    await exchangeShard(location, work, layout, shards[number]!.stem, { isLeft: record !== null, isFileNew });
  }
  const records: ShardRecord[] = [];
  for (const [number, shard] of shards.entries()) {
    const record = repaired.has(number) ? repaired.get(number)!.record : await recordOf(shard, otherIndexes);
    if (record !== null) records.push(record);
  }
  const nameless = isWhole ? [] : namelessClasses(records, manifest.classes.length);
  const { format, columns } = manifest;
  const names = manifest.classes.map(({ name }) => name);
  const facts = { format, classes: [...names, ...nameless.map(String)], columns, otherIndexes, lock };
  const text = () => readFileSync(join(location, MANIFEST_FILE), 'utf8');
  const before = text();
  await keepReplaced(location, SIDECARS.wids.fileName(), () =>
    keepReplaced(location, MANIFEST_FILE, async () => {
      await commitDataset(location, records, facts);
    }),
  );
  // An earlier, interrupted repair may have removed the samples.
  if (isWhole && (await readManifest(location)).identity !== manifest.identity) await forgetMadeFrom(location);
  const isProven = hasSameValues(text(), before);
  return {
    ...report,
    lostClasses: [...report.lostClasses, ...nameless],
    ...(isProven && { unprovenClasses: [] }),
  };
}

function notRepaired(path: string, format: string): OptionError {
  const message = sentence`${path} has shards of the format ${format}, which cannot be repaired; run the same conversion again with ${option('overwrite')}.`;
  return new OptionError({ path }, message);
}

const MAX_CLASSES = 1_000_000;

/** Numbers of classes after those that have names. */
function namelessClasses(records: readonly ShardRecord[], named: number): number[] {
  let max = named - 1;
  for (const { classCounts } of records) for (const cls of classCounts.keys()) max = Math.max(max, cls);
  // Class numbers from files next to images need no names.
  return named === 0 || max > MAX_CLASSES ? [] : Array.from({ length: max + 1 - named }, (_, i) => named + i);
}

type RepairPool = WorkerPool<ShardWork, VerifyAnswer | RepairAnswer>;

/** Returns the numbers of the damaged shards, and the result for each. */
async function verifyAndRepair(shards: readonly DatasetShard[], setting: RepairSetting, options: RepairOptions) {
  const script = new URL('./repair-worker.js', import.meta.url);
  const isHere = !setting.decode && isDoneHere(options.workers, shards);
  const pool: RepairPool = isHere
    ? WorkerPool.inline(workerOf(new RepairJobs(setting)))
    : WorkerPool.ofThreads(script, poolSize(options.workers, shards), () => setting);
  try {
    const faulty = await faultyShards(pool, shards, options);
    if (faulty.size > 0) mkdirSync(setting.workFolder);
    return { faulty, repaired: await repairAll(pool, shards, faulty) };
  } finally {
    await pool.close();
  }
}

function workerOf(jobs: RepairJobs): PoolWorker<ShardWork, VerifyAnswer | RepairAnswer> {
  return inlineWorker(
    (job) => jobs.work(job),
    () => jobs.close(),
  );
}

async function faultyShards(
  pool: RepairPool,
  shards: readonly DatasetShard[],
  options: RepairOptions,
): Promise<ReadonlySet<number>> {
  const numbers = new Map(shards.map(({ name }, number) => [name, number]));
  const faulty = new Set<number>();
  await verifyIn(
    (jobs, done) =>
      pool.run(
        jobs.map((job) => ({ type: 'verify', ...job })),
        (answer) => done(answer as VerifyAnswer),
        () => undefined,
      ),
    shards,
    null,
    { ...options, onFault: ({ shard }) => faulty.add(numbers.get(shard)!) },
  );
  return faulty;
}

/** Indexes for other loaders in the folder. */
function otherIndexesOf(location: string, format: LayoutName, shards: readonly DatasetShard[]): OtherIndex[] {
  const has = (name: OtherIndex) =>
    sidecarPaths([name]).some((file) => existsSync(join(location, file))) ||
    shards.some(({ path }) => sidecarOfShard(path, [name]).some((file) => existsSync(file)));
  return OTHER_INDEXES.filter((name) => isOfLayout(name, format) && has(name));
}

function settingOf(
  { columns, fields, samples, classes }: Manifest,
  known: Pick<RepairSetting, 'workFolder' | 'otherIndexes' | 'isManifestWhole'>,
  { source, storage, check, maxSampleBytes = MAX_SAMPLE_BYTES }: CheckedRepairOptions,
): RepairSetting {
  const isRequired = (field: { readonly samples: number }) => field.samples === samples;
  return {
    ...known,
    columnTypes: new Map(columns.map(({ name, type }) => [name, type])),
    requiredFields: fields.filter(isRequired).map(({ name }) => name),
    optionalFields: fields.filter((field) => !isRequired(field)).map(({ name }) => name),
    hasClasses: classes.length > 0,
    source: source ?? null,
    storage,
    decode: check === 'decode',
    maxSampleBytes,
  };
}

async function repairAll(
  pool: RepairPool,
  shards: readonly DatasetShard[],
  faulty: ReadonlySet<number>,
): Promise<ReadonlyMap<number, RepairedShard>> {
  const repaired: RepairAnswer[] = [];
  const numbers = [...faulty].sort((a, b) => a - b);
  await pool.run(
    numbers.map((number) => ({ type: 'repair', number, shard: shards[number]! })),
    (answer) => repaired.push(answer as RepairAnswer),
    () => undefined,
  );
  repaired.sort((a, b) => a.number - b.number);
  return new Map(repaired.map(({ number, repaired: shard }) => [number, shard]));
}

function reportOf(
  shards: readonly DatasetShard[],
  repaired: ReadonlyMap<number, RepairedShard>,
  { isWhole, ...classes }: { readonly isWhole: boolean } & Pick<RepairReport, 'lostClasses' | 'unprovenClasses'>,
): RepairReport {
  const done = [...repaired];
  const total = (count: (shard: RepairedShard) => number) => done.reduce((sum, [, shard]) => sum + count(shard), 0);
  const removedShards = total(({ record }) => (record === null ? 1 : 0));
  const untouched = shards.reduce((sum, { record }, number) => sum + (repaired.has(number) ? 0 : record!.samples), 0);
  return {
    shards: shards.length - removedShards,
    samples: untouched + total(({ record }) => record?.samples ?? 0),
    repairedShards: done.length - removedShards,
    removedShards,
    newManifest: !isWhole,
    takenOut: total(({ takenOut }) => takenOut.length),
    restored: total(({ restored }) => restored),
    unproven: total(({ unproven }) => unproven.length),
    lostColumns: done.flatMap(([number, { lostColumns }]) =>
      lostColumns.map((name) => `${shards[number]!.name}: ${name}`),
    ),
    ...classes,
  };
}

/** Returns the manifest's record of an intact shard, and the totals of its index. */
async function recordOf(
  { record, indexPath, path }: DatasetShard,
  otherIndexes: readonly OtherIndex[],
): Promise<ShardRecord> {
  const index = await readShardIndex(indexPath!, { parts: ['fields', 'cls', 'bytes'] });
  const { file, bytes, crc32 } = record!;
  const md5 = otherIndexes.includes('wids') ? md5OfFile(path) : null;
  return recordOfIndex({ file, bytes, crc32: Number.parseInt(crc32, 16), md5 }, index);
}
