import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from '@shardtool/base';
import { type FieldColumns, imageColumn, type ShardIndex } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import { type CheckedOptions, changesBytes } from '../options.js';
import { type AppendBase, readBaseIndex } from '../output/append-base.js';
import { CHANGED_FILE, writeListFile } from '../output/lists.js';
import { Naming } from '../plan/naming.js';
import type { SourceChanges } from '../plan/plan-record.js';
import type { FileLabels } from '../plan/shard-plan.js';
import { matchingNames } from '../source/bucket/scan-bucket.js';
import { sortByCodePoint } from '../source/file-table.js';
import type { FileReader, SourceFiles } from '../source/source-files.js';

/** A line of changed.jsonl. */
interface ChangedFile {
  /** Path below the source. */
  readonly path: string;
  readonly what: 'changed' | 'gone' | 'relabelled';
  readonly reason: string;
}

/** The current source of a pack that adds to a dataset. */
interface SourceNow {
  /** Prefix of every path. */
  readonly root: string;
  readonly files: SourceFiles;
  readonly labels: FileLabels | null;
}

/**
 * Lists and counts the images of a dataset whose files were changed or deleted since they were packed, and those whose
 * labels now differ from the dataset. Files are not read, so a changed file with the same size and an older time is not
 * detected.
 */
export async function listChanges(
  base: AppendBase,
  source: SourceNow,
  options: CheckedOptions,
): Promise<SourceChanges | undefined> {
  const count = { changed: 0, gone: 0, relabelled: 0 };
  let first: string | undefined;
  async function* counted(): AsyncGenerator<ChangedFile> {
    for await (const file of changedFiles(base, source, options)) {
      count[file.what]++;
      first ??= file.path;
      yield file;
    }
  }
  await writeListFile(base.folder, CHANGED_FILE, counted());
  return first === undefined ? undefined : { ...count, first };
}

async function* changedFiles(
  base: AppendBase,
  { root, files, labels }: SourceNow,
  options: CheckedOptions,
): AsyncGenerator<ChangedFile> {
  const { folder, manifest } = base;
  const naming = new Naming(options);
  const reader = files.reader();
  const isOther = changesBytes(options);
  const classes = manifest.classes.map(({ name }) => name);
  const missing: string[] = [];
  for (const { file } of manifest.shards) {
    const path = join(folder, file);
    const packedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    const labelParts = labels === null ? [] : (['cls', 'columns'] as const);
    const index = await readBaseIndex(base, file, ['source', 'fields', ...labelParts]);
    const images = imageColumn(index);
    for (const [row, name] of index.source.entries()) {
      const number = reader.find(name);
      if (number === -1) {
        missing.push(name);
        continue;
      }
      const stored = isOther ? undefined : storedBytes(index.fields.get(naming.fieldOf(name)), images, row);
      const change = changeOf(reader, number, stored, packedAt);
      if (change !== null) yield { path: name, what: 'changed', reason: change };
      const other = labels === null ? null : otherLabel(labels, number, index, row, classes);
      if (other !== null) yield { path: name, what: 'relabelled', reason: other };
    }
  }
  for (const name of await goneOf(missing, root, options))
    yield { path: name, what: 'gone', reason: 'it is no longer in the source' };
}

/** Length of the image in its field: the field of its name or, if the content is of another kind, the other field. */
function storedBytes(named: FieldColumns | undefined, images: FieldColumns, row: number): number | undefined {
  const column = [named, images].find((found) => found !== undefined && found.offset[row]! >= 0);
  return column?.bytes[row];
}

/** Describes how a file differs from what was packed, by size and time; null if it does not. */
function changeOf(reader: FileReader, file: number, stored: number | undefined, packedAt: number): string | null {
  const bytes = reader.bytes(file);
  if (stored !== undefined && bytes !== stored)
    return `it had ${stored} bytes when it was packed, and now has ${bytes}`;
  const time = reader.mtimeMs(file);
  return time > packedAt ? `it was modified at ${new Date(time).toISOString()}, later than its shard` : null;
}

type LabelledIndex = Pick<ShardIndex, 'fields'> & Partial<Pick<ShardIndex, 'cls' | 'columns'>>;

/** Describes how the current labels of a packed image differ from the dataset; null if they do not. */
function otherLabel(
  { table, rowOfFile }: FileLabels,
  file: number,
  { fields, cls, columns }: LabelledIndex,
  row: number,
  classes: readonly string[],
): string | null {
  const label = rowOfFile[file]!;
  if (label === -1) return null;
  const shown = (value: unknown) => (value === null || value === undefined ? 'none' : JSON.stringify(value));
  const name = table.cls?.[label] || null;
  const number = cls![row]!;
  const packed = classes[number] ?? (number < 0 ? null : String(number));
  if (name !== null && name !== packed)
    return `the labels have the class ${shown(name)}, but the dataset has ${shown(packed)}`;
  for (const [column, values] of table.columns) {
    const [now, was] = [values[label] ?? null, columns!.get(column)?.[row] ?? null];
    if (now !== was)
      return `the labels have ${shown(now)} in the column "${column}", but the dataset has ${shown(was)}`;
  }
  for (const [field, texts] of table.texts ?? []) {
    const sum = fields.get(field)?.crc32?.[row];
    if (sum !== undefined && sum !== crc32(Buffer.from(texts[label]!)))
      return `the objects of the annotations differ from the field "${field}" of the dataset`;
  }
  return null;
}

/**
 * Returns the packed files that no longer exist, sorted. The scan alone does not show that, because a list or patterns
 * may select only some files.
 */
async function goneOf(missing: readonly string[], root: string, options: CheckedOptions): Promise<readonly string[]> {
  if (options.files !== undefined || missing.length === 0) return [];
  if (isRemote(root)) return matchingNames(missing, options);
  return sortByCodePoint(missing.filter((name) => !existsSync(root + name)));
}
