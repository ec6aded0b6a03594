import { createHash } from 'node:crypto';
import { OptionError } from '@shardtool/base';
import {
  type IndexPart,
  type InspectionFile,
  type Overlay,
  OverlayError,
  type PartOfIndex,
  type ShardIndex,
} from '@shardtool/format';
import type { IndexPieces, LoadInspection } from '../dataset/inspection-columns.js';
import type { ShardFile } from '../dataset/shards/shard-file.js';
import type { DatasetParts, StoredParts } from '../dataset/stored-dataset.js';
import { refuseMissingKeys } from '../selection/missing-keys.js';
import { type KeptRows, relabel, takeRows, withColumns } from './change-index.js';
import { changesOf, isIn, type Layers, layersOf, rowsGone } from './layers.js';

/** The part of a dataset that is shown, and the overlays to apply. */
export interface ViewRequest {
  /** A chain of overlays, the lowest first. */
  readonly chain: readonly Overlay[];
  readonly split?: string | undefined;
  /** Keys of excluded samples. Keys that the dataset does not have are an error. */
  readonly excludeKeys?: Iterable<string> | undefined;
}

/** Number of shards whose keys are read at a time. */
const KEY_READS = 8;

/**
 * Returns a dataset with overlays, a split and a list of excluded keys applied: its indexes have other rows, classes
 * and columns, and so everything that reads the dataset. The shards stay as they are. Without overlays and lists it
 * returns the dataset itself. Throws {@link OptionError} for an unknown split or key, and OverlayError for overlays of
 * other shards.
 */
export async function viewOf(parts: StoredParts, request: ViewRequest): Promise<DatasetParts> {
  const { chain, split, excludeKeys } = request;
  if (chain.length === 0 && split === undefined && excludeKeys === undefined) return parts;
  const counts = parts.shards.map(({ samples }) => samples);
  for (const overlay of chain) checkOverlay(overlay, parts);
  const layers = layersOf(chain, { ...parts, counts });
  const chosen = split === undefined ? null : splitOf(layers, split, parts, chain.at(-1));
  const excluded = excludeKeys === undefined ? null : await findKeys(parts, new Set(excludeKeys));

  const classSamples = [...(chosen?.classSamples ?? layers.classSamples)];
  const kept = counts.map((samples, shard): KeptRows => {
    const isGone = rowsGone(layers, shard, samples);
    if (chosen !== null) for (let row = 0; row < samples; row++) if (!isIn(chosen, shard, row)) isGone[row] = 1;
    for (const { row, cls } of excluded?.get(shard) ?? []) {
      if (isGone[row] === 1) continue;
      isGone[row] = 1;
      const mapped = classAfter(layers, shard, { samples, row, below: cls });
      if (mapped >= 0 && mapped < classSamples.length) classSamples[mapped]!--;
    }
    return rowsLeft(isGone);
  });
  return {
    ...parts,
    identity: identityOf(parts.identity, request, excluded),
    classes: layers.classes,
    classSamples,
    shards: parts.shards.map((file, shard) =>
      shownShard(file, kept[shard]!, (index) => withColumns(relabel(index, shard, layers.layers), layers.columns)),
    ),
  };
}

/** Returns a shard without the rows for which `isRemoved` is true. Its file stays as it is. */
export function shardWithout(file: ShardFile, isRemoved: (row: number) => boolean): ShardFile {
  const isGone = Uint8Array.from({ length: file.samples }, (_, row) => Number(isRemoved(row)));
  return shownShard(file, rowsLeft(isGone), (index) => index);
}

/** Returns a shard with only the rows that are kept, after `change` of its index. */
function shownShard(file: ShardFile, kept: KeptRows, change: (index: IndexPieces) => IndexPieces): ShardFile {
  const shown = (index: IndexPieces) => takeRows(change(index), kept);
  return {
    ...file,
    ...shownOf(file, kept),
    loadIndex: async (read) => shown(await file.loadIndex(read)) as ShardIndex,
    loadParts: async <P extends IndexPart>(wanted: readonly P[]) =>
      shown(await file.loadParts(wanted)) as PartOfIndex<P>,
    loadInspection: file.loadInspection && ((names) => inspectionOf(file.loadInspection!, names, kept)),
  };
}

/** Returns the number of remaining samples of a shard, and their share of its bytes. */
function shownOf(file: ShardFile, rows: KeptRows): Pick<ShardFile, 'samples' | 'sampleBytes'> {
  if (rows === null) return { samples: file.samples };
  return { samples: rows.length, sampleBytes: (file.bytes * rows.length) / file.samples };
}

/** Returns the kept rows of an inspection. */
async function inspectionOf(
  load: LoadInspection,
  names: ReadonlySet<string> | undefined,
  rows: KeptRows,
): Promise<InspectionFile | null> {
  const found = await load(names);
  if (found === null || rows === null) return found;
  const columns = Array.from(
    found.columns,
    ([name, { type, values }]) => [name, { type, values: Array.from(rows, (row) => values[row]!) }] as const,
  );
  return { ...found, columns: new Map(columns) };
}

function rowsLeft(isGone: Uint8Array): KeptRows {
  let left = 0;
  for (let row = 0; row < isGone.length; row++) left += 1 - isGone[row]!;
  if (left === isGone.length) return null;
  const rows = new Uint32Array(left);
  for (let row = 0, i = 0; row < isGone.length; row++) if (isGone[row] === 0) rows[i++] = row;
  return rows;
}

/** An overlay lists the shards that it was made for. It is valid if the dataset begins with these shards. */
function checkOverlay({ name, dataset, shards }: Overlay, parts: StoredParts): void {
  if (shards <= parts.shards.length && parts.identityOfFirst(shards) === dataset) return;
  throw new OverlayError(
    { path: parts.location },
    `The overlay "${name}" was created for other shards than those of ${parts.location}: create it again with "shardtool overlay add".`,
  );
}

function splitOf(layers: Layers, name: string, parts: DatasetParts, overlay: Overlay | undefined) {
  const split = layers.splits.get(name);
  if (split === undefined) {
    const known = [...layers.splits.keys()];
    const remedy =
      known.length > 0
        ? `there are ${known.join(', ')}`
        : overlay === undefined
          ? 'name the overlay that has it, or make one with "shardtool split"'
          : `the overlay "${overlay.name}" has none; "shardtool split" makes one`;
    throw new OptionError({}, `${parts.location} has no split "${name}": ${remedy}.`);
  }
  const missing = parts.shards.findIndex((file, shard) => file.samples > 0 && !split.rows.has(shard));
  if (missing < 0) return split;
  throw new OptionError(
    { shard: parts.shards[missing]!.name },
    `${parts.location} has grown since the split "${name}" was created (${parts.shards[missing]!.name} is not in it): run ` +
      'the same "shardtool split" again, which keeps every sample in its split.',
  );
}

interface FoundRow {
  readonly row: number;
  /** Class below all overlays. */
  readonly cls: number;
}

async function findKeys(parts: DatasetParts, keys: ReadonlySet<string>): Promise<Map<number, FoundRow[]>> {
  const found = new Map<number, FoundRow[]>();
  const missing = new Set(keys);
  for (let first = 0; first < parts.shards.length; first += KEY_READS) {
    const files = parts.shards.slice(first, first + KEY_READS);
    const read = await Promise.all(files.map((file) => file.loadParts(['key', 'cls'])));
    read.forEach(({ key, cls }, i) => {
      const rows: FoundRow[] = [];
      for (let row = 0; row < key.length; row++) {
        if (!keys.has(key[row]!)) continue;
        rows.push({ row, cls: cls[row]! });
        missing.delete(key[row]!);
      }
      if (rows.length > 0) found.set(first + i, rows);
    });
  }
  refuseMissingKeys('excludeKeys', missing, parts.location);
  return found;
}

/** Returns the class of a row above all overlays. */
function classAfter(
  { layers }: Layers,
  shard: number,
  { samples, row, below }: { readonly samples: number; readonly row: number; readonly below: number },
): number {
  let cls = below;
  for (const layer of layers) {
    if (cls >= 0 && layer.classMap !== null) cls = layer.classMap[cls] ?? -1;
    const changes = changesOf(layer, shard, samples);
    const at = changes?.clsRows.indexOf(row) ?? -1;
    if (at >= 0) cls = changes!.cls[at]!;
  }
  return cls;
}

/** Combines the names and hashes of the overlays and the split, so that a state shows which data it belongs to. */
function identityOf(dataset: string, { chain, split }: ViewRequest, excluded: Map<number, FoundRow[]> | null): string {
  const overlay = chain.at(-1);
  const marks = [dataset];
  if (overlay !== undefined) marks.push(`overlay ${overlay.name} ${overlay.hash.slice(0, 16)}`);
  if (split !== undefined) marks.push(`split ${split}`);
  if (excluded !== null) {
    const rows = [...excluded].map(([shard, found]) => [shard, ...found.map(({ row }) => row)]);
    marks.push(`without ${createHash('sha256').update(JSON.stringify(rows)).digest('hex').slice(0, 16)}`);
  }
  return marks.join(', ');
}
