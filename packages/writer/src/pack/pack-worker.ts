/** The worker thread of a pack: helps to measure the files, then writes whole shards. */
import { openSync } from 'node:fs';
import { report } from '../crew/crew-member.js';
import { answer, takeMessages } from '../crew/worker-jobs.js';
import {
  type HashedFiles,
  type HashJob,
  type HashPartsJob,
  hashFiles,
  hashFilesAhead,
  hashParts,
} from '../dedupe/hash-files.js';
import { asDiskFull } from '../disk-full.js';
import { OutputNotEmptyError } from '../errors.js';
import type { ImageStepOptions } from '../options.js';
import { isCommitted, planPath } from '../output/pack-state.js';
import { isAsNoted, noteShard, readShardNote, removeShardNote } from '../output/shard-note.js';
import { Naming, type NamingOptions } from '../plan/naming.js';
import { type PlanPlace, readShardPlan } from '../plan/plan-record.js';
import { decodeShardPlan } from '../plan/shard-plan.js';
import { createImageStep } from '../shard/image-step.js';
import { type LayoutChoice, layoutOfChoice } from '../shard/layout-choice.js';
import type { ImageLimits } from '../shard/pack-sample.js';
import { type CheckedShard, checkShard, type ShardResult, type ShardSetting, writeShard } from '../shard/shard-job.js';
import { type FlightSetting, InFlight } from '../source/in-flight.js';
import { type MeasureTurn, measureSlices } from '../source/measure.js';
import { BadFile, badFile } from '../source/source-file.js';
import { type SharedSourceFiles, SourceFiles } from '../source/source-files.js';
import { sourceKind } from '../source/source-kinds.js';

/** What {@link ShardSetting} is made of in each worker. */
export interface PackSetting extends Omit<ShardSetting, 'layout' | 'sample' | 'step' | 'flight' | 'access'> {
  readonly flight: FlightSetting | null;
  readonly layout: LayoutChoice;
  /** The source folder, with a "/" at its end. */
  readonly root: string;
  readonly naming: NamingOptions;
  readonly limits: ImageLimits;
  readonly step: ImageStepOptions;
  /** Of the plan, whose record lies in the output folder. */
  readonly digest: string;
  /** The files of shards that were finished earlier are read again. */
  readonly recheck: boolean;
  /** Nothing is written: there is no record of a plan. */
  readonly isCheck: boolean;
  /** Finished shards lie somewhere else; of those that are noted it was looked there whether they are as noted. */
  readonly isElsewhere: boolean;
  /** Others pack parts of the same plan, and may commit it. */
  readonly isPart: boolean;
}

/** Told to every worker before the jobs that need it. */
export type PackNews =
  | {
      readonly type: 'files';
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
  /** The bytes of `encodeShardPlan`. */
  | { readonly type: 'check'; readonly plan: Uint8Array<ArrayBuffer> };

/** A shard, what it is called, and where its plan stands in the record. */
export interface PlannedShard {
  readonly shard: number;
  readonly stem: string;
  readonly place: PlanPlace;
}

/** A shard that was written now, or earlier. */
export interface PackedShard extends ShardResult {
  readonly isKept: boolean;
}

/** Null where files were measured. */
export type PackResult = PackedShard | CheckedShard | HashedFiles | null;

/** The files to be measured, and hashed. */
let listing: { readonly root: string; readonly files: SourceFiles; readonly flight: InFlight | null } | null = null;
let session: Promise<Session> | undefined;

interface Session {
  readonly given: PackSetting;
  readonly setting: ShardSetting;
  /** The record of the plan, open. */
  readonly plan: number;
}

takeMessages((message: PackNews | PackJob) => {
  if (message.type === 'files') {
    const flight = message.flight && new InFlight(message.flight);
    listing = { root: message.root, files: new SourceFiles(message.files), flight };
  } else if (message.type === 'setting') {
    listing?.flight?.close();
    listing = null;
    session = open(message);
    session.catch(() => undefined);
  } else {
    void answer<PackResult>(() => work(message));
  }
});

function work(job: PackJob): PackResult | Promise<PackResult> {
  if (job.type === 'measure') return measure(job.turn);
  if (job.type === 'hash-parts') return hashParts(job, report);
  if (job.type === 'shard') return pack(job);
  if (job.type === 'check') return check(job.plan);
  const { root, files, flight } = listing!;
  if (flight === null) return hashFiles(root, files, job, report);
  return hashFilesAhead(root, files, job, flight, sourceKind(root).files(root), report);
}

async function open(given: PackSetting): Promise<Session> {
  const { layout: choice, root, step, limits, naming, flight, ...rest } = given;
  const layout = await layoutOfChoice(choice);
  const sample = { root, naming: new Naming(naming), imageOnly: layout.imageOnly ?? false, limits };
  const ahead = flight && new InFlight(flight);
  const access = sourceKind(root).files(root);
  const setting = { ...rest, layout, sample, step: await createImageStep(step), flight: ahead, access };
  return { given, setting, plan: given.isCheck ? NO_RECORD : openSync(planPath(given.output), 'r') };
}

const NO_RECORD = -1;

async function check(plan: Uint8Array<ArrayBuffer>): Promise<CheckedShard> {
  const { setting } = await session!;
  return await checkShard(decodeShardPlan(plan), setting, report);
}

/** Keeps a shard that is finished, or writes it and notes that down. */
async function pack({ shard, stem, place }: PlannedShard): Promise<PackedShard> {
  const { given, setting, plan: record } = await session!;
  const { output, digest } = given;
  const noted = readShardNote<ShardResult>(output, stem, digest);
  if (noted !== null) {
    if (given.isElsewhere || isAsNoted(noted, stem, setting, given.recheck)) return keep(noted, place, setting);
    removeShardNote(output, stem);
  }
  // Where all parts are finished, another one may have committed at this moment, and taken the note away.
  if (noted === null && given.isPart && isCommitted(output)) {
    throw new OutputNotEmptyError({ path: output }, `${output} was committed.`);
  }
  const plan = readShardPlan(record, place, planPath(output));
  const result = await writeShard({ shard, stem, plan }, setting, report);
  await noteShard(setting, stem, digest, result).catch((error) => {
    throw asDiskFull(error, output);
  });
  return { ...result, isKept: false };
}

/** What an earlier pack put into quarantine ends one that stops at bad files. */
function keep(noted: ShardResult, { files, sourceBytes }: PlanPlace, { onBad }: ShardSetting): PackedShard {
  const [bad] = noted.quarantined;
  if (bad !== undefined && onBad === 'stop') throw badFile(new BadFile(bad.reason), bad.path);
  report(files, sourceBytes);
  return { ...noted, isKept: true };
}

function measure(turn: MeasureTurn): null {
  const { root, files } = listing!;
  for (const measured of measureSlices(root, files, turn)) report(measured, 0);
  return null;
}
