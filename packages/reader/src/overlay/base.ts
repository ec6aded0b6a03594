import { abortable, inTurn, range } from '@shardtool/base';
import { type IndexPart, type Overlay, OverlayError, type OverlayHeader, parseOverlay } from '@shardtool/format';
import { openStorage, readWhole, type StorageOptions, shownLocation, splitLocation } from '@shardtool/storage';
import type { IndexPieces } from '../dataset/inspection-columns.js';
import { withInspection } from '../dataset/inspection-columns.js';
import { openStored } from '../dataset/open-stored.js';
import type { StoredParts } from '../dataset/stored-dataset.js';
import { relabel } from './change-index.js';
import { overlayPath, readOverlays } from './find.js';
import { type Layers, layersOf, rowsGone } from './layers.js';
import { checkOverlayName, type EntryBatches, saveOverlay } from './save.js';

/** Options of calls that take an overlay's location. */
export interface OverlayPlaceOptions {
  /** Options for requests to remote storage. Omitted options come from the environment. */
  readonly storage?: StorageOptions | undefined;
  /** Aborts the call, which then rejects with the signal's reason. Nothing is written after that. */
  readonly signal?: AbortSignal | undefined;
}

/** The dataset that a new overlay is created for, with the overlays below. */
export interface OverlayBase {
  readonly location: string;
  readonly storage: StorageOptions | undefined;
  readonly signal: AbortSignal | undefined;
  readonly stored: Awaited<ReturnType<typeof openStored>>;
  readonly chain: readonly Overlay[];
  readonly below: Layers;
  /** Number of samples of each shard. */
  readonly counts: readonly number[];
}

/** A shard with the overlays below applied. All rows are present. Excluded rows are marked. */
export interface ShownShard {
  readonly shard: number;
  readonly index: IndexPieces;
  /** 1 for each row that an overlay below excludes. */
  readonly gone: Uint8Array;
}

const READ_AT_ONCE = 8;

export async function openBase(
  location: string,
  parent: string | undefined,
  { storage, signal }: OverlayPlaceOptions,
): Promise<OverlayBase> {
  const stored = await abortable(signal, () => openStored(location, { storage }));
  const chain = parent === undefined ? [] : await abortable(signal, () => readOverlays(location, parent, storage));
  const counts = stored.shards.map(({ samples }) => samples);
  return { location, storage, signal, stored, chain, counts, below: layersOf(chain, { ...stored, counts }) };
}

/**
 * Yields the indexes of shards, or parts of them, with the named columns of inspections. `numbers`: the shards. Default:
 * all of them.
 */
export async function* shownShards(
  { stored, below, signal }: Pick<OverlayBase, 'below' | 'signal'> & { readonly stored: StoredParts },
  parts: readonly IndexPart[],
  names: ReadonlySet<string> = new Set(),
  numbers: readonly number[] = range(stored.shards.length),
): AsyncGenerator<ShownShard> {
  const indexes = inTurn(numbers, READ_AT_ONCE, async (shard): Promise<{ shard: number; index: IndexPieces }> => {
    const file = stored.shards[shard]!;
    return abortable(signal, async () => ({
      shard,
      index: await withInspection(await file.loadParts(parts), file, names),
    }));
  });
  for await (const { shard, index } of indexes) {
    signal?.throwIfAborted();
    yield { shard, index: relabel(index, shard, below.layers), gone: rowsGone(below, shard, index.samples) };
  }
}

/**
 * Writes an overlay that was created for a base, unless its signal has aborted. Throws OverlayError if the name is taken, or if
 * the dataset was changed in the meantime, and FileError.
 */
export async function saveOn(
  base: OverlayBase,
  {
    name,
    note,
    isPacked,
    file = overlayPath(base.location, name),
  }: Pick<OverlayHeader, 'name' | 'note' | 'isPacked'> & { file?: string | undefined },
  entries: EntryBatches,
): Promise<{ readonly file: string; readonly hash: string }> {
  const { storage, signal, stored, chain, counts } = base;
  checkOverlayName(name);
  signal?.throwIfAborted();
  const above = chain.at(-1);
  const header: OverlayHeader = {
    name,
    parent: above === undefined ? null : { name: above.name, hash: above.hash },
    dataset: stored.identityOfFirst(counts.length),
    shards: counts.length,
    note,
    isPacked,
  };
  const hash = await saveOverlay(file, header, entries, storage);
  await refuseChanged(base, { name, file, hash });
  return { file, hash };
}

/** Removes an overlay, and throws OverlayError, if a change that did not see it has replaced shards it was created for. */
async function refuseChanged(
  { location, storage, stored, counts }: OverlayBase,
  { name, file, hash }: { readonly name: string; readonly file: string; readonly hash: string },
): Promise<void> {
  const now = await openStored(location, { storage });
  const isSame = counts.length <= now.shards.length;
  if (isSame && now.identityOfFirst(counts.length) === stored.identityOfFirst(counts.length)) return;
  // A change that saw the overlay has moved its entries to the new shards.
  if (parseOverlay(await readWhole(file, storage), shownLocation(file)).hash !== hash) return;
  const { folder, name: own } = splitLocation(file);
  await (await openStorage(folder, storage)).remove(own);
  const path = shownLocation(location);
  const message = `${path} was changed by another process in the meantime, so the overlay "${name}" was not created; run the same command again.`;
  throw new OverlayError({ path }, message);
}
