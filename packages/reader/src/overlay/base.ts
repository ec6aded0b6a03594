import { inTurn } from '@shardtool/base';
import type { IndexPart, Overlay, OverlayEntry, OverlayHeader } from '@shardtool/format';
import type { StorageOptions } from '@shardtool/storage';
import type { IndexPieces } from '../dataset/inspection-columns.js';
import { withInspection } from '../dataset/inspection-columns.js';
import { openStored } from '../dataset/open-stored.js';
import { relabel } from './change-index.js';
import { overlayPath, readOverlays } from './find.js';
import { type Layers, layersOf, rowsGone } from './layers.js';
import { checkOverlayName, saveOverlay } from './save.js';

/** What a new overlay is made on: a dataset, and the overlays below. */
export interface OverlayBase {
  readonly location: string;
  readonly storage: StorageOptions | undefined;
  readonly stored: Awaited<ReturnType<typeof openStored>>;
  readonly chain: readonly Overlay[];
  readonly below: Layers;
  /** Samples of each shard. */
  readonly counts: readonly number[];
}

/** A shard as the overlays below show it. All rows are there; those that are left out are marked. */
export interface ShownShard {
  readonly shard: number;
  readonly index: IndexPieces;
  /** 1 for each row that an overlay below leaves out. */
  readonly gone: Uint8Array;
}

const READ_AT_ONCE = 8;

export async function openBase(
  location: string,
  parent: string | undefined,
  storage: StorageOptions | undefined,
): Promise<OverlayBase> {
  const stored = await openStored(location, { storage });
  const chain = parent === undefined ? [] : await readOverlays(location, parent, storage);
  const counts = stored.shards.map(({ samples }) => samples);
  return { location, storage, stored, chain, counts, below: layersOf(chain, { ...stored, counts }) };
}

/** Goes through the indexes, or parts of them, with those columns of inspections that are among the names. */
export async function* shownShards(
  { stored, below }: OverlayBase,
  parts: readonly IndexPart[],
  names: ReadonlySet<string> = new Set(),
): AsyncGenerator<ShownShard> {
  const indexes = inTurn(stored.shards, READ_AT_ONCE, async (file): Promise<IndexPieces> => {
    return withInspection(await file.loadParts(parts), file, names);
  });
  let shard = 0;
  for await (const index of indexes) {
    yield { shard, index: relabel(index, shard, below.layers), gone: rowsGone(below, shard, index.samples) };
    shard++;
  }
}

/** Writes the overlay that was made on a base. Throws OverlayError where the name is taken, FileError. */
export async function saveOn(
  { location, storage, stored, chain, counts }: OverlayBase,
  {
    name,
    note,
    file = overlayPath(location, name),
  }: Pick<OverlayHeader, 'name' | 'note'> & { file?: string | undefined },
  entries: Iterable<OverlayEntry>,
): Promise<{ readonly file: string; readonly hash: string }> {
  checkOverlayName(name);
  const above = chain.at(-1);
  const header: OverlayHeader = {
    name,
    parent: above === undefined ? null : { name: above.name, hash: above.hash },
    dataset: stored.identityOfFirst(counts.length),
    shards: counts.length,
    note,
  };
  return { file, hash: await saveOverlay(file, header, entries, storage) };
}
