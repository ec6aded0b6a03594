import { DamagedShardError, didYouMean, OptionError, option, sentence } from '@shardtool/base';
import {
  type ColumnType,
  columnTypeOf,
  fieldType,
  imageFieldOf,
  isImageExtension,
  layoutWith,
  type Manifest,
  openToConvert,
  readShardIndex,
  type ShardIndex,
  splitEntryName,
  walkShardIndex,
} from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import { checkClasses, folderClass, orderClasses } from '../../plan/classes.js';
import type { DatasetShard } from '../../shard/dataset-shards.js';
import { fieldPayloads } from '../../shard/field-payloads.js';
import { type PackedLabels, readPackedLabels } from '../../source/labels/labels.js';
import { readLines } from '../../source/text-file.js';

/** Options that change classes, columns or the selection of samples. */
export interface RecastOptions {
  /** Class names in the order of their numbers, or a text file with one name per line. */
  readonly classes?: string | readonly string[] | undefined;
  /** Label column whose values become the classes, or a field whose text does, such as `cls` with words. */
  readonly classColumn?: string | undefined;
  /** CSV or JSON Lines as for packing, with the column `path` or `key`. Samples without a row are skipped. */
  readonly labels?: string | undefined;
  /** Only samples that match this condition: see `where` of a loader. */
  readonly where?: string | undefined;
  /** Options for requests of remote tables. */
  storage?: StorageOptions | undefined;
}

/** The changes resolved for all shards, in the form that is sent to workers. */
export interface Recast {
  /** Class names in the order of their numbers. */
  readonly classes: readonly string[];
  /** Where the class of a sample comes from: its folder, the labels, a label column, or its own field. */
  readonly from: 'folder' | 'labels' | 'column' | 'field';
  /** The label column or field, if {@link from} is `column`. */
  readonly column?: string | undefined;
  readonly labels: string | null;
  readonly where: string | null;
  /** Names of all label columns. A shard that lacks one has null there, because an append can bring new columns. */
  readonly columns: readonly string[];
  readonly storage?: StorageOptions | undefined;
}

export interface SettledRecast {
  readonly recast: Recast;
  readonly columns: Manifest['columns'];
}

/**
 * Resolves the classes of samples of other tools as packing the unpacked files would: those of `labels`, otherwise the
 * folders, unless samples have a class field. Null if nothing changes. Throws {@link OptionError}.
 */
export async function settleRecast(
  shards: readonly DatasetShard[],
  columns: Manifest['columns'],
  options: RecastOptions,
): Promise<SettledRecast | null> {
  const { labels, where, storage, classColumn } = options;
  const fixed = await fixedClasses(options);
  // Another conversion of this process may have read an earlier file.
  read = null;
  const table = labels === undefined ? null : await tableOf(labels, storage);
  const fromLabels = table !== null && table.cls !== null;
  if (classColumn !== undefined && fromLabels) {
    const message = sentence`The classes are in the labels file ${labels!}; remove ${option('classColumn')}, or the column "class" of that file.`;
    throw new OptionError({ path: labels }, message);
  }
  const values = classColumn === undefined ? null : await valuesOf(shards, classColumn);
  const { folders, hasField } = values === null ? await lookAt(shards) : { folders: new Set<string>(), hasField: true };
  const isByFolder = !fromLabels && !hasField && folders.size > 0;
  if (!isByFolder && values === null && table === null && fixed === null && where === undefined) return null;
  const isByText = fromLabels || values !== null;
  const names = fromLabels ? table.cls!.filter((name) => name !== '') : (values ?? (isByFolder ? folders : []));
  const classes = fixed ?? orderClasses([...new Set<string>(names)], isByText);
  const added = [...(table?.columns ?? [])].map(([name, values]) => ({
    name,
    type: columnTypeOf(name, values) as ColumnType,
  }));
  return {
    recast: {
      classes,
      from: fromLabels ? 'labels' : isByFolder ? 'folder' : values !== null ? 'column' : 'field',
      column: classColumn,
      labels: labels ?? null,
      where: where ?? null,
      columns: [...columns, ...added].map(({ name }) => name),
      storage,
    },
    columns: [...columns.filter(({ name }) => !added.some((column) => column.name === name)), ...added],
  };
}

/**
 * Returns the different values of a label column, or of a field that no label column is named after, as text. Throws
 * {@link OptionError} if no shard has such a column or field.
 */
async function valuesOf(shards: readonly DatasetShard[], column: string): Promise<Set<string>> {
  const found = new Set<string>();
  const others = new Set<string>();
  let isThere = false;
  for (const shard of shards) {
    const index = await columnsOf(shard);
    const values = await classNames(shard, index, column);
    isThere ||= values !== undefined;
    for (const name of [...index.columns.keys(), ...textFields(index)]) others.add(name);
    for (const value of values ?? []) if (value !== null) found.add(value);
  }
  if (isThere) return found;
  const there =
    others.size === 0 ? 'there are none' : `the label columns and fields with text are ${[...others].join(', ')}`;
  throw new OptionError(
    {},
    sentence`No shard has the column or field ${JSON.stringify(column)} (${option('classColumn')})${didYouMean(column, others)}; ${there}.`,
  );
}

/** Fields that can hold the name of a class. */
function textFields({ fields }: Pick<ShardIndex, 'fields'>): string[] {
  return [...fields.keys()].filter((name) => ['integer', 'text'].includes(fieldType(name)));
}

const MAX_CLASS_BYTES = 1024;

/**
 * Returns the class name of each sample of a shard: its value in the label column, otherwise the text of the field of
 * that name, without white space around it. Null for samples without a class, undefined if there is neither. Throws
 * {@link DamagedShardError} for a text that is not a class name, and FileError.
 */
export async function classNames(
  { path: shard, format, reading, storage }: DatasetShard,
  index: Pick<ShardIndex, 'columns' | 'fields' | 'samples' | 'key'>,
  column: string,
): Promise<(string | null)[] | undefined> {
  const values = index.columns.get(column);
  if (values !== undefined) return values.map((value) => (value === null ? null : String(value)));
  if (!textFields(index).includes(column)) return undefined;
  const names = new Array<string | null>(index.samples).fill(null);
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  const source = await openToConvert(format, shard, reading, storage);
  try {
    for await (const { row, payload } of fieldPayloads(source, index, column, MAX_CLASS_BYTES)) {
      try {
        if (payload === null) throw new RangeError();
        names[row] = utf8.decode(payload).trim() || null;
      } catch {
        const key = index.key[row]!;
        const message = `${shard}: field "${column}" of sample "${key}" is not the name of a class, which is UTF-8 text of at most ${MAX_CLASS_BYTES} bytes.`;
        throw new DamagedShardError({ shard, key }, message);
      }
    }
  } finally {
    await source.close();
  }
  return names;
}

async function columnsOf({
  format,
  path,
  storage,
  indexPath,
  reading,
}: DatasetShard): Promise<Pick<ShardIndex, 'columns' | 'fields' | 'samples' | 'key'>> {
  if (indexPath !== null) return await readShardIndex(indexPath, { parts: ['columns', 'fields', 'key'] }, storage);
  const source = await openToConvert(format, path, reading, storage);
  try {
    return await walkShardIndex(await layoutWith(format, reading), source);
  } finally {
    await source.close();
  }
}

/** Returns the classes in the order given by the user; null if none was given. */
async function fixedClasses({ classes: given, storage }: RecastOptions): Promise<readonly string[] | null> {
  if (given === undefined) return null;
  return typeof given === 'string' ? checkClasses(await readLines(given, storage), given) : checkClasses(given);
}

/**
 * Returns the classes of samples in these folders; null if an option requires information that only the samples have.
 * Throws {@link OptionError} for a folder that is not in the given list of classes.
 */
export async function classesOfFolders(
  folders: readonly string[],
  options: RecastOptions,
): Promise<readonly string[] | null> {
  if (options.labels !== undefined || options.where !== undefined) return null;
  const fixed = await fixedClasses(options);
  const lacking = fixed === null ? undefined : folders.find((name) => !fixed.includes(name));
  if (lacking !== undefined) refuseClass(lacking, lacking);
  return fixed ?? orderClasses([...new Set(folders)], false);
}

/** Returns the class folders of all keys, and whether samples have a class field. */
async function lookAt(shards: readonly DatasetShard[]): Promise<{ folders: Set<string>; hasField: boolean }> {
  const folders = new Set<string>();
  for (const shard of shards) {
    const index = await keysOf(shard);
    if (index === null || index.fields.has('cls')) return { folders, hasField: true };
    const isImaged = imaged(index);
    for (const [row, key] of index.key.entries()) {
      if (isImaged !== null && !isImaged[row]) continue;
      const name = folderClass(key);
      if (name !== undefined) folders.add(name);
    }
  }
  return { folders, hasField: false };
}

async function keysOf({
  format,
  path,
  storage,
  indexPath,
  reading,
}: DatasetShard): Promise<Pick<ShardIndex, 'key' | 'fields'> | null> {
  if (indexPath !== null) return await readShardIndex(indexPath, { parts: ['key', 'fields'] }, storage);
  const layout = await layoutWith(format, reading);
  // Only tars have folders; other layouts store classes in their own way.
  if (layout.name !== 'tar') return null;
  const source = await openToConvert(format, path, reading, storage);
  try {
    return await walkShardIndex(layout, source);
  } finally {
    await source.close();
  }
}

/**
 * Returns which samples have an image; null if none has. If folders are the classes, samples without an image are
 * skipped, because packing the unpacked files would skip them too.
 */
function imaged({ key, fields }: Pick<ShardIndex, 'key' | 'fields'>): readonly boolean[] | null {
  const images = [...fields].filter(([name]) => isImageExtension(name.split('.').at(-1)!) || name === 'npy');
  const found = key.map((_, row) => images.some(([, { offset }]) => offset[row]! >= 0));
  return found.includes(true) ? found : null;
}

/**
 * Returns the index to write, and 1 for each selected row. Also returns the rows that are skipped because they belong
 * to no image, and their number of files. Throws {@link OptionError}, and the errors of {@link classNames}.
 */
export async function recastIndex(
  shard: DatasetShard,
  index: ShardIndex,
  recast: Recast,
): Promise<{ index: ShardIndex; taken: Uint8Array; skipped: { samples: number; files: number } }> {
  const { classes, from, column, labels, where, storage } = recast;
  const key = index.key.map((name) => (name.startsWith('./') ? name.slice(2) : name));
  const taken = new Uint8Array(index.samples).fill(1);
  const isImaged = from === 'folder' ? imaged(index) : null;
  const skipped = { samples: 0, files: 0 };
  for (let row = 0; isImaged !== null && row < taken.length; row++) {
    if (isImaged[row]) continue;
    taken[row] = 0;
    skipped.samples++;
    for (const { offset } of index.fields.values()) if (offset[row]! >= 0) skipped.files++;
  }
  const cls = Int32Array.from(index.cls);
  const columns = new Map(index.columns);
  const table = labels === null ? null : await tableOf(labels, storage);
  const rows = table === null ? null : rowsOf({ ...index, key }, table);
  if (rows !== null) {
    for (let i = 0; i < taken.length; i++) if (rows[i] === -1) taken[i] = 0;
    for (const [name, values] of table!.columns)
      columns.set(
        name,
        Array.from(rows, (row) => values[row] ?? null),
      );
  }
  if (from !== 'field') {
    const numbers = new Map(classes.map((name, number) => [name, number]));
    const values = column === undefined ? undefined : await classNames(shard, index, column);
    const nameOf = (row: number): string | undefined => {
      if (from === 'folder') return folderClass(key[row]!);
      if (from === 'labels') return table!.cls![rows![row]!] || undefined;
      return values?.[row] ?? undefined;
    };
    for (let i = 0; i < cls.length; i++) {
      if (taken[i] === 0) continue;
      const name = nameOf(i);
      cls[i] = name === undefined ? -1 : (numbers.get(name) ?? refuseClass(key[i]!, name));
    }
  }
  const changed = { ...index, key, cls, columns };
  if (where !== null) {
    const { compileWhere } = await import('@shardtool/reader');
    const missing = recast.columns.filter((name) => !columns.has(name));
    const absent = missing.map((name) => [name, new Array<null>(index.samples).fill(null)] as const);
    const isWanted = compileWhere(where, classes)({ ...changed, columns: new Map([...columns, ...absent]) });
    for (let i = 0; i < taken.length; i++) if (!isWanted(i)) taken[i] = 0;
  }
  return { index: changed, taken, skipped };
}

function rowsOf(index: ShardIndex, { by, rowOf }: Table): Int32Array {
  const names = [...index.fields.keys()].map((name) => ({ name }));
  return Int32Array.from(index.key, (key, row) => {
    if (by === 'key') return rowOf.get(key) ?? -1;
    const image = imageFieldOf(names.filter(({ name }) => index.fields.get(name)!.offset[row]! >= 0));
    return rowOf.get(index.source[row]!) ?? rowOf.get(`${key}.${image ?? ''}`) ?? -1;
  });
}

interface Table extends PackedLabels {
  readonly rowOf: ReadonlyMap<string, number>;
}

let read: { readonly location: string; readonly table: Table } | null = null;

/** Reads the labels once in each thread. */
async function tableOf(location: string, storage: StorageOptions | undefined): Promise<Table> {
  if (read?.location === location) return read.table;
  const table = await readPackedLabels(location, { storage });
  const rowOf = new Map<string, number>();
  for (const [row, id] of table.id.entries()) {
    const plain = id.startsWith('./') ? id.slice(2) : id;
    rowOf.set(plain, row);
    // Field names are lower case, whatever the case of the file extension.
    const named = table.by === 'path' ? splitEntryName(plain) : null;
    if (named !== null) rowOf.set(`${named.key}.${named.field}`, row);
  }
  read = { location, table: { ...table, rowOf } };
  return read.table;
}

/** Throws {@link OptionError} for a class that is missing from a list of classes. */
export function refuseClass(key: string, name: string): never {
  throw new OptionError(
    { key },
    sentence`Sample "${key}" has the class "${name}", which is not in the list of classes; add it at the end of the list, or exclude the sample with ${option('where')}.`,
  );
}
