import {
  type ChangedEntry,
  type ClassChange,
  type ColumnValue,
  type OverlayClass,
  type OverlayEntry,
  PackedChanges,
} from '@shardtool/format';
import { isIn, type Layers } from './layers.js';
import { EntryCounter } from './summary.js';

/** Returns changes of the samples of one shard as one entry; none if there are no changes. */
export function packedEntries(shard: number, samples: number, entries: readonly OverlayEntry[]): OverlayEntry[] {
  const excluded: number[] = [];
  const clsRows: number[] = [];
  const cls: number[] = [];
  const columns = new Map<string, { rows: number[]; values: ColumnValue[] }>();
  for (const entry of entries) {
    if ('exclude' in entry) excluded.push(entry.exclude[1]);
    else if ('cls' in entry) {
      clsRows.push(entry.at[1]);
      cls.push(entry.cls);
    } else if ('set' in entry) {
      for (const [name, value] of entry.set) {
        const column = columns.get(name) ?? { rows: [], values: [] };
        columns.set(name, column);
        column.rows.push(entry.at[1]);
        column.values.push(value);
      }
    }
  }
  if (entries.length === 0) return [];
  const changes = {
    excluded: Uint32Array.from(excluded),
    clsRows: Uint32Array.from(clsRows),
    cls: Int32Array.from(cls),
    columns: new Map(
      Array.from(columns, ([name, { rows, values }]) => [name, { rows: Uint32Array.from(rows), values }]),
    ),
  };
  return [PackedChanges.of(shard, samples, changes)];
}

/** Counts the changes of single samples, by class too. */
export class ChangeCounter extends EntryCounter {
  readonly #below: Layers;
  readonly #classMap: Int32Array | null;
  readonly #columns = new Set<string>();
  readonly #classSamples = new Map<number, number>();
  readonly #splits: ReadonlyMap<string, Map<number, number>>;

  /** `classes`: the new list of classes; null if it is that of the layers below. */
  constructor(below: Layers, classes: readonly OverlayClass[] | null) {
    super();
    this.#below = below;
    this.#splits = new Map(Array.from(below.splits.keys(), (name) => [name, new Map()]));
    this.#classMap = classes && new Int32Array(below.classSamples.length).fill(-1);
    classes?.forEach(({ from }, cls) => {
      for (const old of from) this.#classMap![old] = cls;
    });
  }

  override add(entry: OverlayEntry): void {
    super.add(entry);
    if ('exclude' in entry) this.#count(entry.exclude, this.#mapped(entry.was), -1);
    else if ('cls' in entry) {
      this.#count(entry.at, this.#mapped(entry.was), -1);
      this.#count(entry.at, entry.cls, 1);
    } else if ('set' in entry) for (const [name] of entry.set) this.#columns.add(name);
  }

  /** The totals, as the last entry of packed changes. */
  entry(): ChangedEntry {
    const { excluded, relabelled, set } = this;
    return {
      changed: { excluded, relabelled, set },
      columns: [...this.#columns].sort(),
      classSamples: changesOf(this.#classSamples),
      splits: Array.from(this.#splits, ([name, changes]) => [name, changesOf(changes)] as const),
    };
  }

  #mapped(cls: number): number {
    return cls < 0 || this.#classMap === null ? cls : this.#classMap[cls]!;
  }

  #count([shard, row]: readonly [number, number], cls: number, change: number): void {
    if (cls < 0) return;
    this.#classSamples.set(cls, (this.#classSamples.get(cls) ?? 0) + change);
    for (const [name, changes] of this.#splits) {
      if (isIn(this.#below.splits.get(name)!, shard, row)) changes.set(cls, (changes.get(cls) ?? 0) + change);
    }
  }
}

function changesOf(changes: ReadonlyMap<number, number>): ClassChange[] {
  return [...changes].filter(([, change]) => change !== 0).sort(([a], [b]) => a - b);
}
