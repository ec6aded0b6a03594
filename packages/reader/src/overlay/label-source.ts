import { OptionError, TextRows, total } from '@shardtool/base';
import { type ColumnValue, columnTypeOf } from '@shardtool/format';

/** Classes and columns for samples. All lists have one entry per sample. */
export interface LabelChanges {
  /** Contents of `id`: keys, or the paths of the packed images. */
  readonly by: 'key' | 'path';
  readonly id: readonly string[];
  /** Names of classes. An empty name keeps the class of the sample. Null: no class changes. */
  readonly cls: readonly string[] | null;
  readonly columns: ReadonlyMap<string, readonly ColumnValue[]>;
}

/** Labels of the samples of some shards. */
export interface LabelPage {
  readonly labels: LabelChanges;
  /** Returns the row of the labels of a sample, which counts as found; undefined if there is none. */
  rowOf(id: string): number | undefined;
}

/** Labels that are found by the samples of one shard after the other. */
export interface LabelSource {
  readonly by: 'key' | 'path';
  /** Names of classes that occur. */
  readonly classes: ReadonlySet<string>;
  /** Returns labels that contain those of all samples of a shard. Shards are asked for in ascending order. */
  pageOf(shard: number): LabelPage | Promise<LabelPage>;
  /** The number of all labels, of those that were not found, and the key or path of the first of these; null if all were found. */
  lost(): Promise<{ readonly rows: number; readonly count: number; readonly first: string } | null>;
}

/** Labels in memory. */
export class HeldLabels implements LabelSource, LabelPage {
  readonly labels: LabelChanges;
  readonly classes: ReadonlySet<string>;
  readonly #rowOf: TextRows;
  readonly #isFound: Uint8Array;

  constructor(labels: LabelChanges) {
    this.labels = labels;
    this.classes = new Set(labels.cls);
    this.#rowOf = new TextRows(labels.id);
    this.#isFound = new Uint8Array(labels.id.length);
    const { repeated } = this.#rowOf;
    if (repeated !== null) {
      const twice = labels.id[repeated[0]];
      throw new OptionError({ key: twice }, `The labels name the ${labels.by} "${twice}" twice.`);
    }
    for (const [name, values] of labels.columns) columnTypeOf(name, values);
  }

  get by(): 'key' | 'path' {
    return this.labels.by;
  }

  pageOf(): LabelPage {
    return this;
  }

  rowOf(id: string): number | undefined {
    const row = this.#rowOf.get(id);
    if (row !== undefined) this.#isFound[row] = 1;
    return row;
  }

  async lost() {
    const first = this.#isFound.indexOf(0);
    const rows = this.#isFound.length;
    return first < 0 ? null : { rows, count: rows - total(this.#isFound), first: this.labels.id[first]! };
  }
}
