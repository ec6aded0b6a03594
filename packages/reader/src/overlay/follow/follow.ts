import { FileNotFoundError } from '@shardtool/base';
import {
  keptVersions,
  OVERLAYS_FOLDER,
  type Overlay,
  OverlayEncoder,
  PackedChanges,
  parseOverlay,
} from '@shardtool/format';
import { joinLocation, openStorage, readWhole, type StorageOptions, shownLocation } from '@shardtool/storage';
import { openStored } from '../../dataset/open-stored.js';
import type { StoredParts } from '../../dataset/stored-dataset.js';
import { overlayNames } from '../names.js';
import { movedEntries } from './moved-entries.js';

export interface FollowOptions {
  readonly storage?: StorageOptions | undefined;
  /**
   * Whether a sample with this key was erased. An overlay that names no erased sample is copied to `overlays/dropped`
   * before it changes.
   */
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
    const bytes = await readIfThere(file, storage);
    if (bytes !== null) overlays.set(name, parseOverlay(bytes, shownLocation(file)));
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
      const before = await readIfThere(file, storage);
      if (before === null) continue;
      await place.put(`dropped/${name}.${overlay.hash.slice(0, 16)}.jsonl`, before);
    }
    await place.put(`${name}.jsonl`, bytes);
    overlays.set(name, parseOverlay(bytes, shownLocation(file)));
    moved.push(name);
  }
  return { moved, lost };
}

/** Reads an overlay. Null if another process has removed it since overlays were listed. */
async function readIfThere(file: string, storage: StorageOptions | undefined): Promise<Uint8Array | null> {
  try {
    return await readWhole(file, storage);
  } catch (error) {
    if (error instanceof FileNotFoundError) return null;
    throw error;
  }
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
