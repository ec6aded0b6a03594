import { resolve } from 'node:path';
import { countOf } from '@shardtool/base';
import { isRemote } from '@shardtool/storage';
import { type Duplicates, findDuplicates } from '../dedupe/dedupe.js';
import { NoImagesError } from '../errors.js';
import { changesBytes } from '../options.js';
import type { AppendBase } from '../output/append-base.js';
import { listBeforePack } from '../output/lists.js';
import { checkBadShare } from '../output/quarantine.js';
import { Naming } from '../plan/naming.js';
import { OUTCOME } from '../plan/outcomes.js';
import type { BaseFacts, PlanFacts } from '../plan/plan-record.js';
import { entryBytes, type PackPlan, planShards } from '../plan/plan-shards.js';
import { type FileLabels, type ShardPlan, shardPlanOf } from '../plan/shard-plan.js';
import type { QuarantinedFile } from '../shard/shard-job.js';
import { hasObjects, OBJECT_COUNTS } from '../source/bucket/objects.js';
import type { Labels } from '../source/labels/labels.js';
import { BadFile, badFile, readSourceFile } from '../source/source-file.js';
import type { SourceFiles } from '../source/source-files.js';
import { findTakenKeys, nextNumber } from './base-dataset.js';
import { foldersWithoutImages } from './class-folders.js';
import { recordedOptions } from './recorded-options.js';
import {
  checkAllLabelled,
  countOdd,
  countSkipped,
  missingFiles,
  oddAnnotations,
  plannedQuarantine,
  skippedFiles,
  unlabelledIn,
} from './skipped.js';
import { listChanges } from './source-changes.js';
import { type Survey, surveySource } from './survey.js';
import type { PrepareWork } from './work.js';
import { hasherOf } from './workers/pack-workers.js';

/** Everything that is known before the first shard is written. */
export interface PreparedPack {
  readonly facts: PlanFacts;
  readonly shardCount: number;
  /** Yields the plans of all shards, each made on request. */
  readonly shards: () => Iterable<ShardPlan>;
  /** Null if duplicates are packed like other images. */
  readonly duplicates: Duplicates | null;
  /** Yields the files that are in no sample because of what they are. */
  readonly skipped: () => Iterable<object>;
  /**
   * Deletes temporary files next to the output folder. The caller must call it, and must not request shards afterwards.
   */
  readonly close: () => void;
}

/**
 * Finds, measures and plans what is packed; for a growing dataset, only what it does not have yet. Throws if any input
 * is invalid.
 */
export async function prepare(work: PrepareWork): Promise<PreparedPack> {
  return await planSurvey(work, await surveySource(work));
}

/** Plans the files of a survey. They are closed by {@link PreparedPack.close}, or after an error here. */
export async function planSurvey(work: PrepareWork, survey: Survey): Promise<PreparedPack> {
  const { source, output, options, base, workers, ticker } = work;
  const { root } = source;
  const { files, labels, packed } = survey;
  let duplicates: Duplicates | null = null;
  const close = () => {
    duplicates?.close();
    files.close();
  };
  try {
    const planOptions = {
      ...options,
      classes: survey.classes,
      labels: labels && {
        rowOfFile: labels.rowOfFile,
        cls: labels.table.cls,
        textBytes: textBytesOf(labels.table),
        ownFiles: ownFiles(files, root, labels),
      },
      base: base && packed ? { classes: base.manifest.classes.map(({ name }) => name), packed } : undefined,
    };
    const whole = planShards(files, planOptions);
    if (whole.order.length === 0 && base === null) refuseEmpty(source.location, files.count);
    const naming = new Naming(options);
    if (options.onBad === 'raise') refuseUnreadable(root, files, whole);
    const compared = changesBytes(options) ? null : base;
    if (options.dedupe) {
      workers.chooseFor({ shards: whole.shards, files: whole.grouping.files.length, bytes: whole.sourceBytes });
      duplicates = await findDuplicates(files, whole, output, hasherOf(workers), ticker, compared);
    }
    let plan = duplicates === null ? whole : planShards(files, { ...planOptions, leftOut: duplicates.leftOut });
    const taken = base === null ? [] : await findTakenKeys(base, shardPlans(files, plan, labels), naming);
    if (taken.length > 0) {
      if (options.onBad === 'raise') throw taken[0]!.error;
      const leftOut = duplicates?.leftOut ?? new Uint8Array(files.count);
      const reader = files.reader();
      for (const { path } of taken) leftOut[reader.find(path)] = OUTCOME.collides;
      plan = planShards(files, { ...planOptions, leftOut });
    }
    const shards = () => shardPlans(files, plan, labels);
    const known = new Set(base?.quarantined.filter(({ standsFor }) => standsFor === undefined).map(({ path }) => path));
    const quarantined = [
      ...survey.refused,
      ...plannedQuarantine(files, plan),
      ...(options.allowMissingFiles ? [] : missingFiles(labels, survey.missingRows)),
      ...taken.map(({ path, error }) => ({ path, reason: error.message })),
    ].filter(({ path }) => !known.has(path));
    await checkPlannedBad(work, quarantined, plan.order.length);
    if (options.requireLabels) checkAllLabelled(files, plan, labels);
    const changes = base === null ? undefined : await listChanges(base, { root, files, labels }, options);
    const planned = factsOf(work, survey, plan, duplicates);
    const facts = {
      options: await recordedOptions(options, base),
      ...planned,
      ...(quarantined.length > 0 && { quarantined }),
      ...(changes !== undefined && { changes }),
    };
    return {
      facts: base === null ? facts : { ...facts, base: baseFacts(base, options.name) },
      shardCount: plan.shards,
      shards,
      duplicates,
      skipped: () => [
        ...skippedFiles(files, plan),
        ...(options.allowMissingFiles ? missingFiles(labels, survey.missingRows) : []),
        ...oddAnnotations(labels?.table ?? null),
      ],
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Size in a tar of the fields made from labels, by row. Their names are counted with the plan's. */
function textBytesOf({ path, texts }: Labels): Float64Array | undefined {
  if (texts === undefined) return undefined;
  const bytes = new Float64Array(path.length);
  for (const list of texts.values()) {
    list.forEach((text, row) => {
      bytes[row]! += entryBytes(Buffer.byteLength(text), 0);
    });
  }
  return bytes;
}

/** Throws TooManyBadError, after all bad files were written to a list, if there is a folder for it. */
async function checkPlannedBad(
  { output, options }: PrepareWork,
  quarantined: readonly QuarantinedFile[],
  samples: number,
): Promise<void> {
  if (quarantined.length === 0 || options.dryRun) return;
  try {
    const listed = 'them; no image was opened yet, and "--dry-run --check header" also finds bad images';
    checkBadShare(quarantined, samples + quarantined.length, options.maxBad, listed);
  } catch (error) {
    await listBeforePack(output, options.format, quarantined, []);
    throw error;
  }
}

/** Numbers of the labels files that are among the source files. */
function ownFiles(files: SourceFiles, root: string, { table, own }: FileLabels): ReadonlySet<number> {
  const path = isRemote(table.location) ? table.location : resolve(table.location);
  const file = path.startsWith(root) ? files.reader().find(path.slice(root.length)) : -1;
  return new Set([...(own ?? []), ...(file === -1 ? [] : [file])]);
}

function baseFacts({ manifest, quarantined }: AppendBase, name: string): BaseFacts {
  return { identity: manifest.identity, quarantined: quarantined.length, firstShard: nextNumber(manifest, name) };
}

/** For the column that counts objects: its maximum, if that of the growing dataset is known too. */
function maxObjects({ labels }: Survey, base: AppendBase | null, column: string): { readonly most?: number } {
  if (column !== OBJECT_COUNTS || labels === null || !hasObjects(labels.table)) return {};
  const before = base === null ? 0 : base.manifest.columns.find(({ name }) => name === OBJECT_COUNTS)?.most;
  if (before === undefined) return {};
  const counts = labels.table.columns.get(OBJECT_COUNTS) as readonly number[];
  return { most: counts.reduce((max, count) => Math.max(max, count), before) };
}

function factsOf(
  { source, options, base }: PrepareWork,
  survey: Survey,
  plan: PackPlan,
  duplicates: Duplicates | null,
) {
  const { digest, files, columnTypes, repeatedFolders, hiddenFolders, topFolders, labels } = survey;
  const skipped = countSkipped(files, plan);
  const unlabelled = unlabelledIn(plan);
  const isByFolder = survey.classes === null && (labels === null || labels.table.cls === null);
  const emptyFolders =
    isByFolder && base === null && plan.classes.length > 0
      ? foldersWithoutImages(files, plan, topFolders, new Naming(options))
      : [];
  return {
    source: source.root,
    sourceDigest: digest,
    classes: plan.classes,
    columns: [...columnTypes].map(([name, type]) => ({ name, type, ...maxObjects(survey, base, name) })),
    samples: plan.order.length,
    files: plan.grouping.files.length,
    sourceBytes: plan.sourceBytes,
    shardBytes: plan.shardBytes,
    skippedFiles: Object.values(skipped).reduce((sum, count) => sum + count, 0),
    skipped,
    skippedFolders: repeatedFolders,
    hiddenFolders,
    ...(emptyFolders.length > 0 && { emptyFolders }),
    ...(unlabelled > 0 && { unlabelled }),
    ...(options.allowMissingFiles && survey.missingRows.length > 0 && { missingFiles: survey.missingRows.length }),
    ...countOdd(labels?.table ?? null),
    duplicates: duplicates?.count ?? 0,
    classConflicts: duplicates?.classConflicts ?? 0,
  };
}

function* shardPlans(files: SourceFiles, plan: PackPlan, labels: FileLabels | null): Generator<ShardPlan> {
  for (let shard = 0; shard < plan.shards; shard++) yield shardPlanOf(files, plan, labels, shard);
}

function refuseEmpty(source: string, files: number): never {
  const found = files === 0 ? 'no file' : `no image among ${countOf(files, 'file')}`;
  const message = `The source ${source} contains ${found} that can be packed; check the path, the patterns and the labels.`;
  throw new NoImagesError({ path: source }, message);
}

/** A file that could not be measured stops the pack before it starts. */
function refuseUnreadable(root: string, files: SourceFiles, { grouping }: PackPlan): void {
  const reader = files.reader();
  const file = grouping.files.find((candidate) => reader.bytes(candidate) === -1);
  if (file === undefined) return;
  const path = reader.path(file);
  if (isRemote(root)) throw badFile(new BadFile(`${root}${path} cannot be read: there is no such file.`), path);
  try {
    readSourceFile(root + path, new Uint8Array(0));
  } catch (error) {
    throw error instanceof BadFile ? badFile(error, path) : error;
  }
}
