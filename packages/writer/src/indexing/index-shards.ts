import { closeSync, existsSync, fstatSync, openSync } from 'node:fs';
import path from 'node:path';
import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  FileError,
  OptionError,
  type OptionTable,
  UnsupportedShardError,
  withMessages,
} from '@shardtool/base';
import {
  buildShardIndex,
  checkWidsNames,
  findShards,
  findSidecars,
  indexPathOf,
  type LayoutName,
  layoutOf,
  layoutOfName,
  MANIFEST_FILE,
  openShard,
  ownerOf,
  placeSidecar,
  readManifest,
  readShardIndex,
  removeAbandonedSidecars,
  sidecarPath,
  type WidsShard,
  writeManifest,
  writeShardIndex,
} from '@shardtool/format';
import { isRemote, requireLocal, type StorageOptions } from '@shardtool/storage';
import type { OtherIndex } from '../options.js';
import { OutputFolder } from '../output/output-folder.js';
import { notedIndexes, noteOtherIndexes } from '../output/pack-note.js';
import { type CropIndexCounts, cropTotals, writeCropIndex } from '../shard/crop-index.js';
import { checkOtherIndexes, md5Of, writeDaliIndex, writeWidsIndex } from '../shard/other-indexes.js';
import { moveFromEarlierPlaces } from './earlier-places.js';
import { type AddedColumns, addColumns, type ColumnsReport } from './index-columns.js';

export interface IndexReport {
  /** Number of shards whose index was written. */
  readonly shards: number;
  /** Number of shards that already had an index. */
  readonly kept: number;
  /** Number of samples in the new indexes. */
  readonly samples: number;
  /** Number of files in their shards that belong to no sample: dotfiles, and names without a dot. */
  readonly skippedEntries: number;
  /** Number of links in them, which are not followed. */
  readonly skippedLinks: number;
  /** Contents of the new crop indexes; null if none were requested. */
  readonly crops: CropIndexCounts | null;
  /** Columns that were added to the indexes; null if none were requested. */
  readonly columns: ColumnsReport | null;
}

export interface IndexOptions extends Partial<AddedColumns> {
  /** Also rebuilds indexes that are newer than their shards. */
  readonly overwrite?: boolean | undefined;
  /** Indexes for other loaders, and `crops`. */
  readonly index?: readonly OtherIndex[] | undefined;
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Aborts the call before the next shard; indexes that are finished stay. */
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS = {
  overwrite: { kind: 'switch', help: 'Whether existing indexes are rebuilt' },
  index: { kind: 'own', type: 'OtherIndex[]', must: 'is a list of "wids", "dali" and "crops"', help: 'Other indexes' },
  columns: { kind: 'own', type: 'string[]', must: 'is a list of columns', help: 'Columns of JSON fields' },
  labels: { kind: 'own', type: 'string[]', must: 'is a list of files', help: 'Files of labels' },
  storage: CALL_OPTIONS.storage,
  signal: CALL_OPTIONS.signal,
} as const satisfies OptionTable;

/**
 * Walks shards and writes the index of each, `NAME.parquet`, next to it. Use it for WebDataset tars of other tools,
 * which then open immediately, and if the index of a packed shard was lost. `locations` are tars or folders of tars.
 *
 * An existing index is kept, unless its tar is newer or `overwrite` is set. The index of a packed shard is only rebuilt
 * if it is missing, since it has values that a walk cannot recover. The indexes in `index` are written each time:
 * `NAME.idx` next to each tar for DALI, one wids index in each folder, and the crop index `NAME.crops` for `crops`.
 * `columns` and `labels` become label columns of all indexes, including those that are kept.
 *
 * Throws DamagedShardError and UnsupportedEntryError for a shard that cannot be walked, EntryNameError for names that
 * another index cannot represent, LabelsError, {@link FileError} if another file is at the path of an index, {@link
 * UnsupportedShardError} for LMDB, which does not keep the samples in order, and {@link OptionError} if the layout does
 * not support a requested index.
 */
export async function indexShards(locations: readonly string[], options: IndexOptions = {}): Promise<IndexReport> {
  if (!Array.isArray(locations)) throw new OptionError({}, 'indexShards takes a list of paths.');
  for (const location of locations) checkLocation('indexShards', location);
  checkCallOptions('indexShards', OPTIONS, options, {
    columns: Array.isArray,
    labels: Array.isArray,
    index: Array.isArray,
  });
  return withMessages(() => indexAll(locations, options));
}

async function indexAll(locations: readonly string[], options: IndexOptions): Promise<IndexReport> {
  const { overwrite = false, index: asked = [], columns = [], labels = [], storage, signal } = options;
  const otherIndexes = asked.filter((name) => name !== 'crops');
  const report = { shards: 0, kept: 0, samples: 0, skippedEntries: 0, skippedLinks: 0 };
  const crops: CropIndexCounts[] = [];
  const forWids = new Map<string, { records: WidsShard[]; ours: readonly OtherIndex[] }>();
  const indexed: ShardToIndex[] = [];
  for (const location of locations) {
    if (otherIndexes.length > 0)
      requireLocal(location, `Writing indexes for ${otherIndexes.join(' and ')}`, INDEX_A_COPY);
    for (const shard of await abortable(signal, () => shardsAt(location, overwrite, storage))) {
      signal?.throwIfAborted();
      indexed.push(shard);
      checkOtherIndexes(shard.format, otherIndexes);
      if (shard.isKept) {
        report.kept++;
      } else {
        const { index, skippedEntries, skippedLinks } = await buildIndex(shard);
        await writeShardIndex(shard.index, index);
        report.shards++;
        report.samples += index.samples;
        report.skippedEntries += skippedEntries;
        report.skippedLinks += skippedLinks;
      }
      if (asked.includes('crops')) crops.push(await indexCrops(shard));
      if (otherIndexes.length === 0) continue;
      const folder = path.dirname(shard.path);
      if (!forWids.has(folder)) {
        forWids.set(folder, { records: [], ours: notedIndexes(folder) });
      }
      const { records, ours } = forWids.get(folder)!;
      records.push(await indexForOthers(shard, otherIndexes, ours));
    }
  }
  signal?.throwIfAborted();
  for (const [folder, { records, ours }] of forWids) {
    if (otherIndexes.includes('wids')) await writeWidsIndex(folder, records, ours.includes('wids'));
    await noteOtherIndexes(folder, otherIndexes);
  }
  const isColumns = columns.length + labels.length > 0;
  return {
    ...report,
    crops: asked.includes('crops') ? cropTotals(crops) : null,
    columns: isColumns ? await columnsOf(locations, indexed, { columns, labels }) : null,
  };
}

/** Adds the columns to the indexes, and lists them in the manifests of packed datasets. */
async function columnsOf(
  locations: readonly string[],
  shards: readonly ShardToIndex[],
  wanted: AddedColumns,
): Promise<ColumnsReport> {
  const packed = new Set(shards.filter(({ isPacked }) => isPacked).map(({ path: shard }) => shard));
  const folders =
    packed.size === 0 ? [] : locations.filter((location) => existsSync(path.join(location, MANIFEST_FILE)));
  const held: OutputFolder[] = [];
  try {
    for (const folder of folders) held.push(await OutputFolder.open(folder));
    const report = await addColumns(shards, wanted);
    for (const folder of folders) {
      const manifest = await readManifest(folder);
      const added = new Set(report.columns.map(({ name }) => name));
      const stay = manifest.columns.filter(({ name }) => !added.has(name));
      await writeManifest(folder, { ...manifest, columns: [...stay, ...report.columns] });
    }
    return report;
  } finally {
    for (const folder of held) folder.release();
  }
}

/**
 * The crop index of a packed shard is recorded, so that it is removed when the shards are replaced, and also made for
 * added shards.
 */
async function indexCrops({ path: shard, format, storage, index, isPacked }: ShardToIndex): Promise<CropIndexCounts> {
  const place = isPacked ? sidecarPath('crops', shard) : await placeSidecar('crops', shard, false, storage);
  if (isPacked && (await ownerOf('crops', place)) === 'other') {
    throw new FileError(
      { path: place },
      `${place} was not written by shardtool, so it is not replaced; move it away and run this again.`,
    );
  }
  const source = await openShard(format, shard, undefined, storage);
  try {
    const counts = await writeCropIndex(place, await readShardIndex(index), source);
    if (isPacked) await noteOtherIndexes(path.dirname(place), ['crops']);
    return counts;
  } finally {
    await source.close();
  }
}

/** Writes the DALI index if it is requested, and returns the tar's entry in the wids index. */
async function indexForOthers(
  shard: ShardToIndex,
  otherIndexes: readonly OtherIndex[],
  ours: readonly OtherIndex[],
): Promise<WidsShard> {
  const tar = shard.path;
  const index = await readShardIndex(shard.index);
  if (otherIndexes.includes('dali')) await writeDaliIndex(tar, index, ours.includes('dali'));
  if (otherIndexes.includes('wids')) checkWidsNames(index, tar);
  const fd = openSync(tar, 'r');
  try {
    return { file: path.basename(tar), samples: index.samples, bytes: fstatSync(fd).size, md5: md5Of(fd) };
  } finally {
    closeSync(fd);
  }
}

interface ShardToIndex {
  readonly path: string;
  readonly format: LayoutName;
  /** Options for requests, if it is remote. */
  readonly storage?: StorageOptions | undefined;
  /** Path of its index, existing or new. */
  readonly index: string;
  /** True if the index exists and is kept. */
  readonly isKept: boolean;
  /** True if a manifest lists the shard. */
  readonly isPacked: boolean;
}

const INDEX_A_COPY = 'index a copy on this machine, and copy the new files next to the shards';

async function shardsAt(
  location: string,
  overwrite: boolean,
  storage: StorageOptions | undefined,
): Promise<ShardToIndex[]> {
  const { layout, manifest, shards } = await findShards(location, { storage });
  if (manifest !== null) requireLocal(location, 'Indexing the shards of a pack', INDEX_A_COPY);
  const unknown = manifest === null ? shards.find(({ name }) => layoutOfName(name) === null) : undefined;
  if (unknown !== undefined) throw noShard(unknown.path);
  removeAbandonedSidecars(shards.map(({ path: shard }) => shard));
  return Promise.all(
    shards.map(async ({ path: shard }): Promise<ShardToIndex> => {
      if (!isRemote(shard)) await moveFromEarlierPlaces(shard, manifest !== null);
      if (manifest !== null) {
        const index = indexPathOf(shard);
        return { path: shard, format: layout, index, isKept: existsSync(index), isPacked: true };
      }
      const kept = overwrite ? null : await findSidecars('index', shard, storage);
      const index = kept ?? (await placeSidecar('index', shard, false, storage));
      return { path: shard, format: layout, storage, index, isKept: kept !== null, isPacked: false };
    }),
  );
}

function noShard(path: string): FileError {
  return new FileError(
    { path },
    `${path} does not have the name of a shard; give tars, shards of another supported format, or a folder of them.`,
  );
}

async function buildIndex({ path: shard, format, storage }: ShardToIndex) {
  if (format === 'lmdb') {
    throw new UnsupportedShardError(
      { shard },
      `${shard}: an LMDB shard does not record the order in which its samples were packed, so its index cannot be rebuilt; ` +
        'restore the index from a copy, or pack again.',
    );
  }
  const source = await openShard(format, shard, undefined, storage);
  try {
    let [skippedEntries, skippedLinks] = [0, 0];
    const index = await buildShardIndex(await layoutOf(format), source, (_, __, kind) => {
      if (kind === 'link') skippedLinks++;
      else skippedEntries++;
    });
    return { index, skippedEntries, skippedLinks };
  } finally {
    await source.close();
  }
}
