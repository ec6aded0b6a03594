import { totalOf } from '@shardtool/base';
import {
  type ChangedEntry,
  type ColumnValue,
  isSet,
  type Overlay,
  type OverlayClass,
  type OverlayEntry,
  OverlayError,
  PackedChanges,
  type ShardChanges,
} from '@shardtool/format';

/** One overlay, prepared to be applied to indexes. */
export interface Layer {
  /** New number of each class below; null if they stay. */
  readonly classMap: Int32Array | null;
  /** Packed changes are unpacked when their shard is read, so that the labels of 100 million samples need little memory. */
  readonly shards: ReadonlyMap<number, ShardChanges | PackedChanges>;
  /** False if it is known that no sample is excluded one by one. */
  readonly excludes: boolean;
  /** Number of classes above the overlay; 0: they are not named. */
  readonly classCount: number;
  /** By number of the shard: one bit per row, 1 if the row is kept. Null: all rows that are not excluded are kept. */
  readonly kept: ReadonlyMap<number, Uint8Array> | null;
}

/** A split of the dataset, one bit per sample. */
export interface Split {
  readonly samples: number;
  readonly classSamples: readonly number[];
  /** Bits by number of the shard. */
  readonly rows: ReadonlyMap<number, Uint8Array>;
}

/** A chain of overlays, resolved. */
export interface Layers {
  /** Layers, from the lowest overlay to the requested one. */
  readonly layers: readonly Layer[];
  readonly classes: readonly string[];
  readonly classSamples: readonly number[];
  readonly splits: ReadonlyMap<string, Split>;
  /** Names of columns that overlays set. */
  readonly columns: readonly string[];
}

/** The dataset below the chain of overlays. */
export interface Below {
  readonly classes: readonly string[];
  readonly classSamples: readonly number[];
  /** Number of samples of each shard. */
  readonly counts: ArrayLike<number>;
}

/**
 * Resolves a chain of overlays, the lowest first. Throws {@link OverlayError} for shards or rows that the dataset does
 * not have.
 */
export function layersOf(chain: readonly Overlay[], below: Below): Layers {
  let { classes, classSamples } = below;
  const splits = new Map<string, Split>();
  const columns = new Set<string>();
  const layers = chain.map((overlay) => {
    const draft = new LayerDraft(overlay, below.counts, classes, classSamples, splits);
    for (const entry of overlay.entries) draft.add(entry);
    const layer = draft.finish();
    ({ classes, classSamples } = draft);
    for (const name of draft.columns) columns.add(name);
    return layer;
  });
  return { layers, classes, classSamples, splits, columns: [...columns].sort() };
}

interface ShardDraft {
  readonly excluded: number[];
  readonly clsRows: number[];
  readonly cls: number[];
  readonly columns: Map<string, { readonly rows: number[]; readonly values: ColumnValue[] }>;
}

class LayerDraft {
  classes: readonly string[];
  classSamples: number[];
  readonly #overlay: Overlay;
  readonly #counts: ArrayLike<number>;
  readonly #splits: Map<string, Split>;
  readonly columns = new Set<string>();
  readonly #shards = new Map<number, ShardDraft>();
  readonly #packed = new Map<number, PackedChanges>();
  #excludes = false;
  #classMap: Int32Array | null = null;
  #kept: Map<number, Uint8Array> | null = null;

  constructor(
    overlay: Overlay,
    counts: ArrayLike<number>,
    classes: readonly string[],
    classSamples: readonly number[],
    splits: Map<string, Split>,
  ) {
    this.#overlay = overlay;
    this.#counts = counts;
    this.classes = classes;
    this.classSamples = [...classSamples];
    this.#splits = splits;
  }

  add(entry: OverlayEntry): void {
    if (entry instanceof PackedChanges) {
      if (!(entry.changes < this.#counts.length) || this.#packed.has(entry.changes)) throw this.#wrong();
      this.#packed.set(entry.changes, entry);
    } else if ('changed' in entry) this.#addChanged(entry);
    else if ('exclude' in entry) {
      this.#excludes = true;
      this.#shard(entry.exclude).excluded.push(entry.exclude[1]);
      this.#count(entry.exclude, this.#mapped(entry.was), -1);
    } else if ('cls' in entry) {
      const { clsRows, cls } = this.#shard(entry.at);
      clsRows.push(entry.at[1]);
      cls.push(this.#known(entry.cls));
      this.#count(entry.at, this.#mapped(entry.was), -1);
      this.#count(entry.at, entry.cls, 1);
    } else if ('set' in entry) {
      const { columns } = this.#shard(entry.at);
      for (const [name, value] of entry.set) {
        const column = columns.get(name) ?? { rows: [], values: [] };
        columns.set(name, column);
        this.columns.add(name);
        column.rows.push(entry.at[1]);
        column.values.push(value);
      }
    } else if ('classes' in entry) this.#renumber(entry.classes);
    else if ('rule' in entry) {
      const { samples, classSamples } = entry;
      this.#splits.set(entry.split, { samples, classSamples, rows: new Map() });
    } else if ('kept' in entry) {
      this.#kept = new Map();
      this.classSamples = [...entry.classSamples];
    } else if ('keep' in entry) {
      if (this.#kept === null) throw this.#wrong();
      this.#kept.set(entry.keep, this.#bits(entry.keep, entry.rows));
    } else if ('rows' in entry) {
      const split = this.#splits.get(entry.split);
      if (split === undefined) throw this.#wrong();
      (split.rows as Map<number, Uint8Array>).set(entry.shard, this.#bits(entry.shard, entry.rows));
    } else throw this.#wrong();
  }

  finish(): Layer {
    const shards = new Map<number, ShardChanges | PackedChanges>(this.#packed);
    for (const [shard, { excluded, clsRows, cls, columns }] of this.#shards) {
      if (shards.has(shard)) throw this.#wrong();
      shards.set(shard, {
        excluded: Uint32Array.from(excluded),
        clsRows: Uint32Array.from(clsRows),
        cls: Int32Array.from(cls),
        columns: new Map(
          Array.from(columns, ([name, { rows, values }]) => [name, { rows: Uint32Array.from(rows), values }]),
        ),
      });
    }
    return {
      classMap: this.#classMap,
      shards,
      kept: this.#kept,
      excludes: this.#excludes,
      classCount: this.classes.length,
    };
  }

  #addChanged({ changed, columns, classSamples, splits }: ChangedEntry): void {
    this.#excludes ||= changed.excluded > 0;
    for (const name of columns) this.columns.add(name);
    for (const [cls, change] of classSamples) this.#addTo(this.classSamples, cls, change);
    for (const [name, changes] of splits) {
      const split = this.#splits.get(name);
      if (split === undefined) throw this.#wrong();
      for (const [cls, change] of changes) this.#addTo(split.classSamples as number[], cls, change);
    }
  }

  #addTo(counts: number[], cls: number, change: number): void {
    if (this.#known(cls) >= 0) counts[cls] = (counts[cls] ?? 0) + change;
  }

  #bits(shard: number, base64: string): Uint8Array {
    const bits = Buffer.from(base64, 'base64');
    if (bits.length === Math.ceil((this.#counts[shard] ?? -1) / 8)) return bits;
    throw this.#wrong();
  }

  #shard([shard, row]: readonly [number, number]): ShardDraft {
    if (!(Number.isInteger(row) && row >= 0 && row < (this.#counts[shard] ?? -1))) throw this.#wrong();
    const known = this.#shards.get(shard);
    if (known !== undefined) return known;
    const draft: ShardDraft = { excluded: [], clsRows: [], cls: [], columns: new Map() };
    this.#shards.set(shard, draft);
    return draft;
  }

  #renumber(classes: readonly OverlayClass[]): void {
    const map = new Int32Array(this.classSamples.length).fill(-1);
    const samples = classes.map(({ from }, cls) => {
      for (const old of from) map[old] = cls;
      return totalOf(from, (old) => this.classSamples[old] ?? 0);
    });
    this.#classMap = map;
    for (const [name, split] of this.#splits) {
      const counts = classes.map(({ from }) => totalOf(from, (old) => split.classSamples[old] ?? 0));
      this.#splits.set(name, { ...split, classSamples: counts });
    }
    this.classes = classes.map(({ name }) => name);
    this.classSamples = samples;
  }

  #mapped(cls: number): number {
    return cls < 0 || this.#classMap === null ? cls : this.#classMap[cls]!;
  }

  #known(cls: number): number {
    if (Number.isInteger(cls) && cls >= -1 && (cls < this.classes.length || this.classes.length === 0)) return cls;
    throw this.#wrong();
  }

  /** Adds `change` to the number of samples of a class, in the dataset and in the splits that contain the sample. */
  #count([shard, row]: readonly [number, number], cls: number, change: number): void {
    if (cls >= 0) this.classSamples[cls] = (this.classSamples[cls] ?? 0) + change;
    for (const split of this.#splits.values()) {
      if (cls < 0 || !isIn(split, shard, row)) continue;
      const counts = split.classSamples as number[];
      counts[cls] = (counts[cls] ?? 0) + change;
    }
  }

  #wrong(): OverlayError {
    const { name } = this.#overlay;
    return new OverlayError(
      {},
      `The overlay "${name}" has a line that does not fit the dataset: create the overlay again.`,
    );
  }
}

/**
 * Returns the changes of a layer in a shard of `samples` rows; undefined if there are none. Throws {@link OverlayError} if
 * they do not fit the dataset.
 */
export function changesOf({ shards, classCount }: Layer, shard: number, samples: number): ShardChanges | undefined {
  const changes = shards.get(shard);
  if (!(changes instanceof PackedChanges)) return changes;
  const unpacked = changes.unpack(samples);
  if (classCount === 0 || unpacked.cls.every((cls) => cls >= -1 && cls < classCount)) return unpacked;
  throw new OverlayError(
    {},
    `An overlay gives samples of shard ${shard} classes that it does not have: create it again.`,
  );
}

/** True if a row of a shard is in a split. */
export function isIn({ rows }: Split, shard: number, row: number): boolean {
  return isSet(rows.get(shard), row);
}

/** Returns 1 for each of a shard's `samples` rows that the overlays exclude. */
export function rowsGone({ layers }: Pick<Layers, 'layers'>, shard: number, samples: number): Uint8Array {
  const gone = new Uint8Array(samples);
  for (const layer of layers) {
    const { kept } = layer;
    if (layer.excludes) for (const row of changesOf(layer, shard, samples)?.excluded ?? []) gone[row] = 1;
    if (kept === null) continue;
    const bits = kept.get(shard);
    for (let row = 0; row < samples; row++) if (!isSet(bits, row)) gone[row] = 1;
  }
  return gone;
}
