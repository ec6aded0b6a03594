import { inTurn } from '@shardtool/base';
import {
  isSet,
  type Overlay,
  type OverlayEntry,
  PackedChanges,
  type RowPlace,
  type ShardChanges,
} from '@shardtool/format';
import type { StoredParts } from '../../dataset/stored-dataset.js';
import { relabel } from '../change-index.js';
import { type Layers, layersOf } from '../layers.js';
import { ChangeCounter } from '../pack-changes.js';

const READ_AT_ONCE = 8;

export type RowChange = Extract<OverlayEntry, { readonly exclude: RowPlace } | { readonly at: RowPlace }>;

/** The changes of a shard by row. Keys, positions and classes below are not known here. */
export function changesByRow({ excluded, clsRows, cls, columns }: ShardChanges): Map<number, RowChange[]> {
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

/**
 * Sets the classes that samples have below an overlay in some of its entries, whose numbers `byShard` has for each shard. A
 * sample that was packed again may have another class than before.
 */
export async function renewClassesBelow(
  entries: OverlayEntry[],
  byShard: ReadonlyMap<number, readonly number[]>,
  now: StoredParts,
  below: readonly Overlay[],
): Promise<void> {
  if (byShard.size === 0) return;
  const { layers } = layersOf(below, { ...now, counts: now.shards.map(({ samples }) => samples) });
  const read = inTurn([...byShard], READ_AT_ONCE, async ([shard, numbers]) => ({
    numbers,
    cls: relabel(await now.shards[shard]!.loadParts(['cls']), shard, layers).cls,
  }));
  for await (const { numbers, cls } of read) {
    for (const number of numbers) {
      const entry = entries[number]!;
      if ('exclude' in entry) entries[number] = { ...entry, was: cls?.[entry.exclude[1]] ?? -1 };
      else if ('cls' in entry && 'at' in entry) entries[number] = { ...entry, was: cls?.[entry.at[1]] ?? -1 };
    }
  }
}

/** Counts packed changes, with the classes that their samples have below. */
export async function totalsOf(
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

/** Returns the entries with the current numbers of samples of splits and subsets. */
export async function recounted(
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
