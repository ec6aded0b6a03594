import { join } from 'node:path';
import { CALL_OPTIONS, checkCallOptions, checkLocation, type OptionTable, withMessages } from '@shardtool/base';
import { type Manifest, readManifest } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { lostDuplicates } from '../dedupe/dedupe.js';
import { type HeldOutput, LOCK_FILE, refuseHeld } from '../folder-lock.js';
import { PACK_DEFAULTS } from '../options.js';
import type { AppendBase } from '../output/append-base.js';
import { commitDataset, type PartialField } from '../output/commit.js';
import { commitOnce } from '../output/commit-once.js';
import { atDestination, type Destination, openDestination } from '../output/destination.js';
import { isCommitted, planPath, removeState } from '../output/pack-state.js';
import { readPartNotes } from '../output/part-notes.js';
import { countMissing, plannedTarget, readAllNotes } from '../output/planned-shards.js';
import { writeQuarantine } from '../output/quarantine.js';
import { type PlanHeader, readPlanHeader } from '../plan/plan-record.js';
import { joinParts } from '../samples/join-parts.js';
import type { ShardResult } from '../shard/shard-job.js';

export interface CommitOptions {
  /** Numbers of the parts, if they were written as `1/*`, `2/*` and so on. */
  readonly parts?: readonly number[] | undefined;
  /** Share of samples that may be bad. */
  readonly maxBad?: number | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Ends the call with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const COMMIT_OPTIONS = {
  parts: { kind: 'own', type: 'number[]', must: 'is a list of different whole numbers from 1 on', help: 'The parts' },
  maxBad: { kind: 'share', default: PACK_DEFAULTS.maxBad, help: 'Share of bad samples' },
  signal: CALL_OPTIONS.signal,
  storage: CALL_OPTIONS.storage,
} as const satisfies OptionTable;

/** Result of committing. */
export interface CommitReport {
  readonly samples: number;
  readonly shards: number;
  /** Size of all shards in bytes. */
  readonly bytes: number;
  /** Number of images that could not be packed; quarantine.jsonl lists them. */
  readonly quarantined: number;
  readonly partialFields: readonly PartialField[];
  /** True if the folder already was a dataset. */
  readonly wasCommitted: boolean;
}

/**
 * Commits the shards that parts of a pack, or of a {@link Writer}, have written to the folder `output`. The part that
 * completes the set does this itself. Throws PartsMissingError if some shards are not finished, TooManyBadError if more
 * than `maxBad` of the samples are bad, UnfinishedPackError if no pack was started, and OutputLockedError if a pack of
 * the whole dataset is running.
 */
export async function commitParts(output: string, options: CommitOptions = {}): Promise<CommitReport> {
  checkLocation('commitParts', output);
  const { maxBad } = checkCallOptions('commitParts', COMMIT_OPTIONS, options, { parts: areParts });
  const { signal, storage, parts } = options;
  signal?.throwIfAborted();
  return withMessages(async () => {
    const opened = await openDestination(output, { part: 'commit', staging: undefined, signal, storage });
    return atDestination(opened, async (destination) => {
      await destination.fetch(false);
      signal?.throwIfAborted();
      const report = await commitAll(destination, maxBad, parts);
      await destination.commit();
      return report;
    });
  });
}

function areParts(value: unknown): boolean {
  if (!Array.isArray(value) || new Set(value).size < value.length) return false;
  return value.every((number) => Number.isSafeInteger(number) && number >= 1);
}

async function commitAll(
  destination: Destination,
  maxBad: number,
  parts: readonly number[] | undefined,
): Promise<CommitReport> {
  const output = destination.folder;
  refuseHeld(join(output, LOCK_FILE));
  const commit = async (lock: HeldOutput) =>
    readPartNotes(output).length === 0
      ? commitPlan(output, lock, maxBad)
      : { partialFields: await joinParts(destination, lock, parts), quarantined: 0 };
  const done = await commitOnce(output, commit, undefined);
  const { samples, shards, bytes, fields } = await readManifest(output);
  return {
    samples,
    shards: shards.length,
    bytes,
    quarantined: done?.quarantined ?? 0,
    wasCommitted: done === null,
    partialFields: fields.filter((field) => field.samples < samples),
  };
}

/**
 * Commits if all parts are finished. Returns the number of unfinished shards, and the fields that not all samples have.
 */
export async function commitWhenComplete(
  output: string,
  header: PlanHeader,
  { maxBad, signal }: { readonly maxBad: number; readonly signal?: AbortSignal | undefined },
): Promise<{ readonly pendingShards: number; readonly partialFields: readonly PartialField[] }> {
  const pendingShards = isCommitted(output) ? 0 : countMissing(output, header);
  if (pendingShards > 0) return { pendingShards, partialFields: [] };
  const done = await commitOnce(output, (lock) => commitPlan(output, lock, maxBad), signal);
  return { pendingShards, partialFields: done?.partialFields ?? [] };
}

interface CompletedPack {
  readonly partialFields: readonly PartialField[];
  /** Images of this pack that quarantine.jsonl lists. */
  readonly quarantined: number;
}

/** Makes the shards of the plan in the folder a dataset. */
async function commitPlan(output: string, lock: HeldOutput, maxBad: number): Promise<CompletedPack> {
  const header = await openPlan(output);
  return completePack(output, lock, header, await readAllNotes(output, header, maxBad));
}

/**
 * Makes a dataset of all shards of a plan, in order. With `base`, adds them to the shards of `base` that remain. Then removes the files
 * that only a running pack needs.
 */
export async function completePack(
  output: string,
  lock: HeldOutput,
  header: PlanHeader,
  results: readonly ShardResult[],
  base: AppendBase | null = null,
  left: Manifest | undefined = base?.manifest,
): Promise<CompletedPack> {
  const { format, index: otherIndexes } = plannedTarget(header);
  const bad = [...(header.quarantined ?? []), ...results.flatMap(({ quarantined }) => quarantined)];
  const quarantined = [...bad, ...lostDuplicates(output, bad)];
  // Duplicates of bad images were examined again: see `findPacked`.
  const earlier = base?.quarantined.filter(({ standsFor }) => standsFor === undefined) ?? [];
  await writeQuarantine(output, [...earlier, ...quarantined]);
  const { classes, columns } = header;
  const facts = { format, classes, columns, otherIndexes, lock, base: left, replaces: base?.manifest };
  const partialFields = await commitDataset(output, results, facts);
  removeState(output);
  return { partialFields, quarantined: quarantined.length };
}

async function openPlan(output: string): Promise<PlanHeader> {
  try {
    return readPlanHeader(planPath(output));
  } catch (error) {
    // Reports that the folder is not a dataset, and that its pack did not end.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') await readManifest(output);
    throw error;
  }
}
