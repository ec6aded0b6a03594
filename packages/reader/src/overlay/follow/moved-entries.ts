import { range } from '@shardtool/base';
import { isSet, type Overlay, type OverlayEntry, PackedChanges, rowBits } from '@shardtool/format';
import type { StoredParts } from '../../dataset/stored-dataset.js';
import { shownShards } from '../base.js';
import { layersOf } from '../layers.js';
import { packedEntries } from '../pack-changes.js';
import { splitHash, splitTest } from '../split-rule.js';
import { MovedPlaces } from './moved-places.js';
import { changesByRow, recounted, renewClassesBelow, totalsOf } from './recount.js';

export interface Move {
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
export async function movedEntries(
  overlay: Overlay,
  { old, now, isErased }: Move,
  below: readonly Overlay[],
): Promise<MovedEntries> {
  const places = await MovedPlaces.between(old, now);
  const counts = now.shards.map(({ samples }) => samples);
  const entries: OverlayEntry[] = [];
  /** Rows of each new shard, by split. The entry '' has the rows of a subset. */
  const chosen = new Map<string, Map<number, Uint8Array>>();
  const unpacked = new Map<number, Map<number, OverlayEntry[]>>();
  /** Entries by new shard whose samples were written again, perhaps with another class. */
  const uncertain = new Map<number, number[]>();
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
          const at = await places.ofKey([entry.changes, row], key[row]!);
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
    else if ('exclude' in entry || 'at' in entry) {
      const before = 'exclude' in entry ? entry.exclude : entry.at;
      const at = await places.ofKey(before, entry.key);
      if (at === null) continue;
      if ('was' in entry && places.ofShard(before[0]) === null) {
        const inShard = uncertain.get(at[0]) ?? [];
        uncertain.set(at[0], inShard);
        inShard.push(entries.length);
      }
      entries.push('exclude' in entry ? { ...entry, exclude: at } : { ...entry, at });
    } else if ('keep' in entry || ('shard' in entry && 'rows' in entry)) {
      const name = 'keep' in entry ? '' : entry.split;
      const shard = 'keep' in entry ? entry.keep : entry.shard;
      const rows = chosen.get(name) ?? new Map<number, Uint8Array>();
      chosen.set(name, rows);
      await addMoved(places, shard, Buffer.from(entry.rows, 'base64'), rows, counts);
    } else entries.push(entry);
  }
  await renewClassesBelow(entries, uncertain, now, below);
  await drawNew(overlay, chosen, now, below);
  const bits = [...chosen].flatMap(([name, rows]) =>
    [...rows]
      .sort(([a], [b]) => a - b)
      .map(([shard, sides]): OverlayEntry => {
        const text = rowBits(counts[shard]!, (row) => sides[row] === Side.in);
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

/** Whether a row of a new shard is in a split. Rows that do not come from an old shard are unknown. */
const Side = { unknown: 0, out: 1, in: 2 } as const;

/**
 * Adds the rows of an old shard at their new positions. The result contains every shard that has rows of it, even if
 * none are chosen. `counts`: numbers of samples of the new shards.
 */
async function addMoved(
  places: MovedPlaces,
  shard: number,
  bits: Uint8Array,
  rows: Map<number, Uint8Array>,
  counts: readonly number[],
): Promise<void> {
  const moved = await places.ofRows(shard);
  moved.forEach((at, row) => {
    if (at === null) return;
    sidesOf(rows, at[0], counts)[at[1]] = isSet(bits, row) ? Side.in : Side.out;
  });
}

function sidesOf(rows: Map<number, Uint8Array>, shard: number, counts: readonly number[]): Uint8Array {
  const sides = rows.get(shard) ?? new Uint8Array(counts[shard]!);
  rows.set(shard, sides);
  return sides;
}

/** Puts samples that the splits of an overlay do not know into the splits to which their hashes belong. */
async function drawNew(
  { entries }: Overlay,
  chosen: ReadonlyMap<string, Map<number, Uint8Array>>,
  now: StoredParts,
  below: readonly Overlay[],
): Promise<void> {
  const rules = [...entries].flatMap((entry) => ('rule' in entry ? [entry] : []));
  // Each split of an overlay has a line for each shard.
  const rows = chosen.get(rules[0]?.split ?? '');
  if (rules.length === 0 || rows === undefined) return;
  const counts = now.shards.map(({ samples }) => samples);
  const lacking = range(counts.length).filter((shard) => rows.get(shard)?.includes(Side.unknown) ?? true);
  if (lacking.length === 0) return;
  const layers = layersOf(below, { ...now, counts });
  const { group } = rules[0]!.rule;
  const tests = rules.map(({ split, rule }) => ({ split, isIn: splitTest(rule, layers.classes) }));
  const base = { stored: now, below: layers, signal: undefined };
  const parts = group === null ? (['key', 'cls'] as const) : (['key', 'cls', 'columns'] as const);
  const shown = shownShards(base, parts, new Set(group === null ? [] : [group]), lacking);
  for await (const { shard, index, gone } of shown) {
    const { key, cls, columns, samples } = index;
    const values = group === null ? undefined : columns?.get(group);
    for (const { split, isIn } of tests) {
      const sides = sidesOf(chosen.get(split)!, shard, counts);
      for (let row = 0; row < samples; row++) {
        if (sides[row] !== Side.unknown || gone[row] === 1) continue;
        if (isIn(splitHash(key![row]!, values?.[row]), cls![row]!)) sides[row] = Side.in;
      }
    }
  }
}
