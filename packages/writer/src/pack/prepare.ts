import { countOf } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import { type Duplicates, findDuplicates } from '../dedupe/dedupe.js';
import { NoImagesError } from '../errors.js';
import { changesBytes } from '../options.js';
import type { BaseFacts, PlanFacts } from '../plan/plan-record.js';
import { type PackPlan, planShards } from '../plan/plan-shards.js';
import { type FileLabels, type ShardPlan, shardPlanOf } from '../plan/shard-plan.js';
import { BadFile, badFile, readSourceFile } from '../source/source-file.js';
import type { SourceFiles } from '../source/source-files.js';
import { type AppendBase, checkNewKeys, nextNumber } from './append.js';
import { recordedOptions } from './recorded-options.js';
import { type PrepareWork, type Survey, surveySource } from './survey.js';

/** Everything that is known before the first shard is written. */
export interface PreparedPack {
  readonly facts: PlanFacts;
  readonly shardCount: number;
  /** The plans of all shards, each made when it is asked for. */
  readonly shards: () => Iterable<ShardPlan>;
  /** Null where duplicates are packed as everything else. */
  readonly duplicates: Duplicates | null;
  /** Gives up what lies beside the output folder. Whoever has this prepared calls it, and asks for no shard afterwards. */
  readonly close: () => void;
}

/**
 * Finds, measures and plans what is to be packed; of a dataset that grows, what it does not have yet. Throws where
 * something of it is not as it should be.
 */
export async function prepare(work: PrepareWork): Promise<PreparedPack> {
  return await planSurvey(work, await surveySource(work));
}

/** Plans what was found, whose files {@link PreparedPack.close} closes, or an error here. */
export async function planSurvey(work: PrepareWork, survey: Survey): Promise<PreparedPack> {
  const { source, output, options, base, workers, ticker } = work;
  const { root, files, labels, packed } = survey;
  let duplicates: Duplicates | null = null;
  const close = () => {
    duplicates?.close();
    files.close();
  };
  try {
    const planOptions = {
      ...options,
      classes: survey.classes,
      labels: labels && { rowOfFile: labels.rowOfFile, cls: labels.table.cls },
      base: base && packed ? { classes: base.manifest.classes.map(({ name }) => name), packed } : undefined,
    };
    const whole = planShards(files, planOptions);
    if (whole.order.length === 0 && base === null) refuseEmpty(source, files.count);
    if (options.onBad === 'stop') refuseUnreadable(root, files, whole);
    const compared = changesBytes(options) ? null : base;
    if (options.dedupe) duplicates = await findDuplicates(files, whole, output, workers, ticker, compared);
    const plan = duplicates === null ? whole : planShards(files, { ...planOptions, leftOut: duplicates.leftOut });
    const shards = () => shardPlans(files, plan, labels);
    if (base !== null) await checkNewKeys(base, shards(), options.fields);
    const facts = { options: await recordedOptions(options, base), ...factsOf(survey, plan, duplicates) };
    return {
      // Of a dataset that grows, most files are those that it has.
      facts: base === null ? facts : { ...facts, skippedFiles: 0, base: baseFacts(base, options.name) },
      shardCount: plan.shards,
      shards,
      duplicates,
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function baseFacts({ manifest, quarantined }: AppendBase, name: string): BaseFacts {
  return { identity: manifest.identity, quarantined: quarantined.length, firstShard: nextNumber(manifest, name) };
}

function factsOf(survey: Survey, plan: PackPlan, duplicates: Duplicates | null) {
  const { root, digest, files, columnTypes, repeatedFolders, hiddenFolders } = survey;
  return {
    source: root,
    sourceDigest: digest,
    classes: plan.classes,
    columns: [...columnTypes].map(([name, type]) => ({ name, type })),
    samples: plan.order.length,
    files: plan.grouping.files.length,
    sourceBytes: plan.sourceBytes,
    shardBytes: plan.shardBytes,
    skippedFiles: files.count - plan.grouping.files.length,
    skippedFolders: repeatedFolders,
    hiddenFolders,
    duplicates: duplicates?.count ?? 0,
    classConflicts: duplicates?.classConflicts ?? 0,
  };
}

function* shardPlans(files: SourceFiles, plan: PackPlan, labels: FileLabels | null): Generator<ShardPlan> {
  for (let shard = 0; shard < plan.shards; shard++) yield shardPlanOf(files, plan, labels, shard);
}

function refuseEmpty(source: string, files: number): never {
  const found = files === 0 ? 'no file' : `no image among ${countOf(files, 'file')}`;
  const message = `The source ${source} holds ${found} that could be packed; check the path, the patterns and the labels.`;
  throw new NoImagesError({ path: source }, message);
}

/** A file that could not be measured ends the pack before it begins. */
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
