import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { OptionError, option, sentence, sortByCodePoint } from '@shardtool/base';
import { readManifest } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import type { CheckedOptions } from '../options.js';
import { addClasses } from '../plan/classes.js';
import { checkSource } from '../source/folder/scan.js';
import { type PackRequest, packOne } from './pack-one.js';
import type { PackReport } from './report.js';

/** Usual names of splits. */
const NAMES = new Set(['train', 'training', 'val', 'valid', 'validation', 'dev', 'eval', 'test', 'testing']);

/**
 * Packs `train`, `val` and other splits in a folder, each to its own dataset below the output, all with the combined
 * list of classes. Throws {@link OptionError} if there is no such folder, and the errors of a pack unchanged.
 */
export async function packSplits({ source, output, options }: PackRequest): Promise<PackReport> {
  const given = (['labels', 'coco', 'files'] as const).find((name) => options[name] !== undefined);
  if (given !== undefined) {
    const message = sentence`The option ${option(given)} applies to one dataset, but ${option('splits')} makes several; pack each folder separately, with the same ${option('classes')}.`;
    throw new OptionError({}, message);
  }
  const names = splitsIn(source);
  const requests = names.map((name) => ({ source: join(source, name), output: below(output, name), options }));
  // YOLO's files contain the classes of all splits.
  const isKnown = options.yolo !== undefined;
  const { classes, emptyFolders } =
    options.classes !== undefined || isKnown
      ? { classes: options.classes, emptyFolders: [] }
      : await classesOfAll(requests);
  const splits: { name: string; report: PackReport }[] = [];
  for (const [i, name] of names.entries()) {
    const report = await packOne({ ...requests[i]!, options: withClasses(options, classes) });
    splits.push({ name, report });
  }
  return { ...sumOf(splits), emptyFolders, splitSidecars: splitSidecars(source, names) };
}

function withClasses(options: CheckedOptions, classes: CheckedOptions['classes']): CheckedOptions {
  return classes === undefined ? options : { ...options, classes, given: [...options.given, 'classes'] };
}

/** Files and folders next to the splits, which are in none of them. */
function splitSidecars(source: string, names: readonly string[]): string[] {
  return sortByCodePoint(readdirSync(source).filter((name) => !name.startsWith('.') && !names.includes(name)));
}

function splitsIn(source: string): string[] {
  if (isRemote(source))
    throw new OptionError(
      {},
      sentence`The option ${option('splits')} is for folders; pack each split of a bucket separately.`,
    );
  checkSource(source);
  // Packing a dangling link reports the error.
  const folders = readdirSync(source).filter(
    (name) => !name.startsWith('.') && (statSync(join(source, name), { throwIfNoEntry: false })?.isDirectory() ?? true),
  );
  const names = folders.filter((name) => NAMES.has(name.toLowerCase()));
  if (names.length > 0) return sortByCodePoint(names);
  const there =
    folders.length === 0 ? 'no folder' : `${folders.slice(0, 5).join(', ')}${folders.length > 5 ? ', ...' : ''}`;
  const message = sentence`The option ${option('splits')} packs the folders train, val and test, but ${source} has ${there}; remove the option, or rename the folders.`;
  throw new OptionError({ path: source }, message);
}

/** Classes of all splits; undefined if there are none. */
interface SplitClasses {
  readonly classes: string[] | undefined;
  /** Folders that are not a class in any split. */
  readonly emptyFolders: readonly string[];
}

/** Finds the classes of all splits by planning each. Classes of existing datasets keep their numbers. */
async function classesOfAll(requests: readonly PackRequest[]): Promise<SplitClasses> {
  const found = new Set<string>();
  const empty = new Set<string>();
  let fromLabels = false;
  let before: readonly string[] = [];
  for (const request of requests) {
    const report = await packOne({ ...request, options: { ...request.options, ...PLAN_ONLY } });
    for (const cls of report.classes) found.add(cls);
    for (const folder of report.emptyFolders) empty.add(folder);
    fromLabels ||= report.metadata !== null;
    if (!request.options.append) continue;
    // If it cannot be read, adding to it reports the error.
    const manifest = await readManifest(request.output).catch(() => null);
    const there = manifest?.classes.map((cls) => cls.name) ?? [];
    if (there.length > before.length) before = there;
  }
  const all = addClasses(before, [...found], fromLabels);
  const emptyFolders = sortByCodePoint([...empty].filter((folder) => !found.has(folder)));
  return { classes: all.length === 0 ? undefined : [...all], emptyFolders };
}

/** Plans a split from its files alone: nothing is written, and no earlier output is looked at. */
const PLAN_ONLY = {
  dryRun: true,
  given: [],
  onProgress: undefined,
  part: null,
  append: false,
  applyChanges: false,
  overwrite: false,
  restart: false,
  recheck: false,
  dedupe: false,
  requireLabels: false,
  check: 'header' as const,
  stripMetadata: false,
  resize: undefined,
  quality: undefined,
  imageFormat: undefined,
} as const;

/** A folder in the output, which may be a bucket. */
function below(output: string, name: string): string {
  return isRemote(output) ? `${output.replace(/\/*$/, '')}/${name}` : join(output, name);
}

function sumOf(splits: readonly { readonly name: string; readonly report: PackReport }[]): PackReport {
  const reports = splits.map(({ report }) => report);
  const [first] = reports;
  const sum = (
    count: keyof {
      [Name in keyof PackReport as PackReport[Name] extends number ? Name : never]: unknown;
    },
  ) => reports.reduce((total, report) => total + report[count], 0);
  return {
    ...first!,
    files: sum('files'),
    samples: sum('samples'),
    shards: sum('shards'),
    bytes: sum('bytes'),
    sourceBytes: sum('sourceBytes'),
    skippedFiles: sum('skippedFiles'),
    skipped: addUp(reports.map(({ skipped }) => skipped)),
    skippedAnnotations: addUp(reports.map(({ skippedAnnotations }) => skippedAnnotations)),
    skippedFolders: reports.flatMap(({ skippedFolders }) => skippedFolders),
    hiddenFolders: reports.flatMap(({ hiddenFolders }) => hiddenFolders),
    metaSamples: sum('metaSamples'),
    unlabelled: sum('unlabelled'),
    missingFiles: sum('missingFiles'),
    duplicates: sum('duplicates'),
    classConflicts: sum('classConflicts'),
    quarantined: sum('quarantined'),
    renamed: sum('renamed'),
    orientationBaked: sum('orientationBaked'),
    warnings: sum('warnings'),
    metadataKept: sum('metadataKept'),
    narrowed: sum('narrowed'),
    refused: sum('refused'),
    keptShards: sum('keptShards'),
    pendingShards: sum('pendingShards'),
    partialFields: [],
    crops: null,
    isCommitted: reports.every(({ isCommitted }) => isCommitted),
    wasCommitted: reports.every(({ wasCommitted }) => wasCommitted),
    splits,
  };
}

function addUp(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const one of counts) for (const [name, count] of Object.entries(one)) all[name] = (all[name] ?? 0) + count;
  return all;
}
