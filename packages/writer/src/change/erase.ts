import { existsSync } from 'node:fs';
import { FileNotFoundError, inTurn, OptionError, type OptionTable, option, sentence } from '@shardtool/base';
import { keptVersions, type Manifest, readVersion } from '@shardtool/format';
import { compileWhere, openDataset, selectableOf } from '@shardtool/reader';
import { openStorage, type StorageOptions, shownLocation } from '@shardtool/storage';
import { planPath } from '../output/pack-state.js';
import { addTombstones, readTombstones } from '../output/tombstones.js';
import type { ShardRecord } from '../shard/new-shard.js';
import {
  CHANGE_OPTIONS,
  type ChangeOptions,
  changeDataset,
  changing,
  commitChange,
  type OpenChange,
} from './dataset-change.js';
import { forgetErased } from './forget-erased.js';
import { forgetChange, pendingChanges, putPending } from './pending.js';
import { updateWidsIndex } from './wids-index.js';
import { manifestWithout, type RemovedRows, removedRows, rewriteShards } from './without-samples.js';

/** The samples to erase, and the checks afterwards. */
export interface EraseOptions extends ChangeOptions {
  /** Keys of samples. */
  readonly keys?: Iterable<string> | undefined;
  /** Samples for which this expression is true. */
  readonly where?: string | undefined;
  /** Searches every shard of every version for the samples afterwards. Default: false. */
  readonly verify?: boolean | undefined;
}

const ERASE_OPTIONS = {
  ...CHANGE_OPTIONS,
  keys: { kind: 'own', type: 'Iterable<string>', must: 'is a list of keys', help: 'Samples to erase' },
  where: { kind: 'text', help: 'Samples to erase' },
  verify: { kind: 'switch', default: false, help: 'Whether all shards are searched afterwards' },
} as const satisfies OptionTable;

/** What {@link eraseSamples} did. */
export interface EraseReport {
  /** Samples that were removed from the current version now. */
  readonly erased: number;
  /** How many of them an interrupted call had begun to erase, and this one did not name. */
  readonly resumed: number;
  /** Keys that the current version did not have: unknown, or erased earlier. */
  readonly missing: number;
  /** Number of shards that were written again, and of shards that were removed because no sample of them was left. */
  readonly rewrittenShards: number;
  readonly removedShards: number;
  /** The current version. */
  readonly version: string;
  /** Earlier versions whose shards still have the samples: "gc" removes them. */
  readonly heldBy: readonly string[];
  /** With `verify`: number of shards that were searched; null without. */
  readonly searchedShards: number | null;
}

const READ_AT_ONCE = 8;

/**
 * Removes samples from a dataset for good. Only the shards that have them are written again, in new files, and the
 * overlays follow. Hashes of the keys stay in the folder `erased`, so that later appends do not bring the samples back.
 * The bytes are gone when `gc` has removed the versions that the report names. An interrupted call can be repeated, and
 * the next call finishes it in any case. Throws OptionError for options that are not allowed, and if no sample would be
 * left. Also throws DatasetChangedError and FileError.
 */
export async function eraseSamples(location: string, options: EraseOptions): Promise<EraseReport> {
  return changing('eraseSamples', ERASE_OPTIONS, location, options, () =>
    changeDataset(location, options, (change) => erase(change, options)),
  );
}

async function erase(change: OpenChange, options: EraseOptions): Promise<EraseReport> {
  const { location, storage: how, manifest } = change;
  const storage = await openStorage(location, how);
  const wanted = await wantedKeys(location, options, how);
  const earlier = (await pendingChanges(storage)).filter(({ erases }) => erases.length > 0);
  const begun = new Set(earlier.flatMap(({ erases }) => erases));
  const before = await readTombstones(storage);
  const isWanted = (key: string) => wanted.has(key) || (begun.size > 0 && begun.has(before.hashOf(key)));
  const rows = await findRows(location, manifest, isWanted, how);
  const found = new Set([...rows.values()].flatMap(({ keys }) => keys));
  const path = shownLocation(location);
  const left = manifest.samples - [...rows.values()].reduce((sum, { keys }) => sum + keys.length, 0);
  if (left === 0 && rows.size > 0) {
    throw new OptionError({ path }, `Nothing would be left of ${path}: remove the dataset instead.`);
  }
  const unmarked = [...wanted].filter((key) => !before.has(key));
  // The tombstones are written first: from now on, no append brings the samples back, even if this call is killed.
  if (unmarked.length > 0) await addTombstones(storage, unmarked);
  const erased = await readTombstones(storage);
  await discardPlan(change);
  let version = manifest.identity;
  let rewritten: readonly ShardRecord[] = [];
  if (rows.size > 0) {
    const remedy = 'erase the samples in its source dataset, and convert that again';
    const hashes = [...found].map((key) => erased.hashOf(key));
    const made = await rewriteShards(change, rows, remedy, hashes);
    rewritten = made.records.filter(({ samples }) => samples > 0);
    const next = manifestWithout(manifest, rows, made.records);
    version = next.identity;
    await updateWidsIndex(change, next, rewritten);
    await change.destination.sendNotes();
    await commitChange(change, next, 'erase');
    await forgetErased(storage, change.destination, erased);
    await forgetChange(storage, made.announced);
  } else await forgetErased(storage, change.destination, erased);
  for (const one of earlier) await putPending(storage, { ...one, erases: [] });
  // Without a search, the rows found above tell which shards of the previous version contain the samples.
  const known = options.verify === true ? [] : manifest.shards.map((shard, i) => [nameOf(shard), rows.has(i)] as const);
  const { heldBy, searched } = await holdersOf(location, isWanted, new Map(known), version, how);
  return {
    erased: manifest.samples - left,
    resumed: [...found].filter((key) => !wanted.has(key)).length,
    missing: [...wanted].filter((key) => !found.has(key)).length,
    rewrittenShards: rewritten.length,
    removedShards: rows.size - rewritten.length,
    version,
    heldBy,
    searchedShards: options.verify === true ? searched : null,
  };
}

/** An append that was killed could still bring an erased sample from its plan. */
async function discardPlan({ folder, destination }: OpenChange): Promise<void> {
  if (!existsSync(planPath(folder.path))) return;
  folder.discardPlan();
  await destination.removeGone();
}

/** The keys that are named, or that the expression selects. */
async function wantedKeys(
  location: string,
  { keys, where }: EraseOptions,
  storage: StorageOptions | undefined,
): Promise<ReadonlySet<string>> {
  if ((keys === undefined) === (where === undefined)) {
    throw new OptionError({}, sentence`Name the samples to erase: set either ${option('keys')} or ${option('where')}.`);
  }
  const wanted = new Set<string>(keys);
  if (where !== undefined) {
    await using dataset = await openDataset(location, { storage });
    const selectable = selectableOf(dataset, { where });
    const select = compileWhere(where, dataset.classes);
    for (let shard = 0; shard < dataset.shards.length; shard++) {
      const index = await selectable.indexOf(shard);
      const isChosen = select(index);
      index.key.forEach((key, row) => {
        if (isChosen(row)) wanted.add(key);
      });
    }
  }
  return wanted;
}

async function findRows(
  location: string,
  manifest: Manifest,
  isWanted: (key: string) => boolean,
  storage: StorageOptions | undefined,
): Promise<ReadonlyMap<number, RemovedRows>> {
  await using dataset = await openDataset(location, { version: manifest.identity, storage });
  const rows = new Map<number, RemovedRows>();
  const indexes = inTurn(
    manifest.shards,
    READ_AT_ONCE,
    async (_, shard) => (await dataset.shards[shard]!.loadParts(['key'])).key,
  );
  let shard = 0;
  for await (const keys of indexes) {
    if (keys.some(isWanted)) {
      const { cls, fields } = await dataset.shards[shard]!.loadParts(['cls', 'fields']);
      rows.set(
        shard,
        removedRows({ key: keys, cls, fields }, (row) => isWanted(keys[row]!)),
      );
    }
    shard++;
  }
  return rows;
}

/**
 * The versions that have a shard with one of the samples, according to the indexes of all shards except those in `known`.
 */
async function holdersOf(
  location: string,
  isWanted: (key: string) => boolean,
  known: ReadonlyMap<string, boolean>,
  current: string,
  storage: StorageOptions | undefined,
): Promise<{ readonly heldBy: readonly string[]; readonly searched: number }> {
  const versions = [...new Set([current, ...(await keptVersions(location, storage))])];
  const holds = new Map(known);
  const heldBy: string[] = [];
  for (const version of versions) {
    await using dataset = await openDataset(location, { version, storage });
    const { shards } = await readVersion(location, version, storage);
    const unknown = dataset.shards.filter((_, i) => !holds.has(nameOf(shards[i]!)));
    const found = inTurn(unknown, READ_AT_ONCE, (file) => isHolding(file, isWanted));
    const names = shards.map(nameOf).filter((name) => !holds.has(name));
    let i = 0;
    for await (const isHeld of found) holds.set(names[i++]!, isHeld);
    if (shards.some((shard) => holds.get(nameOf(shard)) === true)) heldBy.push(version);
  }
  return { heldBy, searched: holds.size };
}

/** A "gc" that was killed may have left parts of a shard. */
async function isHolding(
  file: { loadParts(parts: readonly ['key']): Promise<{ readonly key: readonly string[] }> },
  isWanted: (key: string) => boolean,
): Promise<boolean> {
  try {
    return (await file.loadParts(['key'])).key.some(isWanted);
  } catch (error) {
    if (error instanceof FileNotFoundError) return true;
    throw error;
  }
}

function nameOf({ file, crc32 }: Manifest['shards'][number]): string {
  return `${file} ${crc32}`;
}
