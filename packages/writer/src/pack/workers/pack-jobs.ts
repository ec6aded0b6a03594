/** Jobs of the workers of a pack: measuring files, then writing whole shards. */

import { closeSync, openSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { deferred } from '@shardtool/base';
import type { StorageOptions } from '@shardtool/storage';
import {
  type HashedFiles,
  type HashJob,
  type HashPartsJob,
  hashFiles,
  hashFilesAhead,
  hashParts,
} from '../../dedupe/hash-files.js';
import { asDiskFull } from '../../disk-full.js';
import { OutputNotEmptyError } from '../../errors.js';
import type { ImageStepOptions } from '../../options.js';
import { isCommitted, planPath } from '../../output/pack-state.js';
import { isAsNoted, noteShard, readShardNote, removeShardNote } from '../../output/shard-note.js';
import { Naming, type NamingOptions } from '../../plan/naming.js';
import { type PlanPlace, readShardPlan } from '../../plan/plan-record.js';
import { decodeShardPlan } from '../../plan/shard-plan.js';
import { createImageStep } from '../../shard/image-step.js';
import { type LayoutChoice, layoutOfChoice } from '../../shard/layout-choice.js';
import type { ImageLimits } from '../../shard/pack-sample.js';
import {
  type CheckedShard,
  checkShard,
  type Report,
  type ShardResult,
  type ShardSetting,
  writeShard,
} from '../../shard/shard-job.js';
import { type FlightSetting, InFlight } from '../../source/ahead/in-flight.js';
import { type MeasureTurn, measureSlices } from '../../source/folder/measure.js';
import { BadFile, badFile } from '../../source/source-file.js';
import { type SharedSourceFiles, SourceFiles } from '../../source/source-files.js';
import { sourceKind } from '../../source/source-kinds.js';

/** From this each worker makes a {@link ShardSetting}. */
export interface PackSetting
  extends Omit<ShardSetting, 'layout' | 'sample' | 'step' | 'flight' | 'access' | 'yieldIfDue'> {
  readonly flight: FlightSetting | null;
  readonly layout: LayoutChoice;
  /** Source folder, with a trailing "/". */
  readonly root: string;
  readonly naming: NamingOptions;
  readonly limits: ImageLimits;
  /** True if the option `provenance` has `sha256`. */
  readonly isHashed: boolean;
  /** Options for requests to a remote source. */
  readonly storage?: StorageOptions | undefined;
  readonly step: ImageStepOptions;
  /** Digest of the plan, whose record is in the output folder. */
  readonly digest: string;
  /** True if the files of finished shards are read again. */
  readonly recheck: boolean;
  /** True if nothing is written: there is no record of a plan. */
  readonly isCheck: boolean;
  /** True if finished shards are stored elsewhere. Those with notes were already compared with their notes there. */
  readonly isElsewhere: boolean;
  /** True if others pack parts of the same plan, and may commit it. */
  readonly isPart: boolean;
}

/** Messages to all workers, sent before the jobs that need them. */
export type PackNews =
  | {
      readonly type: 'files';
      readonly storage?: StorageOptions | undefined;
      readonly root: string;
      readonly files: SharedSourceFiles;
      readonly flight: FlightSetting | null;
    }
  | ({ readonly type: 'setting' } & PackSetting);

export type PackJob =
  | { readonly type: 'measure'; readonly turn: MeasureTurn }
  | ({ readonly type: 'hash' } & HashJob)
  | ({ readonly type: 'hash-parts' } & HashPartsJob)
  | ({ readonly type: 'shard' } & PlannedShard)
  /** Checks the same shard without writing it. */
  | ({ readonly type: 'look' } & PlannedShard)
  /** The bytes of `encodeShardPlan`. */
  | { readonly type: 'check'; readonly plan: Uint8Array<ArrayBuffer> };

/** A shard, its name, and the position of its plan in the record. */
export interface PlannedShard {
  readonly shard: number;
  readonly stem: string;
  readonly place: PlanPlace;
}

/** A shard that was written now or earlier. */
export interface PackedShard extends ShardResult {
  readonly isKept: boolean;
}

/** A shard that was only checked. */
export interface LookedShard extends CheckedShard {
  readonly shard: number;
}

/** Null after files were measured. */
export type PackResult = PackedShard | LookedShard | CheckedShard | HashedFiles | null;

/** The files to measure and hash. */
interface Listing {
  readonly root: string;
  readonly storage: StorageOptions | undefined;
  readonly files: SourceFiles;
  readonly flight: InFlight | null;
}

interface Session {
  readonly given: PackSetting;
  readonly setting: ShardSetting;
  /** File descriptor of the plan's record. */
  readonly plan: number;
}

const NO_RECORD = -1;

/** A worker of a pack, in a worker thread or in the thread that packs. */
export class PackJobs {
  readonly #report: Report;
  readonly #yieldIfDue: ShardSetting['yieldIfDue'];
  #listing: Listing | null = null;
  #session: Promise<Session> | undefined;
  /** Settles when the last shard no longer needs this thread. */
  #written: Promise<void> = Promise.resolve();

  /** With `isShared` the thread also has other work, and the worker regularly yields to it. */
  constructor(report: Report, isShared: boolean) {
    this.#report = report;
    this.#yieldIfDue = isShared ? yieldAfter(YIELD_MS) : null;
  }

  take(news: PackNews): void {
    if (news.type === 'files') {
      this.#listing?.flight?.close();
      const flight = news.flight && new InFlight(news.flight);
      this.#listing = { root: news.root, storage: news.storage, files: new SourceFiles(news.files), flight };
      return;
    }
    this.close();
    this.#session = open(news, this.#yieldIfDue);
    this.#session.catch(() => undefined);
  }

  /** `free` is called when only the disk is waited for. */
  work(job: PackJob, free: () => void): PackResult | Promise<PackResult> {
    if (job.type === 'measure') return this.#measure(job.turn);
    if (job.type === 'hash-parts') return hashParts(job, this.#report);
    if (job.type === 'shard') return this.#packInTurn(job, free);
    if (job.type === 'look') return this.#look(job);
    if (job.type === 'check') return this.#check(job.plan);
    const { root, storage, files, flight } = this.#listing!;
    if (flight === null) return hashFiles(root, files, job, this.#report);
    return hashFilesAhead(root, files, job, flight, sourceKind(root).files(root, storage), this.#report);
  }

  /** Also stops watching for calls that hang, because a thread may then have other work. */
  close(): void {
    this.#listing?.flight?.close();
    this.#listing = null;
    void this.#session?.then(
      ({ plan, setting }) => {
        setting.flight?.close();
        if (plan !== NO_RECORD) closeSync(plan);
      },
      () => undefined,
    );
    this.#session = undefined;
  }

  #measure(turn: MeasureTurn): null {
    const { root, files } = this.#listing!;
    for (const measured of measureSlices(root, files, turn)) this.#report(measured, 0);
    return null;
  }

  async #check(plan: Uint8Array<ArrayBuffer>): Promise<CheckedShard> {
    const { setting } = await this.#session!;
    return await checkShard(decodeShardPlan(plan), setting, this.#report);
  }

  /** Finds the bad files of a shard. */
  async #look({ shard, place }: PlannedShard): Promise<LookedShard> {
    await this.#written;
    const { given, setting, plan: record } = await this.#session!;
    const plan = readShardPlan(record, place, planPath(given.output));
    return { shard, ...(await checkShard(plan, setting, this.#report)) };
  }

  /** Only one shard is in memory at a time. */
  async #packInTurn(job: PlannedShard, free: () => void): Promise<PackedShard> {
    const before = this.#written;
    const written = deferred();
    this.#written = written.promise;
    await before;
    try {
      return await this.#pack(job, () => {
        written.resolve();
        free();
      });
    } finally {
      written.resolve();
    }
  }

  /** Keeps a finished shard, or writes it and notes that it is finished. */
  async #pack({ shard, stem, place }: PlannedShard, whenFilled: () => void): Promise<PackedShard> {
    const { given, setting, plan: record } = await this.#session!;
    const { output, digest } = given;
    const noted = readShardNote<ShardResult>(output, stem, digest);
    if (noted !== null) {
      if (given.isElsewhere || isAsNoted(noted, stem, setting, given.recheck)) return this.#keep(noted, place, setting);
      removeShardNote(output, stem);
    }
    // If all parts are finished, another one may just have committed and removed the note.
    if (noted === null && given.isPart && isCommitted(output)) {
      throw new OutputNotEmptyError({ path: output }, `${output} was committed.`);
    }
    const plan = readShardPlan(record, place, planPath(output));
    // An upload must finish before the next shard starts.
    const free = given.isElsewhere ? undefined : whenFilled;
    const result = await writeShard({ shard, stem, plan }, setting, this.#report, free);
    await noteShard(setting, stem, digest, result).catch((error) => {
      throw asDiskFull(error, output);
    });
    return { ...result, isKept: false };
  }

  /** If bad files stop the pack, those quarantined by an earlier run stop it too. */
  #keep(noted: ShardResult, { files, sourceBytes }: PlanPlace, { onBad }: ShardSetting): PackedShard {
    const [bad] = noted.quarantined;
    if (bad !== undefined && onBad === 'raise') throw badFile(new BadFile(bad.reason), bad.path);
    this.#report(files, sourceBytes);
    return { ...noted, isKept: true };
  }
}

async function open(given: PackSetting, yieldIfDue: ShardSetting['yieldIfDue']): Promise<Session> {
  const { layout: choice, root, storage, step, limits, naming, isHashed, flight, ...rest } = given;
  const layout = await layoutOfChoice(choice);
  const sample = { root, naming: new Naming(naming), imageOnly: layout.imageOnly ?? false, limits, isHashed };
  const ahead = flight && new InFlight(flight);
  const access = sourceKind(root).files(root, storage);
  const pause = ahead === null ? yieldIfDue : yieldAfter(ANSWERS_MS);
  const setting = {
    ...rest,
    layout,
    sample,
    step: await createImageStep(step),
    flight: ahead,
    access,
    yieldIfDue: pause,
  };
  return { given, setting, plan: given.isCheck ? NO_RECORD : openSync(planPath(given.output), 'r') };
}

/** Maximum delay of other work of the thread, in milliseconds. */
const YIELD_MS = 5;
/** Delay in ms for answers of the file system, each of which lets another call start. */
const ANSWERS_MS = 1;

/** Returns a function that yields to other work if that has waited; null if it has not. */
function yieldAfter(maxMs: number): () => Promise<void> | null {
  let since = performance.now();
  return () => {
    if (performance.now() - since < maxMs) return null;
    return setImmediate().then(() => {
      since = performance.now();
    });
  };
}
