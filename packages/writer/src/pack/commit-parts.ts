import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readManifest, withSentences } from '@shardtool/format';
import { PACK_DEFAULTS } from '../options.js';
import type { PartialField } from '../output/commit.js';
import { namingPlace, openDestination } from '../output/destination.js';
import { LOCK_FILE, refuse, removeDeadLock, tryLock } from '../output/lock.js';
import { isCommitted, planPath } from '../output/pack-state.js';
import { countMissing, readAllNotes } from '../output/planned-shards.js';
import { type PlanHeader, readPlanHeader } from '../plan/plan-record.js';
import { completePack } from './complete-pack.js';

/** Of the lock that the process holds which commits. */
const COMMIT_LOCK = 'pack.commit.lock';
const LOOK_AGAIN_MS = 100;

export interface CommitOptions {
  /** The share of samples that may be bad. */
  readonly maxBad?: number | undefined;
}

/** What was committed. */
export interface CommitReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes. */
  readonly bytes: number;
  /** Images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  readonly partialFields: readonly PartialField[];
  /** The folder was a dataset already. */
  readonly wasCommitted: boolean;
}

/**
 * Commits the shards that parts have packed into the folder `output`, which the part that completes the set does by
 * itself. Throws PartsMissingError where some are not finished, TooManyBadError where more than `maxBad` of the samples
 * are bad, UnfinishedPackError where no pack was begun, OutputLockedError where a pack of the whole is at work.
 */
export async function commitParts(
  output: string,
  { maxBad = PACK_DEFAULTS.maxBad }: CommitOptions = {},
): Promise<CommitReport> {
  return withSentences(async () => {
    const destination = await openDestination(output, { part: 'commit', staging: undefined, signal: undefined });
    try {
      return await namingPlace(destination, async () => {
        await destination.fetch(false);
        const report = await commitAll(destination.folder, { maxBad });
        await destination.commit();
        return report;
      });
    } finally {
      await destination.close();
    }
  });
}

async function commitAll(output: string, { maxBad = PACK_DEFAULTS.maxBad }: CommitOptions): Promise<CommitReport> {
  const whole = join(output, LOCK_FILE);
  const held = removeDeadLock(whole);
  if (held !== null) refuse(whole, held.holder);
  const done = await commitOnce(output, maxBad, undefined);
  const { samples, shards, bytes, fields } = await readManifest(output);
  return {
    ...{ samples, shards: shards.length, bytes, quarantined: done?.quarantined ?? 0, wasCommitted: done === null },
    partialFields: fields.filter((field) => field.samples < samples),
  };
}

/** Commits where all parts are finished; says how many shards are not, and which fields not all samples have. */
export async function commitWhenComplete(
  output: string,
  header: PlanHeader,
  { maxBad, signal }: { readonly maxBad: number; readonly signal?: AbortSignal | undefined },
): Promise<{ readonly pendingShards: number; readonly partialFields: readonly PartialField[] }> {
  const pendingShards = isCommitted(output) ? 0 : countMissing(output, header);
  if (pendingShards > 0) return { pendingShards, partialFields: [] };
  const done = await commitOnce(output, maxBad, signal);
  return { pendingShards, partialFields: done?.partialFields ?? [] };
}

/** Of several processes, one commits and the others wait for it: they get null, as do all who come later. */
async function commitOnce(
  output: string,
  maxBad: number,
  signal: AbortSignal | undefined,
): Promise<{ readonly partialFields: readonly PartialField[]; readonly quarantined: number } | null> {
  while (!isCommitted(output)) {
    const lock = tryLock(join(output, COMMIT_LOCK));
    if (typeof lock !== 'function') {
      await sleep(LOOK_AGAIN_MS, undefined, { signal });
      continue;
    }
    try {
      if (isCommitted(output)) return null;
      const header = await openPlan(output);
      const results = await readAllNotes(output, header, maxBad);
      const quarantined = results.reduce((sum, result) => sum + result.quarantined.length, 0);
      return { partialFields: await completePack(output, header, results), quarantined };
    } finally {
      lock();
    }
  }
  return null;
}

async function openPlan(output: string): Promise<PlanHeader> {
  try {
    return readPlanHeader(planPath(output));
  } catch (error) {
    // Says that the folder is no dataset, and that its pack did not end.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') await readManifest(output);
    throw error;
  }
}
