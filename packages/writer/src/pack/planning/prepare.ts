import { resolve } from 'node:path';
import { countOf, OptionError, option, type Sentence, sentence } from '@shardtool/base';
import { isRemote, shownLocation } from '@shardtool/storage';
import { type Duplicates, findDuplicates } from '../../dedupe/dedupe.js';
import { NoImagesError } from '../../errors.js';
import { changesBytes } from '../../options.js';
import { Naming } from '../../plan/naming.js';
import { OUTCOME } from '../../plan/outcomes.js';
import type { PlanFacts } from '../../plan/plan-record.js';
import { entryBytes, type PackPlan, planShards } from '../../plan/plan-shards.js';
import { type Provenance, packCommand } from '../../plan/provenance.js';
import { type FileLabels, type ShardPlan, shardPlanOf } from '../../plan/shard-plan.js';
import type { Labels } from '../../source/labels/labels.js';
import { BadFile, badFile, readSourceFile } from '../../source/source-file.js';
import type { SourceFiles } from '../../source/source-files.js';
import { hasherOf } from '../workers/pack-workers.js';
import type { PrepareWork } from '../workers/work.js';
import { findTakenKeys } from './base-dataset.js';
import { baseFacts, factsOf } from './plan-facts.js';
import { recordedOptions } from './recorded-options.js';
import {
  checkAllLabelled,
  checkPlannedBad,
  missingFiles,
  oddAnnotations,
  plannedQuarantine,
  skippedFiles,
} from './skipped.js';
import { listChanges } from './source-changes.js';
import { type Survey, surveySource } from './survey.js';

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
 * Finds, measures and plans the files to pack; for a growing dataset, only the new ones. Throws if any input is
 * invalid.
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
    const list = () =>
      base === null || packed === null
        ? null
        : listChanges(
            base,
            {
              root,
              files,
              packed: packed.samples,
              labels,
              ownFiles: labels ? ownFiles(files, root, labels) : new Set(),
            },
            options,
          );
    let found = options.applyChanges ? await list() : null;
    if (options.applyChanges && found?.changes?.gone === base?.manifest.samples) refuseOtherSource(source.location);
    for (const file of found?.again ?? []) packed!.marks[file] = 0;
    const planOptions = {
      ...options,
      classes: survey.classes,
      labels: labels && {
        rowOfFile: labels.rowOfFile,
        cls: labels.table.cls,
        textBytes: textBytesOf(labels.table),
        ownFiles: ownFiles(files, root, labels),
      },
      base:
        base && packed ? { classes: base.manifest.classes.map(({ name }) => name), packed: packed.marks } : undefined,
    };
    const whole = planShards(files, planOptions);
    if (whole.order.length === 0 && base === null) refuseEmpty(source.location, files, options.primary);
    const naming = new Naming(options);
    if (options.onBad === 'raise') refuseUnreadable(root, files, whole);
    const compared = changesBytes(options) || base === null ? null : { ...base, primary: options.primary };
    if (options.dedupe) {
      workers.chooseFor({ shards: whole.shards, files: whole.grouping.files.length, bytes: whole.sourceBytes });
      duplicates = await findDuplicates(files, whole, output, hasherOf(workers), ticker, compared);
    }
    let plan = duplicates === null ? whole : planShards(files, { ...planOptions, leftOut: duplicates.leftOut });
    const taken =
      base === null ? [] : await findTakenKeys(base, shardPlans(files, plan, labels), naming, found?.replaced);
    if (taken.length > 0) {
      if (options.onBad === 'raise') throw taken[0]!.error;
      const leftOut = duplicates?.leftOut ?? new Uint8Array(files.count);
      const reader = files.reader();
      for (const { path } of taken) leftOut[reader.find(path)] = OUTCOME.collides;
      plan = planShards(files, { ...planOptions, leftOut });
    }
    const provenance = provenanceOf(work);
    const shards = () => shardPlans(files, plan, labels, provenance);
    const known = new Set(base?.quarantined.filter(({ standsFor }) => standsFor === undefined).map(({ path }) => path));
    const missing = missingFiles(labels, survey.missingRows);
    const quarantined = [
      ...survey.refused,
      ...plannedQuarantine(files, plan),
      ...(options.allowMissingFiles ? [] : missing),
      ...taken.map(({ path, error }) => ({ path, reason: error.message })),
    ].filter(({ path }) => !known.has(path));
    await checkPlannedBad(work, quarantined, plan.order.length);
    if (options.requireLabels) checkAllLabelled(files, plan, labels);
    // An append that is refused does not change the list of an earlier append.
    found ??= await list();
    const planned = factsOf(work, survey, plan, duplicates);
    const facts = {
      options: await recordedOptions(options, base),
      ...planned,
      ...(quarantined.length > 0 && { quarantined }),
      ...(found?.changes !== undefined && { changes: found.changes }),
      ...(found != null && found.unlisted > 0 && { unlistedMissing: found.unlisted }),
      ...(found?.replaced !== undefined && { replaced: found.replaced }),
    };
    return {
      facts: base === null ? facts : { ...facts, base: baseFacts(base, options.name) },
      shardCount: plan.shards,
      shards,
      duplicates,
      skipped: () => [
        ...skippedFiles(files, plan),
        ...(options.allowMissingFiles ? missing : []),
        ...oddAnnotations(labels?.table ?? null),
      ],
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** The origin that all samples of the pack have in common; undefined without the option `provenance`. */
function provenanceOf({ source, output, options, destination }: PrepareWork): Provenance | null {
  if (options.provenance.length === 0) return null;
  const to = destination?.isElsewhere ? destination.location : output;
  const optionOf = (name: string) => {
    const value = options[name as keyof typeof options];
    return typeof value === 'string' && isRemote(value) ? shownLocation(value) : value;
  };
  return {
    facts: options.provenance,
    root: shownLocation(source.root),
    ingested: new Date().toISOString(),
    command: packCommand(shownLocation(source.location), shownLocation(to), options.given, optionOf),
  };
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

/** Numbers of the labels files that are among the source files. */
function ownFiles(files: SourceFiles, root: string, { table, own }: FileLabels): ReadonlySet<number> {
  const path = isRemote(table.location) ? table.location : resolve(table.location);
  const file = path.startsWith(root) ? files.reader().find(path.slice(root.length)) : -1;
  return new Set([...(own ?? []), ...(file === -1 ? [] : [file])]);
}

function* shardPlans(
  files: SourceFiles,
  plan: PackPlan,
  labels: FileLabels | null,
  provenance: Provenance | null = null,
): Generator<ShardPlan> {
  for (let shard = 0; shard < plan.shards; shard++) yield shardPlanOf(files, plan, labels, provenance, shard);
}

/**
 * A source without any file of the dataset is more likely a folder that is not mounted, or one with only new files,
 * than a source that lost all files.
 */
function refuseOtherSource(source: string): never {
  const message = sentence`The source ${source} contains no file of the dataset, so ${option('applyChanges')} would remove all samples; check the path, or remove the option to only add files.`;
  throw new OptionError({ path: source }, message);
}

function refuseEmpty(source: string, files: SourceFiles, primary: string | undefined): never {
  const wanted = primary === undefined ? 'image' : `file with the extension ${primary}`;
  const found = files.count === 0 ? 'no file' : `no ${wanted} among ${countOf(files.count, 'file')}`;
  const message = sentence`The source ${source} contains ${found} that can be packed; check the path, the patterns and the labels.${primary === undefined ? hintOnPrimary(files) : ''}`;
  throw new NoImagesError({ path: source }, message);
}

/** Extensions of files that are often packed without images, in the order in which they are suggested. */
const WITHOUT_IMAGES = ['npy', 'json', 'txt'] as const;

function hintOnPrimary(files: SourceFiles): Sentence | string {
  const reader = files.reader();
  const ends = new Set<string>();
  for (let file = 0; file < files.count; file++) ends.add(reader.path(file).split('.').at(-1)!.toLowerCase());
  const found = WITHOUT_IMAGES.find((extension) => ends.has(extension));
  return found === undefined ? '' : sentence` To pack samples without images, set ${option('primary', found)}.`;
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
