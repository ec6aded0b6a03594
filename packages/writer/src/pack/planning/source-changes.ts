import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { crc32, inLanes, inTurn, sortByCodePoint, totalOf } from '@shardtool/base';
import { type FieldColumns, imageColumn, type ShardIndex } from '@shardtool/format';
import { isRemote, openStorage, readWholeOf, type Storage } from '@shardtool/storage';
import { type CheckedOptions, changesBytes } from '../../options.js';
import { type AppendBase, readBaseIndex } from '../../output/append-base.js';
import { CHANGED_FILE, writeListFile } from '../../output/lists.js';
import { readTombstones } from '../../output/tombstones.js';
import { Naming } from '../../plan/naming.js';
import type { SourceChanges } from '../../plan/plan-record.js';
import type { FileLabels } from '../../plan/shard-plan.js';
import { matchingNames } from '../../source/bucket/scan-bucket.js';
import type { FileReader, SourceFiles } from '../../source/source-files.js';
import { type PackedFiles, READ_AT_ONCE } from './base-dataset.js';
import { PackedFields } from './packed-fields.js';

/** Number of concurrent requests for objects that a manifest does not list. */
const REQUESTS_AT_ONCE = 16;

/** Number of samples without a file in the source that are looked up at a time. */
const LOOKED_UP_AT_ONCE = 100_000;

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
  /** See {@link PackedFiles.samples}. */
  readonly packed: PackedFiles['samples'];
  readonly labels: FileLabels | null;
  /** Files of the source that contain labels. */
  readonly ownFiles: ReadonlySet<number>;
}

/**
 * Lists and counts the images of a dataset whose files were changed or deleted since they were packed, and those whose
 * labels now differ from the dataset. Files are not read, so a changed file with the same size and an older time is not
 * detected,
 * unless `compare` is `checksum`.
 */
export async function listChanges(base: AppendBase, source: SourceNow, options: CheckedOptions): Promise<FoundChanges> {
  const count = { changed: 0, gone: 0, relabelled: 0 };
  const rows = new Map<string, Set<number>>();
  const again = new Set<number>();
  const erased = options.applyChanges ? await readTombstones(await openStorage(base.location, base.storage)) : null;
  const naming = new Naming(options);
  const unlisted = options.files !== undefined || options.applyChanges ? 0 : tooManyToList(base, source);
  let first: string | undefined;
  async function* counted(): AsyncGenerator<ChangedFile> {
    for await (const { shard, row, number, ...file } of changedFiles(base, source, options, unlisted === 0)) {
      count[file.what]++;
      first ??= file.path;
      if (options.applyChanges) {
        rows.set(shard, (rows.get(shard) ?? new Set()).add(row));
        // An erased sample may be in a version that was restored.
        if (number !== -1 && erased?.has(naming.nameOf(file.path)?.key ?? '') !== true) again.add(number);
      }
      yield file;
    }
  }
  if (!options.dryRun) await writeListFile(base.folder, CHANGED_FILE, counted());
  else for await (const _ of counted());
  const changes =
    first === undefined ? undefined : { ...count, first, ...(options.applyChanges && { isApplied: true }) };
  if (rows.size === 0) return { changes, unlisted, replaced: undefined, again };
  const replaced = Object.fromEntries(Array.from(rows, ([shard, found]) => [shard, [...found].sort((a, b) => a - b)]));
  return { changes, unlisted, replaced, again };
}

/** What an append finds in its source. */
export interface FoundChanges {
  /** Undefined if nothing has changed. */
  readonly changes: SourceChanges | undefined;
  /** Number of packed files that the source lacks, if they are too many to be looked up and listed; otherwise 0. */
  readonly unlisted: number;
  /** Rows to remove, by the file of their shard; undefined if there are none, or if changes are only listed. */
  readonly replaced: Readonly<Record<string, readonly number[]>> | undefined;
  /** Numbers of the files that are packed again. */
  readonly again: ReadonlySet<number>;
}

/** Place of the sample in the dataset, and number of its file in the source; -1 if it is gone. */
interface FoundChange extends ChangedFile {
  readonly shard: string;
  readonly row: number;
  readonly number: number;
}

async function* changedFiles(
  base: AppendBase,
  { root, files, packed, labels, ownFiles }: SourceNow,
  options: CheckedOptions,
  mayListGone: boolean,
): AsyncGenerator<FoundChange> {
  const { folder, manifest } = base;
  const naming = new Naming(options);
  const reader = files.reader();
  const isOther = changesBytes(options);
  const classes = manifest.classes.map(({ name }) => name);
  const packedFields = PackedFields.of(files, manifest, options, ownFiles);
  const storage = options.compare === 'checksum' ? await openStorage(root.replace(/\/$/, ''), options.storage) : null;
  const listsGone = mayListGone && options.files === undefined;
  const missing = new Map<string, { shard: string; row: number }>();
  async function* gone(): AsyncGenerator<FoundChange> {
    const reason = 'it is no longer in the source';
    for (const name of await goneOf([...missing.keys()], root, options)) {
      yield { path: name, what: 'gone', reason, ...missing.get(name)!, number: -1 };
    }
    missing.clear();
  }
  const labelParts = labels === null ? [] : (['cls', 'columns'] as const);
  const shards = listsGone ? manifest.shards : manifest.shards.filter(({ file }) => packed.has(file));
  const indexes = inTurn(shards, READ_AT_ONCE, async ({ file }) => ({
    file,
    index: await readBaseIndex(base, file, ['source', 'fields', ...labelParts]),
  }));
  for await (const { file, index } of indexes) {
    const path = join(folder, file);
    const packedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    const images = imageColumn(index);
    const numbers = reader.findAll(index.source);
    for (const [row, name] of index.source.entries()) {
      const number = numbers[row]!;
      if (number === -1) {
        if (listsGone) missing.set(name, { shard: file, row });
        if (missing.size === LOOKED_UP_AT_ONCE) yield* gone();
        continue;
      }
      const stored = isOther ? undefined : storedBytes(index.fields.get(naming.fieldOf(name)), images, row);
      const place = { shard: file, row, number };
      const change =
        storage === null
          ? changeOf(reader, number, stored, packedAt)
          : (changeOf(reader, number, stored, Number.POSITIVE_INFINITY) ??
            (await changedBytes(storage, name, storedSum(index.fields.get(naming.fieldOf(name)), images, row))));
      const since = storage === null ? packedAt : Number.POSITIVE_INFINITY;
      const comparison = { isOther, since, storage, isAll: options.files === undefined, primary: naming.primary };
      const reason = change ?? (await otherField(packedFields, number, reader, index, row, comparison));
      if (reason !== null) yield { path: name, what: 'changed', reason, ...place };
      const other = labels === null ? null : otherLabel(labels, number, index, row, classes);
      if (other !== null) yield { path: name, what: 'relabelled', reason: other, ...place };
    }
  }
  yield* gone();
}

/**
 * Number of packed files that a source lacks, if it has fewer than half of many: it is then rather a folder of new files
 * than the whole source. Otherwise 0.
 */
function tooManyToList({ manifest: { samples } }: AppendBase, { packed }: SourceNow): number {
  const missing = samples - totalOf([...packed.values()], (found) => found);
  return missing > LOOKED_UP_AT_ONCE && missing * 2 > samples ? missing : 0;
}

/** How files next to an image are compared with its sample. */
interface FieldComparison {
  /** True if packing may have changed the bytes. */
  readonly isOther: boolean;
  /** Files that are newer than this have changed. */
  readonly since: number;
  /** Storage from which their bytes are read; null if the bytes are not compared. */
  readonly storage: Storage | null;
  /** True if all files of the source are known, so that a missing file was deleted. */
  readonly isAll: boolean;
  /** The field that takes the place of the image; null for samples with images. */
  readonly primary: string | null;
}

/** Describes how the files next to an image differ from the fields of its sample; null if they do not differ. */
async function otherField(
  packedFields: PackedFields | null,
  image: number,
  reader: FileReader,
  { fields }: Pick<ShardIndex, 'fields'>,
  row: number,
  { isOther, since, storage, isAll, primary }: FieldComparison,
): Promise<string | null> {
  if (packedFields === null) return null;
  const packed = packedFields.ofRow(fields, row);
  if (primary !== null) packed.delete(primary);
  for (const { file, field } of packedFields.ofImage(image)) {
    const path = reader.path(file);
    const stored = packed.get(field);
    packed.delete(field);
    if (stored === undefined) return `${path} is new`;
    const change =
      changeOf(reader, file, isOther ? undefined : stored.bytes, since) ??
      (storage === null ? null : await changedBytes(storage, path, isOther ? undefined : stored.crc32));
    if (change !== null) return `of ${path}: ${change}`;
  }
  const [gone] = isAll ? packed.keys() : [];
  return gone === undefined ? null : `the file of its field "${gone}" is no longer in the source`;
}

/** Crc32 of the image in its field, as {@link storedBytes} finds it. */
function storedSum(named: FieldColumns | undefined, images: FieldColumns, row: number): number | undefined {
  return [named, images].find((found) => found !== undefined && found.offset[row]! >= 0)?.crc32?.[row];
}

/** Describes how the bytes of a file differ from what was packed; null if they do not. */
async function changedBytes(storage: Storage, name: string, stored: number | undefined): Promise<string | null> {
  const sum = crc32(await readWholeOf(storage, name));
  return stored === undefined || sum === stored ? null : 'its bytes are not those that were packed';
}

/**
 * Length of the packed image. Its field has the extension of the file's name or, if the content is of another kind, the
 * extension of that kind.
 */
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
  if (missing.length === 0) return [];
  if (isRemote(root)) {
    const gone = await matchingNames(missing, options);
    return options.manifest === undefined ? gone : await absentFrom(root, gone, options);
  }
  return sortByCodePoint(missing.filter((name) => !existsSync(root + name)));
}

/** Returns the names that the bucket does not have. A manifest may be older than the bucket, or list only a part of it. */
async function absentFrom(root: string, names: readonly string[], options: CheckedOptions): Promise<readonly string[]> {
  const { storage, signal } = options;
  const bucket = await openStorage(root.replace(/\/$/, ''), storage);
  const entries = await inLanes(names, REQUESTS_AT_ONCE, (name) => bucket.entry(name, signal));
  return names.filter((_, i) => entries[i] === null);
}
