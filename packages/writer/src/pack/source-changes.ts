import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from '@shardtool/base';
import { type FieldColumns, imageColumn, indexPathOf, readShardIndex, type ShardIndex } from '@shardtool/format';
import { isRemote } from '@shardtool/storage';
import { type CheckedOptions, changesBytes } from '../options.js';
import { CHANGED_FILE, writeListFile } from '../output/lists.js';
import { Naming } from '../plan/naming.js';
import type { SourceChanges } from '../plan/plan-record.js';
import type { FileLabels } from '../plan/shard-plan.js';
import { matchingNames } from '../source/bucket/scan-bucket.js';
import { sortByCodePoint } from '../source/file-table.js';
import type { FileReader, SourceFiles } from '../source/source-files.js';
import type { AppendBase } from './append.js';

/** A line of changed.jsonl. */
interface ChangedFile {
  /** Below the source. */
  readonly path: string;
  readonly what: 'changed' | 'gone' | 'relabelled';
  readonly reason: string;
}

/** The source of a pack that adds to a dataset, as it is now. */
interface SourceNow {
  /** What stands in front of every path. */
  readonly root: string;
  readonly files: SourceFiles;
  readonly labels: FileLabels | null;
}

/**
 * Lists the images of a dataset whose files have changed since they were packed, or are gone, and those for which the labels now
 * say something else than the dataset has; and counts them. What was changed and has its old size and an older time is not seen:
 * nothing is read.
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
  { folder, manifest }: AppendBase,
  { root, files, labels }: SourceNow,
  options: CheckedOptions,
): AsyncGenerator<ChangedFile> {
  const naming = new Naming(options);
  const reader = files.reader();
  const isOther = changesBytes(options);
  const classes = manifest.classes.map(({ name }) => name);
  const missing: string[] = [];
  for (const { file } of manifest.shards) {
    const path = join(folder, file);
    const packedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    const index = await readShardIndex(join(folder, indexPathOf(file)), {
      parts: ['source', 'fields', ...(labels === null ? [] : (['cls', 'columns'] as const))],
    });
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

/** Length of the image: that of the field which its name says, or, where its content is of another kind, of another field. */
function storedBytes(named: FieldColumns | undefined, images: FieldColumns, row: number): number | undefined {
  const column = [named, images].find((found) => found !== undefined && found.offset[row]! >= 0);
  return column?.bytes[row];
}

/** How a file differs from what was packed; null where it does not, as far as its size and time tell. */
function changeOf(reader: FileReader, file: number, stored: number | undefined, packedAt: number): string | null {
  const bytes = reader.bytes(file);
  if (stored !== undefined && bytes !== stored)
    return `it had ${stored} bytes when it was packed, and has ${bytes} now`;
  const time = reader.mtimeMs(file);
  return time > packedAt ? `it is of ${new Date(time).toISOString()}, later than its shard` : null;
}

type LabelledIndex = Pick<ShardIndex, 'fields'> & Partial<Pick<ShardIndex, 'cls' | 'columns'>>;

/** What the labels of a packed image say now that the dataset does not; null where that is nothing. */
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
    return `the labels have the class ${shown(name)}, and the dataset has ${shown(packed)}`;
  for (const [column, values] of table.columns) {
    const [now, was] = [values[label] ?? null, columns!.get(column)?.[row] ?? null];
    if (now !== was)
      return `the labels have ${shown(now)} in the column "${column}", and the dataset has ${shown(was)}`;
  }
  for (const [field, texts] of table.texts ?? []) {
    const sum = fields.get(field)?.crc32?.[row];
    if (sum !== undefined && sum !== crc32(Buffer.from(texts[label]!)))
      return `the annotations have other objects for the field "${field}" than the dataset`;
  }
  return null;
}

/** Those of the packed files that a scan has not found which are not there any more, sorted. A list, and patterns, name a part of the files. */
async function goneOf(missing: readonly string[], root: string, options: CheckedOptions): Promise<readonly string[]> {
  if (options.files !== undefined || missing.length === 0) return [];
  if (isRemote(root)) return matchingNames(missing, options);
  return sortByCodePoint(missing.filter((name) => !existsSync(root + name)));
}
