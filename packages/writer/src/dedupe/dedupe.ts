import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { makeFolder, writeAtomically } from '@shardtool/base';
import { DUPLICATES_FILE } from '../output/lists.js';
import type { Grouping } from '../plan/grouping.js';
import { OUTCOME } from '../plan/outcomes.js';
import type { PackPlan } from '../plan/plan-shards.js';
import type { ProgressTicker } from '../progress.js';
import type { QuarantinedFile } from '../shard/shard-job.js';
import type { SourceFiles } from '../source/source-files.js';
import { comparePacked, notePackedSizes } from './compare-packed.js';
import { DigestTable } from './digest-table.js';
import { EqualSizes } from './equal-sizes.js';
import type { Hasher } from './hash-files.js';
import type { ComparedBase } from './packed-images.js';

/** Images of a plan that occur more than once. */
export interface Duplicates {
  /** `OUTCOME.duplicate` for each image of the file table that has the bytes of another one. */
  readonly leftOut: Uint8Array;
  readonly count: number;
  /** Number of duplicates whose class differs from that of the image that is packed. */
  readonly classConflicts: number;
  /**
   * Adds to the list in the output folder: one JSON object per line, with the path and the image that is packed
   * instead.
   */
  write(output: string): Promise<void>;
  /** Deletes the temporary files next to the output folder. */
  close(): void;
}

/** A line of the list. The classes are present if they differ; null means no class. */
interface DuplicateLine {
  readonly path: string;
  readonly standsFor: string;
  /** Shard of the image that is packed instead, if it was already packed. */
  readonly shard?: string;
  readonly class?: string | null;
  readonly standsForClass?: string | null;
}

/**
 * Finds images with the same bytes, by sha256, in the order of their paths. The first one is packed instead of the
 * others; an image that the dataset `base` contains takes precedence. Intermediate data is on disk, in a folder next to
 * `output`. The caller must close the result.
 */
export async function findDuplicates(
  files: SourceFiles,
  plan: PackPlan,
  output: string,
  hasher: Hasher,
  ticker: ProgressTicker,
  base: ComparedBase | null,
): Promise<Duplicates> {
  makeFolder(dirname(resolve(output)));
  const folder = mkdtempSync(`${resolve(output)}.dedupe-`);
  const close = () => rmSync(folder, { force: true, recursive: true });
  try {
    const sizes = sizesOf(files);
    const equalSizes = new EqualSizes(imagesOf(plan.grouping), sizes);
    if (base !== null) await notePackedSizes(base, equalSizes);
    const candidates = equalSizes.candidates();
    const table = await DigestTable.create(join(folder, 'digests'));
    try {
      const bytes = candidates.reduce((sum, file) => sum + sizes[file]!, 0);
      ticker.begin('dedupe', candidates.length, bytes);
      await hasher.files(candidates, (hashed) => {
        table.add(hashed);
        if (base !== null) table.addSums(hashed, (file) => sizes[file]!);
      });
      if (base !== null) await comparePacked(base, equalSizes, table, hasher, ticker);
      const list = join(folder, DUPLICATES_FILE);
      const counts = await writeList(list, table, files, plan);
      return { ...counts, write: (target) => addToList(list, join(target, DUPLICATES_FILE)), close };
    } finally {
      await table.close();
    }
  } catch (error) {
    close();
    throw error;
  }
}

/** A resumed pack has already written the list, and a pack that adds to a dataset finds the list of earlier packs. */
async function addToList(list: string, target: string): Promise<void> {
  if (statSync(list).size === 0) return;
  const before = existsSync(target) ? readFileSync(target, 'utf8') : '';
  const known = new Set(linesOf(before).map(pairIn));
  const lines = linesOf(readFileSync(list, 'utf8')).filter((line) => !known.has(pairIn(line)));
  if (lines.length > 0) await writeAtomically(target, `${before}${lines.join('\n')}\n`);
}

/**
 * Duplicates that are not packed because the image that stands for them is among the bad ones, as entries for the quarantine.
 */
export function lostDuplicates(output: string, bad: readonly QuarantinedFile[]): QuarantinedFile[] {
  const list = join(output, DUPLICATES_FILE);
  if (bad.length === 0 || !existsSync(list)) return [];
  const reasons = new Map(bad.map(({ path, reason }) => [path, reason]));
  return linesOf(readFileSync(list, 'utf8')).flatMap((line) => {
    const { path, standsFor, shard } = JSON.parse(line) as DuplicateLine;
    const reason = shard === undefined ? reasons.get(standsFor) : undefined;
    if (reason === undefined) return [];
    return [{ path, standsFor, reason: `It has the bytes of ${standsFor}, which is not packed: ${reason}` }];
  });
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

/** The file, and the image packed instead: in a new shard, or meanwhile in a shard of the dataset. */
function pairIn(line: string): string {
  const { path, standsFor } = JSON.parse(line) as DuplicateLine;
  return JSON.stringify([path, standsFor]);
}

/** Numbers of the images, ascending. */
function imagesOf({ samples, fileStart, files }: Grouping): Uint32Array {
  return fileStart.subarray(0, samples).map((start) => files[start]!);
}

/** Sizes in bytes, by file number. */
function sizesOf(files: SourceFiles): Float64Array {
  const reader = files.reader();
  return Float64Array.from({ length: files.count }, (_, file) => reader.bytes(file));
}

/** Class of each image, by its file number. */
function classesOf(files: SourceFiles, plan: PackPlan): (file: number) => string | null {
  const numbers = new Int32Array(files.count).fill(-1);
  for (const [sample, image] of imagesOf(plan.grouping).entries()) numbers[image] = plan.cls[sample]!;
  return (file) => plan.classes[numbers[file]!] ?? null;
}

async function writeList(
  path: string,
  table: DigestTable,
  files: SourceFiles,
  plan: PackPlan,
): Promise<Pick<Duplicates, 'leftOut' | 'count' | 'classConflicts'>> {
  const leftOut = new Uint8Array(files.count);
  const reader = files.reader();
  const classOf = classesOf(files, plan);
  let count = 0;
  let classConflicts = 0;
  await pipeline(Readable.from(lines()), createWriteStream(path));
  return { leftOut, count, classConflicts };

  function* lines(): Generator<string> {
    for (const { file, standsFor } of table.duplicates()) {
      leftOut[file] = OUTCOME.duplicate;
      count++;
      const other =
        typeof standsFor === 'number'
          ? { standsFor: reader.path(standsFor), cls: classOf(standsFor) }
          : // Classes of the dataset keep their numbers.
            { standsFor: standsFor.source, shard: standsFor.shard, cls: plan.classes[standsFor.cls] ?? null };
      const { cls: standsForClass, ...names } = other;
      const classes = { class: classOf(file), standsForClass };
      const isConflict = classes.class !== classes.standsForClass;
      if (isConflict) classConflicts++;
      const paths = { path: reader.path(file), ...names };
      const line: DuplicateLine = isConflict ? { ...paths, ...classes } : paths;
      yield `${JSON.stringify(line)}\n`;
    }
  }
}
