import { randomUUID } from 'node:crypto';
import { linkSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Lock, makeFolder, NO_LINKS, option, sentence, tryLock } from '@shardtool/base';
import type { WrittenLayout } from '@shardtool/format';
import { asDiskFull } from '../../disk-full.js';
import { PlanChangedError } from '../../errors.js';
import { LockWait } from '../../folder-lock.js';
import type { Destination } from '../../output/destination.js';
import { SKIPPED_FILE, writeListFile } from '../../output/lists.js';
import type { OutputFolder } from '../../output/output-folder.js';
import { findPlan, isCommitted, planPath, STATE_FOLDER } from '../../output/pack-state.js';
import { plannedTarget, stemsOf } from '../../output/planned-shards.js';
import { changedOptions, changedSource } from '../../plan/plan-changes.js';
import { encodePlan, type PlanHeader, readPlanHeader, writePlanRecord } from '../../plan/plan-record.js';
import type { PreparedPack } from './prepare.js';
import { madeFrom } from './recorded-options.js';

/** Name of the lock that one part holds while it plans for all of them. */
const PLAN_LOCK = 'pack.plan.lock';
const LOOK_AGAIN_MS = 200;

/**
 * Returns the plan in the folder, or the one that `make` makes: the first part makes it, and the others wait. Null if
 * the folder has become a dataset meanwhile.
 */
export async function sharedPlan(
  output: string,
  make: () => Promise<PlanHeader>,
  signal: AbortSignal | undefined,
): Promise<{ readonly header: PlanHeader; readonly isMine: boolean } | null> {
  const wait = new LockWait(LOOK_AGAIN_MS, signal);
  for (;;) {
    const header = findPlan(output);
    if (header !== null) return { header, isMine: false };
    if (isCommitted(output)) return null;
    const lock = tryLock(join(output, PLAN_LOCK));
    if (lock instanceof Lock) {
      try {
        if (findPlan(output) === null && !isCommitted(output)) return { header: await make(), isMine: true };
      } finally {
        lock.release();
      }
    } else {
      await wait.pause(lock);
    }
  }
}

/**
 * Announces the shards of a new plan and writes its record to the folder, where all parts find it. Throws {@link
 * PlanChangedError} if another plan was written first.
 */
export async function publishPlan(
  folder: OutputFolder,
  destination: Destination,
  layout: WrittenLayout,
  pack: PreparedPack,
): Promise<PlanHeader> {
  const path = planPath(folder.path);
  const mine = `${path}.${randomUUID()}`;
  try {
    makeFolder(join(folder.path, STATE_FOLDER));
    const header = writePlanRecord(mine, pack.facts, pack.shards());
    if (header.base !== undefined) folder.keepNoted();
    await folder.announce(layout, stemsOf(header), plannedTarget(header).index, madeOf(header));
    // A pack that resumes with this plan does not search for them again.
    await writeListFile(folder.path, SKIPPED_FILE, pack.skipped());
    place(mine, path);
    await destination.placePlan(path);
    const placed = readPlanHeader(path);
    if (placed.digest !== header.digest) checkPlan(folder.path, placed, pack);
    return header;
  } catch (error) {
    throw asDiskFull(error, folder.path);
  } finally {
    rmSync(mine, { force: true });
  }
}

/** What the note records about the shards of a plan. A growing dataset has its options recorded already. */
function madeOf(header: PlanHeader): { madeFrom: string | undefined; options?: Record<string, unknown> } {
  const noted = { madeFrom: madeFrom(header) };
  return header.base === undefined ? { ...noted, options: { ...header.options } } : noted;
}

/** Announces the shards of a plan found in the folder, if that was not done. */
export async function announceFound(
  folder: OutputFolder,
  destination: Destination,
  layout: WrittenLayout,
  header: PlanHeader,
): Promise<void> {
  await folder.announcePlanned(layout, stemsOf(header), plannedTarget(header).index, madeOf(header));
  await destination.sendNotes();
}

/** Gives a file its name, unless that name already exists. */
function place(file: string, name: string): void {
  try {
    linkSync(file, name);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (NO_LINKS.has(code)) renameSync(file, name);
    else if (code !== 'EEXIST') throw error;
  }
}

/** Throws {@link PlanChangedError} if the plan in the folder has other options, and names them. */
export function checkPlannedOptions(
  output: string,
  header: PlanHeader,
  options: PreparedPack['facts']['options'],
): void {
  const change = changedOptions(header.options, options);
  if (change !== null) throw changed(output, change);
}

/**
 * Throws {@link PlanChangedError} if the plan in the folder differs from that of `pack`, and names what has changed.
 */
export function checkPlan(output: string, header: PlanHeader, { facts, shards }: PreparedPack): void {
  checkPlannedOptions(output, header, facts.options);
  if (encodePlan(facts, shards()).digest === header.digest) return;
  throw changed(output, changedSource(header, planPath(output), facts, shards()));
}

function changed(output: string, what: string): PlanChangedError {
  return new PlanChangedError(
    { path: output },
    sentence`The output folder ${output} contains an unfinished pack, and ${what}; use the same source and options as before, or discard its output and start again with ${option('restart')}.`,
  );
}
