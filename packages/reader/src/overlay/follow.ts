import { inTurn, range, totalOf } from '@shardtool/base';
import {
  isSet,
  keptVersions,
  OVERLAYS_FOLDER,
  type Overlay,
  OverlayEncoder,
  type OverlayEntry,
  PackedChanges,
  parseOverlay,
  type RowPlace,
  rowBits,
  type ShardChanges,
} from '@shardtool/format';
import { joinLocation, openStorage, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import { KeyTable } from '../dataset/keys/key-table.js';
import { openStored } from '../dataset/open-stored.js';
import type { StoredParts } from '../dataset/stored-dataset.js';
import { relabel } from './change-index.js';
import { type Layers, layersOf } from './layers.js';
import { overlayNames } from './names.js';
import { ChangeCounter, packedEntries } from './pack-changes.js';

const READ_AT_ONCE = 8;

export interface FollowOptions {
  readonly storage?: StorageOptions | undefined;
  /** Whether a sample with this key was erased. Other overlays are copied to `overlays/dropped` before they change. */
  readonly isErased: (key: string) => boolean;
}

/** Overlays that now fit the dataset, and those that fit none of its versions. */
export interface FollowReport {
  readonly moved: readonly string[];
  readonly lost: readonly string[];
}

/**
 * Makes the overlays of a dataset fit its current shards after a change: each entry moves with its key, and entries of
 * samples that are gone are dropped. Overlays that fit already stay as they are, so that an interrupted call can be
 * repeated. Throws FileError, OverlayError, ShardIndexError.
 */
export async function followOverlays(location: string, { storage, isErased }: FollowOptions): Promise<FollowReport> {
  const names = await overlayNames(location, storage);
  if (names.length === 0) return { moved: [], lost: [] };
  const overlays = new Map<string, Overlay>();
  for (const name of names) {
    const file = joinLocation(location, `${OVERLAYS_FOLDER}/${name}.jsonl`);
    overlays.set(name, parseOverlay(await readWhole(file, storage), shownLocation(file)));
  }
  const now = await openStored(location, { storage });
  const versions = new OldVersions(location, storage);
  const moved: string[] = [];
  const lost: string[] = [];
  for (const name of parentsFirst(overlays)) {
    const overlay = overlays.get(name)!;
    const parent = overlay.parent === null ? null : (overlays.get(overlay.parent.name) ?? null);
    const hasMoved = parent !== null && parent.hash !== overlay.parent!.hash && follows(parent, overlay.parent!.hash);
    const fits = isBase(overlay, now);
    if (fits && !hasMoved) continue;
    const old = fits ? now : await versions.find(overlay);
    if (old === null || (overlay.parent !== null && lost.includes(overlay.parent.name))) {
      lost.push(name);
      continue;
    }
    const { entries, namesErased } = fits
      ? { entries: [...overlay.entries], namesErased: false }
      : await movedEntries(overlay, { old, now, isErased }, chainOf(overlay, overlays));
    const encoder = new OverlayEncoder({
      ...overlay,
      parent: parent === null ? overlay.parent : { name: parent.name, hash: parent.hash },
      dataset: now.identityOfFirst(now.shards.length),
      shards: now.shards.length,
      follows: [...(overlay.follows ?? []), overlay.hash],
    });
    for (const entry of entries) encoder.add(entry);
    const bytes = Buffer.concat(encoder.finish().pieces);
    const place = await openStorage(joinLocation(location, OVERLAYS_FOLDER), storage);
    const file = joinLocation(location, `${OVERLAYS_FOLDER}/${name}.jsonl`);
    if (!namesErased && !namesKey(overlay, isErased)) {
      await place.put(`dropped/${name}.${overlay.hash.slice(0, 16)}.jsonl`, await readWhole(file, storage));
    }
    await place.put(`${name}.jsonl`, bytes);
    overlays.set(name, parseOverlay(bytes, shownLocation(file)));
    moved.push(name);
  }
  return { moved, lost };
}

/** Whether an overlay names a key for which `test` is true. Packed changes name no keys. */
export function namesKey({ entries }: Pick<Overlay, 'entries'>, test: (key: string) => boolean): boolean {
  for (const entry of entries) {
    if (!(entry instanceof PackedChanges) && 'key' in entry && test(entry.key)) return true;
  }
  return false;
}

/** Whether an overlay sets columns without the keys of its samples, so that it cannot be searched for values of a sample. */
export function setsUnnamed({ entries, isPacked = false }: Pick<Overlay, 'entries' | 'isPacked'>): boolean {
  if (!isPacked) return false;
  for (const entry of entries) if ('changed' in entry && entry.columns.length > 0) return true;
  return false;
}

/** True if an overlay was made from one with this hash, when shards changed. */
function follows({ follows: earlier = [] }: Overlay, hash: string): boolean {
  return earlier.includes(hash);
}

function isBase({ dataset, shards }: Overlay, stored: Pick<StoredParts, 'shards' | 'identityOfFirst'>): boolean {
  return shards <= stored.shards.length && stored.identityOfFirst(shards) === dataset;
}

/** Returns names in an order in which each comes after its parent. */
function parentsFirst(overlays: ReadonlyMap<string, Overlay>): string[] {
  const depth = (name: string, below: number): number => {
    const parent = overlays.get(name)?.parent;
    return parent == null || below > overlays.size ? below : depth(parent.name, below + 1);
  };
  return [...overlays.keys()].sort((a, b) => depth(a, 0) - depth(b, 0));
}

/** The overlays below this one, the lowest first. */
function chainOf(overlay: Overlay, overlays: ReadonlyMap<string, Overlay>): Overlay[] {
  const parent = overlay.parent === null ? undefined : overlays.get(overlay.parent.name);
  return parent === undefined ? [] : [...chainOf(parent, overlays), parent];
}

/** Earlier versions of a dataset, opened when an overlay needs them. */
class OldVersions {
  readonly #location: string;
  readonly #storage: StorageOptions | undefined;
  #versions: Promise<string[]> | null = null;
  readonly #opened = new Map<string, StoredParts>();

  constructor(location: string, storage: StorageOptions | undefined) {
    this.#location = location;
    this.#storage = storage;
  }

  /** The version whose first shards an overlay was made for; null if none is kept. */
  async find(overlay: Overlay): Promise<StoredParts | null> {
    this.#versions ??= keptVersions(this.#location, this.#storage);
    for (const version of await this.#versions) {
      const stored =
        this.#opened.get(version) ?? (await openStored(this.#location, { version, storage: this.#storage }));
      this.#opened.set(version, stored);
      if (isBase(overlay, stored)) return stored;
    }
    return null;
  }
}

interface Move {
  readonly old: StoredParts;
  readonly now: StoredParts;
  readonly isErased: (key: string) => boolean;
}

interface MovedEntries {
  readonly entries: readonly OverlayEntry[];
  /** Whether packed changes changed an erased sample. */
  readonly namesErased: boolean;
}

/** Returns the entries of an overlay of `old` at their new positions. */
async function movedEntries(
  overlay: Overlay,
  { old, now, isErased }: Move,
  below: readonly Overlay[],
): Promise<MovedEntries> {
  const places = await Places.between(old, now);
  const counts = now.shards.map(({ samples }) => samples);
  const entries: OverlayEntry[] = [];
  /** Chosen rows of each new shard, by split. The entry '' has the rows of a subset. */
  const chosen = new Map<string, Map<number, Set<number>>>();
  const unpacked = new Map<number, Map<number, OverlayEntry[]>>();
  let namesErased = false;
  for (const entry of overlay.entries) {
    if (entry instanceof PackedChanges) {
      const same = places.ofShard(entry.changes);
      if (same !== null) entries.push(entry.ofShard(same));
      else {
        const file = old.shards[entry.changes]!;
        const { key } = await file.loadParts(['key']);
        for (const [row, changes] of changesByRow(entry.unpack(file.samples))) {
          namesErased ||= isErased(key[row]!);
          const at = places.ofKey([entry.changes, row], key[row]!);
          if (at === null) continue;
          const rows = unpacked.get(at[0]) ?? new Map<number, OverlayEntry[]>();
          unpacked.set(at[0], rows);
          rows.set(
            at[1],
            changes.map((change) => ('exclude' in change ? { ...change, exclude: at } : { ...change, at })),
          );
        }
      }
    } else if ('changed' in entry) continue;
    else if ('exclude' in entry) {
      const at = places.ofKey(entry.exclude, entry.key);
      if (at !== null) entries.push({ ...entry, exclude: at });
    } else if ('at' in entry) {
      const at = places.ofKey(entry.at, entry.key);
      if (at !== null) entries.push({ ...entry, at });
    } else if ('keep' in entry || ('shard' in entry && 'rows' in entry)) {
      const name = 'keep' in entry ? '' : entry.split;
      const shard = 'keep' in entry ? entry.keep : entry.shard;
      const rows = chosen.get(name) ?? new Map<number, Set<number>>();
      chosen.set(name, rows);
      await addMoved(places, shard, Buffer.from(entry.rows, 'base64'), rows);
    } else entries.push(entry);
  }
  const bits = [...chosen].flatMap(([name, rows]) =>
    [...rows]
      .sort(([a], [b]) => a - b)
      .map(([shard, set]): OverlayEntry => {
        const text = rowBits(counts[shard]!, (row) => set.has(row));
        return name === '' ? { keep: shard, rows: text } : { split: name, shard, rows: text };
      }),
  );
  for (const [shard, rows] of [...unpacked].sort(([a], [b]) => a - b)) {
    const changes = [...rows].sort(([a], [b]) => a - b).flatMap(([, some]) => some);
    for (const entry of packedEntries(shard, counts[shard]!, changes)) entries.push(entry);
  }
  if (overlay.isPacked === true) entries.push(await totalsOf(entries, now, below));
  return {
    entries:
      chosen.size === 0 ? entries : await recounted({ ...overlay, entries: [...entries, ...bits] }, now, below, counts),
    namesErased,
  };
}

type RowChange = Extract<OverlayEntry, { readonly exclude: RowPlace } | { readonly at: RowPlace }>;

/** The changes of a shard by row. Keys, positions and classes below are not known here. */
function changesByRow({ excluded, clsRows, cls, columns }: ShardChanges): Map<number, RowChange[]> {
  const byRow = new Map<number, RowChange[]>();
  const add = (row: number, change: RowChange): void => {
    const known = byRow.get(row);
    if (known === undefined) byRow.set(row, [change]);
    else known.push(change);
  };
  const unknown = { at: [0, 0] as const, key: '', was: -1 };
  for (const row of excluded) add(row, { exclude: [0, 0], key: '', was: -1 });
  clsRows.forEach((row, i) => {
    add(row, { ...unknown, cls: cls[i]! });
  });
  for (const [name, { rows, values }] of columns) {
    rows.forEach((row, i) => {
      add(row, { set: [[name, values[i]!]], at: [0, 0], key: '' });
    });
  }
  return byRow;
}

/** Counts packed changes, with the classes that their samples have below. */
async function totalsOf(
  entries: readonly OverlayEntry[],
  now: StoredParts,
  below: readonly Overlay[],
): Promise<OverlayEntry> {
  const counts = now.shards.map(({ samples }) => samples);
  const layers = layersOf(below, { ...now, counts });
  const classes = entries.find((entry) => 'classes' in entry && !(entry instanceof PackedChanges));
  const counter = new ChangeCounter(layers, classes !== undefined && 'classes' in classes ? classes.classes : null);
  const packed = entries.filter((entry) => entry instanceof PackedChanges);
  const read = inTurn(packed, READ_AT_ONCE, async (entry) => {
    const index = await now.shards[entry.changes]!.loadParts(['cls']);
    return { entry, cls: relabel(index, entry.changes, layers.layers).cls };
  });
  for await (const { entry, cls } of read) {
    for (const [row, changes] of changesByRow(entry.unpack(counts[entry.changes]!))) {
      const at: RowPlace = [entry.changes, row];
      const was = cls?.[row] ?? -1;
      const set = changes.flatMap((change) => ('set' in change ? change.set : []));
      for (const change of changes) {
        if ('exclude' in change) counter.add({ ...change, exclude: at, was });
        else if ('cls' in change) counter.add({ ...change, at, was });
      }
      if (set.length > 0) counter.add({ set, at, key: '' });
    }
  }
  return counter.entry();
}

/**
 * Adds the chosen rows of an old shard at their new positions. The result contains every shard that has rows of it,
 * even if none are chosen.
 */
async function addMoved(
  places: Places,
  shard: number,
  bits: Uint8Array,
  rows: Map<number, Set<number>>,
): Promise<void> {
  const moved = await places.ofRows(shard);
  moved.forEach((at, row) => {
    if (at === null) return;
    const set = rows.get(at[0]) ?? new Set<number>();
    rows.set(at[0], set);
    if (isSet(bits, row)) set.add(at[1]);
  });
}

/** Returns the entries with the current numbers of samples of splits and subsets. */
async function recounted(
  overlay: Overlay,
  now: StoredParts,
  below: readonly Overlay[],
  counts: readonly number[],
): Promise<readonly OverlayEntry[]> {
  const layers: Layers = layersOf([...below, overlay], { ...now, counts });
  const kept = layers.layers.at(-1)!.kept;
  const numbers = new Map<string, { samples: number; classSamples: number[] }>();
  const countOf = (name: string) => {
    const found = numbers.get(name) ?? { samples: 0, classSamples: layers.classSamples.map(() => 0) };
    numbers.set(name, found);
    return found;
  };
  const indexes = inTurn(now.shards, READ_AT_ONCE, (file) => file.loadParts(['cls']));
  let shard = 0;
  for await (const index of indexes) {
    const { cls = new Int32Array(index.samples).fill(-1) } = relabel(index, shard, layers.layers);
    const chosen: [string, Uint8Array | undefined][] = [...layers.splits].map(([name, { rows }]) => [
      name,
      rows.get(shard),
    ]);
    if (kept !== null) chosen.push(['', kept.get(shard)]);
    for (const [name, bits] of chosen) {
      const count = countOf(name);
      for (let row = 0; row < index.samples; row++) {
        if (!isSet(bits, row)) continue;
        count.samples++;
        if (cls[row]! >= 0) count.classSamples[cls[row]!] = (count.classSamples[cls[row]!] ?? 0) + 1;
      }
    }
    shard++;
  }
  return [...overlay.entries].map((entry) => {
    if ('rule' in entry) return { ...entry, ...countOf(entry.split) };
    if (!('kept' in entry)) return entry;
    const { samples, classSamples } = countOf('');
    return { kept: samples, classSamples };
  });
}

/** Finds the current positions of the samples of an older version. */
class Places {
  readonly #old: StoredParts;
  /** Current number of each old shard that still exists. */
  readonly #same: ReadonlyMap<number, number>;
  /** Keys of the new shards, in their order. */
  readonly #keys: KeyTable;
  /** Position of each sample in {@link #keys}. */
  readonly #shards: readonly { readonly shard: number; readonly first: number }[];

  private constructor(
    old: StoredParts,
    same: ReadonlyMap<number, number>,
    keys: KeyTable,
    shards: readonly { readonly shard: number; readonly first: number }[],
  ) {
    this.#old = old;
    this.#same = same;
    this.#keys = keys;
    this.#shards = shards;
  }

  static async between(old: StoredParts, now: StoredParts): Promise<Places> {
    const names = new Map(now.shards.map((file, shard) => [nameOf(file), shard]));
    const same = new Map<number, number>();
    const known = new Set<number>();
    old.shards.forEach((file, shard) => {
      const found = names.get(nameOf(file));
      if (found === undefined) return;
      same.set(shard, found);
      known.add(found);
    });
    const added = now.shards.map((file, shard) => ({ file, shard })).filter(({ shard }) => !known.has(shard));
    const keys = new KeyTable(totalOf(added, ({ file }) => file.samples));
    const shards: { shard: number; first: number }[] = [];
    let first = 0;
    for await (const { shard, key } of inTurn(added, READ_AT_ONCE, async ({ file, shard }) => ({
      shard,
      key: (await file.loadParts(['key'])).key,
    }))) {
      shards.push({ shard, first });
      keys.add(key);
      first += key.length;
    }
    return new Places(old, same, keys, shards);
  }

  ofKey([shard, row]: RowPlace, key: string): RowPlace | null {
    const same = this.#same.get(shard);
    if (same !== undefined) return [same, row];
    const number = this.#keys.numberOf(key);
    if (number < 0) return null;
    const at = this.#shards.findLast(({ first }) => first <= number)!;
    return [at.shard, number - at.first];
  }

  /** Returns the current number of an old shard; null if it does not exist any more. */
  ofShard(shard: number): number | null {
    return this.#same.get(shard) ?? null;
  }

  /** Returns the positions of all rows of an old shard. */
  async ofRows(shard: number): Promise<readonly (RowPlace | null)[]> {
    const file = this.#old.shards[shard]!;
    if (this.#same.has(shard)) return range(file.samples).map((row) => [this.#same.get(shard)!, row]);
    const { key } = await file.loadParts(['key']);
    return key.map((one, row) => this.ofKey([shard, row], one));
  }
}

function nameOf({ name, crc32 }: { readonly name: string; readonly crc32?: string | undefined }): string {
  return `${name} ${crc32}`;
}
