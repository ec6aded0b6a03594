import {
  abortable,
  CALL_OPTIONS,
  checkCallOptions,
  checkLocation,
  isUnreadable,
  type OptionTable,
  RequestRejectedError,
  ShardtoolError,
} from '@shardtool/base';
import {
  type ColumnType,
  type ColumnValue,
  columnTypeOf,
  type Overlay,
  OverlayError,
  PackedChanges,
} from '@shardtool/format';
import { canBeListed, type StorageOptions } from '@shardtool/storage';
import { openStored } from '../dataset/open-stored.js';
import type { OverlayPlaceOptions } from './base.js';
import { overlayPath, readOverlays } from './find.js';
import { overlayNames } from './names.js';
import { moveOverlay } from './save.js';
import { countEntries, type OverlayCounts } from './summary.js';

/** An overlay of a dataset, as an entry of a list. */
export interface OverlaySummary extends OverlayCounts {
  readonly name: string;
  readonly parent: string | null;
  readonly hash: string;
  readonly note: string;
}

/** A fault of an overlay of a dataset. */
export interface OverlayFault {
  readonly overlay: string;
  readonly sentence: string;
}

const OPTIONS = { storage: CALL_OPTIONS.storage, signal: CALL_OPTIONS.signal } as const satisfies OptionTable;

const KEY_READS = 8;

/** Checks the arguments of a call about overlays, and rejects as soon as its signal aborts. The work must not write. */
async function asking<T>(
  call: string,
  location: string,
  options: OverlayPlaceOptions,
  work: (storage: StorageOptions | undefined) => Promise<T>,
): Promise<T> {
  checkLocation(call, location);
  checkCallOptions(call, OPTIONS, options);
  return abortable(options.signal, () => work(options.storage));
}

/** Returns the overlays in the dataset's own folder, by name. Throws {@link OverlayError} if one cannot be read. */
export async function listOverlays(location: string, options: OverlayPlaceOptions = {}): Promise<OverlaySummary[]> {
  return asking('listOverlays', location, options, async (storage) => {
    const names = await overlayNames(location, storage);
    return Promise.all(names.map(async (name) => summaryOf((await readOverlays(location, name, storage)).at(-1)!)));
  });
}

/** Returns an overlay and all overlays below it, the lowest first: the history of changes. */
export async function overlayHistory(
  location: string,
  overlay: string,
  options: OverlayPlaceOptions = {},
): Promise<OverlaySummary[]> {
  const chain = await asking('overlayHistory', location, options, (storage) =>
    readOverlays(location, overlay, storage),
  );
  return chain.map(summaryOf);
}

/** Returns the types of the columns that an overlay and those below it set, together with those of the dataset. */
export async function overlayColumnTypes(
  location: string,
  overlay: string,
  known: ReadonlyMap<string, ColumnType>,
  { storage }: OverlayPlaceOptions = {},
): Promise<Map<string, ColumnType>> {
  const types = new Map(known);
  const names = new Set<string>();
  for (const { entries } of await readOverlays(location, overlay, storage)) {
    for (const entry of entries) {
      const set =
        entry instanceof PackedChanges
          ? entry.columnValues()
          : 'set' in entry
            ? entry.set.map(([name, value]) => [name, [value]] as const)
            : [];
      for (const [name, values] of set) {
        names.add(name);
        const present = values.filter((value) => value !== null);
        if (present.length === 0) continue;
        types.set(name, columnTypeOf(name, [...(SAMPLE_OF[types.get(name)!] ?? []), ...present]));
      }
    }
  }
  for (const name of names) if (!types.has(name)) types.set(name, columnTypeOf(name, []));
  return types;
}

/** A value of each type. A column keeps its type, or gets the type that can hold both. */
const SAMPLE_OF: Readonly<Record<ColumnType, readonly ColumnValue[]>> = {
  string: [''],
  int: [0],
  double: [0.5],
  bool: [true],
};

/** Returns one overlay with all its entries. */
export async function readOverlay(
  location: string,
  overlay: string,
  options: OverlayPlaceOptions = {},
): Promise<Overlay> {
  const chain = await asking('readOverlay', location, options, (storage) => readOverlays(location, overlay, storage));
  return chain.at(-1)!;
}

/**
 * Removes an overlay from the dataset's folder of overlays. The file is kept in the folder `dropped` there. Returns its
 * new path. Throws {@link OverlayError} if another overlay builds on it.
 */
export async function removeOverlay(
  location: string,
  name: string,
  options: OverlayPlaceOptions = {},
): Promise<string> {
  const { storage, signal } = options;
  const [dropped] = (
    await asking('removeOverlay', location, options, () => readOverlays(location, name, storage))
  ).slice(-1);
  const above = (await listOverlays(location, { storage, signal })).find(({ parent }) => parent === name);
  if (above !== undefined) {
    throw new OverlayError(
      { path: overlayPath(location, name) },
      `The overlay "${above.name}" is based on "${name}": drop "${above.name}" first.`,
    );
  }
  signal?.throwIfAborted();
  return moveOverlay(overlayPath(location, name), `dropped/${name}.${dropped!.hash.slice(0, 16)}.jsonl`, storage);
}

/**
 * Checks every overlay of a dataset: its hash and those of its parents, the shards that it was made for, and the
 * position of each key.
 */
export async function checkOverlays(location: string, options: OverlayPlaceOptions = {}): Promise<OverlayFault[]> {
  return asking('checkOverlays', location, options, (storage) => faultsOf(location, storage));
}

async function faultsOf(location: string, storage: StorageOptions | undefined): Promise<OverlayFault[]> {
  const names = await overlayNames(location, storage).catch((error) => {
    // Overlays of a location that cannot be listed, or must not be, are unknown.
    if (!canBeListed(location) || error instanceof RequestRejectedError) return [];
    throw error;
  });
  if (names.length === 0) return [];
  const stored = await openStored(location, { storage });
  const faults: OverlayFault[] = [];
  const overlays: Overlay[] = [];
  for (const name of names) {
    try {
      const overlay = (await readOverlays(location, name, storage)).at(-1)!;
      if (overlay.name !== name)
        faults.push({ overlay: name, sentence: `its content says that its name is "${overlay.name}"` });
      if (overlay.shards <= stored.shards.length && stored.identityOfFirst(overlay.shards) === overlay.dataset) {
        overlays.push(overlay);
      } else faults.push({ overlay: name, sentence: 'it was made for other shards than those of this dataset' });
    } catch (error) {
      if (!(error instanceof ShardtoolError) || isUnreadable(error)) throw error;
      faults.push({ overlay: name, sentence: error.message });
    }
  }
  for (const overlay of overlays) {
    const sentence = faultOfPacked(overlay, (shard) => stored.shards[shard]?.samples ?? -1);
    if (sentence !== null) faults.push({ overlay: overlay.name, sentence });
  }
  const placed = overlays.map((overlay) => ({ overlay, byShard: keysByShard(overlay), wrong: 0, first: '' }));
  for (let first = 0; first < stored.shards.length; first += KEY_READS) {
    const files = stored.shards.slice(first, first + KEY_READS);
    const read = await Promise.all(files.map((file) => file.loadParts(['key'])));
    read.forEach(({ key }, i) => {
      for (const check of placed) {
        for (const { row, key: expected } of check.byShard.get(first + i) ?? []) {
          if (key[row] === expected) continue;
          if (check.wrong++ === 0) check.first = expected;
        }
      }
    });
  }
  for (const { overlay, wrong, first } of placed) {
    if (wrong === 0) continue;
    faults.push({
      overlay: overlay.name,
      sentence: `${wrong} keys are not at the positions that it has for them; "${first}" is the first`,
    });
  }
  return faults;
}

/** A fault of the packed changes of an overlay; null if they fit the shards. */
function faultOfPacked({ entries }: Overlay, samplesOf: (shard: number) => number): string | null {
  try {
    for (const entry of entries) if (entry instanceof PackedChanges) entry.unpack(samplesOf(entry.changes));
    return null;
  } catch (error) {
    if (error instanceof OverlayError) return error.message;
    throw error;
  }
}

function keysByShard({ entries }: Overlay): Map<number, { row: number; key: string }[]> {
  const byShard = new Map<number, { row: number; key: string }[]>();
  for (const entry of entries) {
    if (entry instanceof PackedChanges || !('key' in entry)) continue;
    const [shard, row] = 'exclude' in entry ? entry.exclude : entry.at;
    const list = byShard.get(shard) ?? [];
    byShard.set(shard, list);
    list.push({ row, key: entry.key });
  }
  return byShard;
}

function summaryOf({ name, parent, hash, note, entries }: Overlay): OverlaySummary {
  return { name, parent: parent?.name ?? null, hash, note, ...countEntries(entries) };
}
