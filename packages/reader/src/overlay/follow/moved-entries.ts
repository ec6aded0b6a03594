import { isSet, type Overlay, type OverlayEntry, PackedChanges, rowBits } from '@shardtool/format';
import type { StoredParts } from '../../dataset/stored-dataset.js';
import { packedEntries } from '../pack-changes.js';
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
  const chosen = new Map<string, Map<number, MovedRows>>();
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
      const rows = chosen.get(name) ?? new Map<number, MovedRows>();
      chosen.set(name, rows);
      await addMoved(places, shard, Buffer.from(entry.rows, 'base64'), rows);
    } else entries.push(entry);
  }
  await renewClassesBelow(entries, uncertain, now, below);
  const bits = [...chosen].flatMap(([name, rows]) =>
    [...rows]
      // A split that does not know every sample of a shard is rejected until it is drawn again.
      .filter(([shard, { known }]) => name === '' || known === counts[shard])
      .sort(([a], [b]) => a - b)
      .map(([shard, { chosen: set }]): OverlayEntry => {
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

/** Rows of a new shard that come from old shards. */
interface MovedRows {
  /** Number of these rows. */
  known: number;
  readonly chosen: Set<number>;
}

/**
 * Adds the rows of an old shard at their new positions. The result contains every shard that has rows of it, even if
 * none are chosen.
 */
async function addMoved(
  places: MovedPlaces,
  shard: number,
  bits: Uint8Array,
  rows: Map<number, MovedRows>,
): Promise<void> {
  const moved = await places.ofRows(shard);
  moved.forEach((at, row) => {
    if (at === null) return;
    const inShard = rows.get(at[0]) ?? { known: 0, chosen: new Set<number>() };
    rows.set(at[0], inShard);
    inShard.known++;
    if (isSet(bits, row)) inShard.chosen.add(at[1]);
  });
}
