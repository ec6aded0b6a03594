import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { inLanes, sortByCodePoint } from '@shardtool/base';
import {
  canonicalSplit,
  FilesSource,
  folderAt,
  type ListedSamples,
  listSamples,
  type ShardIndex,
  shardsOfSplit,
  unknownColumns,
} from '@shardtool/format';
import type { ShardFile } from '../shards/shard-file.js';
import type { StoredParts } from '../stored-dataset.js';
import { type FolderLabels, readFolderLabels } from './folder-labels.js';

/** Number of samples that are treated as a shard. Their sizes are requested together, and they are read together. */
const SHARD_SAMPLES = 1024;
/** Number of files whose sizes give the mean size. */
const MEASURED_FILES = 512;
/** Number of file sizes that are requested at a time. */
const LOOKS_AT_ONCE = 32;
/** Folders with these names contain the splits of a dataset, not its classes. */
const SPLITS: ReadonlySet<string> = new Set(['train', 'training', 'val', 'valid', 'validation', 'test', 'testing']);
/** The label column with the split of a sample. */
const SPLIT_COLUMN = 'split';

/**
 * Opens a folder of images as a dataset without packing it. Samples are the images in the order of their paths, with
 * the files of the same name as their fields. The class is the name of the first folder, as in `pack`. If the first
 * folders are splits (`train`, `val`), the class is the name of the second folder, and the label column `split` has the
 * first. Only names are read here. The sizes of files are requested when their shard is needed. Images have no
 * checksums. Throws {@link FileError}.
 */
export async function folderParts(location: string, split?: string): Promise<StoredParts> {
  const all = await listSamples(location);
  const depth = areSplits(all) ? 1 : 0;
  const splits = depth === 0 ? [] : [...new Set(all.keys.map((key) => folderAt(key, 0)!))];
  const isTaken = split !== undefined && splits.length > 0;
  const rows = isTaken ? rowsBelow(all, foldersOfSplit(splits, split, location)) : null;
  const listed = rows === null ? all : takeRows(all, rows);
  const samples = listed.keys.length;
  const said = await readFolderLabels(location, splits, all);
  // A class has the same number in every split.
  const { classes, cls: ofAll } = numbered(said?.cls ?? all.keys.map((key) => folderAt(key, depth)));
  const cls = rows === null ? ofAll : Int32Array.from(rows, (row) => ofAll[row]!);
  const columns = Array.from(said?.columns ?? [], ([name, values]) => {
    return [name, rows === null ? values : rows.map((row) => values[row]!)] as const;
  });
  const classSamples = new Array<number>(classes.length).fill(0);
  for (const number of cls) if (number >= 0) classSamples[number] = (classSamples[number] ?? 0) + 1;
  const meanBytes = await meanSampleBytes(location, listed);
  const shards: ShardFile[] = [];
  for (let from = 0; from < samples; from += SHARD_SAMPLES) {
    const to = Math.min(from + SHARD_SAMPLES, samples);
    shards.push(folderShard(location, listed, { from, to, cls, depth, meanBytes, columns: new Map(columns) }));
  }
  const identityOfFirst = (count: number) => identityOf(listed, Math.min(samples, count * SHARD_SAMPLES));
  return {
    location,
    format: 'folder',
    identity: identityOfFirst(shards.length),
    identityOfFirst,
    classes,
    classSamples: Array.from(classSamples, (count) => count ?? 0),
    fields: [...new Set(listed.fields)].sort(),
    shards,
    splits,
    ...(isTaken && { split }),
  };
}

/** Returns the top-level folders that belong to a split. Throws OptionError if there are none. */
function foldersOfSplit(folders: readonly string[], split: string, path: string): ReadonlySet<string> {
  if (folders.includes(split)) return new Set([split]);
  const known = folders.map((folder) => ({ path, folder, split: canonicalSplit(folder) }));
  return new Set(shardsOfSplit(known, split).map(({ folder }) => folder));
}

/** Returns the numbers of the samples below some of the first folders. */
function rowsBelow({ keys }: ListedSamples, folders: ReadonlySet<string>): number[] {
  return [...keys.keys()].filter((sample) => folders.has(folderAt(keys[sample]!, 0)!));
}

function takeRows({ paths, first, keys, fields }: ListedSamples, rows: readonly number[]): ListedSamples {
  const taken = { paths: [] as string[], first: [0], keys: [] as string[], fields: [] as string[] };
  for (const sample of rows) {
    for (let file = first[sample]!; file < first[sample + 1]!; file++) {
      taken.paths.push(paths[file]!);
      taken.fields.push(fields[file]!);
    }
    taken.first.push(taken.paths.length);
    taken.keys.push(keys[sample]!);
  }
  return taken;
}

interface ShardOfFolder {
  /** Index of the first sample, and the index after the last one. */
  readonly from: number;
  readonly to: number;
  /** Classes of all samples. */
  readonly cls: Int32Array;
  readonly depth: number;
  readonly meanBytes: number;
  /** Columns of all samples. */
  readonly columns: FolderLabels['columns'];
}

/** Numbers classes in the order of their names. Class numbers stay as they are, without names. */
function numbered(values: readonly (string | number | null)[]) {
  if (values.every((value) => value === null || typeof value === 'number'))
    return { classes: [], cls: Int32Array.from(values, (value) => (value === null ? -1 : Number(value))) };
  const names = values.map((value) => (value === null ? null : String(value)));
  const classes = sortByCodePoint([...new Set(names)].filter((name) => name !== null));
  const numbers = new Map(classes.map((name, number) => [name, number]));
  return { classes, cls: Int32Array.from(names, (name) => (name === null ? -1 : numbers.get(name)!)) };
}

function folderShard(location: string, listed: ListedSamples, shard: ShardOfFolder): ShardFile {
  const { from, to, meanBytes } = shard;
  const files = listed.paths.slice(listed.first[from]!, listed.first[to]!).map((name) => path.join(location, name));
  let starts: Promise<Float64Array> | null = null;
  const measure = (): Promise<Float64Array> => {
    starts ??= startsOf(files);
    starts.catch(() => {
      starts = null;
    });
    return starts;
  };
  const loadIndex = async () => indexOf(listed, shard, await measure());
  return {
    name: `files-${String(from / SHARD_SAMPLES).padStart(6, '0')}`,
    path: location,
    bytes: Math.round(meanBytes * (to - from)),
    samples: to - from,
    open: async () => new FilesSource(location, files, await measure()),
    loadIndex,
    loadParts: loadIndex,
    findCropIndex: async () => null,
  };
}

/**
 * Returns the offset of each file if all files were concatenated, and the total size at the end. A deleted file has no
 * bytes.
 */
async function startsOf(files: readonly string[]): Promise<Float64Array> {
  const starts = new Float64Array(files.length + 1);
  await inLanes(files, LOOKS_AT_ONCE, async (path, file) => {
    starts[file + 1] = (await stat(path).catch(() => null))?.size ?? 0;
  });
  for (let file = 0; file < files.length; file++) starts[file + 1]! += starts[file]!;
  return starts;
}

function indexOf(
  listed: ListedSamples,
  { from, to, cls, depth, columns }: ShardOfFolder,
  starts: Float64Array,
): ShardIndex {
  const samples = to - from;
  const base = listed.first[from]!;
  const place = (row: number) => listed.first[from + row]! - base;
  const fields = new Map<string, { offset: Float64Array; bytes: Float64Array }>();
  for (let row = 0; row < samples; row++) {
    for (let file = place(row); file < place(row + 1); file++) {
      const name = listed.fields[base + file]!;
      let columns = fields.get(name);
      if (columns === undefined) {
        columns = { offset: new Float64Array(samples).fill(-1), bytes: new Float64Array(samples) };
        fields.set(name, columns);
      }
      columns.offset[row] = starts[file]!;
      columns.bytes[row] = starts[file + 1]! - starts[file]!;
    }
  }
  const key = listed.keys.slice(from, to);
  return {
    ...unknownColumns(samples),
    samples,
    key,
    source: key.map((_, row) => listed.paths[base + place(row)]!),
    offset: Float64Array.from(key, (_, row) => starts[place(row)]!),
    bytes: Float64Array.from(key, (_, row) => starts[place(row + 1)]! - starts[place(row)]!),
    fields: new Map([...fields].sort(([a], [b]) => (a < b ? -1 : 1))),
    cls: cls.slice(from, to),
    columns: new Map([
      ...(depth === 0 ? [] : [[SPLIT_COLUMN, key.map((name) => folderAt(name, 0))] as const]),
      ...Array.from(columns, ([name, values]) => [name, values.slice(from, to)] as const),
    ]),
  };
}

function areSplits({ keys }: ListedSamples): boolean {
  return keys.length > 0 && keys.every((key) => SPLITS.has(key.slice(0, key.indexOf('/'))));
}

/** Estimates the mean size of a sample from evenly spaced files. */
async function meanSampleBytes(location: string, { paths, keys }: ListedSamples): Promise<number> {
  if (keys.length === 0) return 0;
  const step = Math.max(1, paths.length / MEASURED_FILES);
  const some = Array.from({ length: Math.floor(paths.length / step) }, (_, i) => paths[Math.floor(i * step)]!);
  const starts = await startsOf(some.map((name) => path.join(location, name)));
  return (starts.at(-1)! / some.length) * (paths.length / keys.length);
}

/** Changes when a file is added, removed or renamed. The contents of files are not read. */
function identityOf({ paths, first }: ListedSamples, samples: number): string {
  const hash = createHash('sha256');
  for (const name of paths.slice(0, first[samples])) hash.update(`${name}\0`);
  return hash.digest('hex');
}
