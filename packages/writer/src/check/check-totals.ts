import { countOf } from '@shardtool/base';
import type { Manifest, ShardIndex } from '@shardtool/format';
import { addTo } from '@shardtool/format';

/** Contribution of one shard's index to the totals of its dataset. */
export interface ShardTotals {
  /** Number of samples of each class, by class number. */
  readonly classes: ReadonlyMap<number, number>;
  /** Number of samples that have each field. */
  readonly fields: ReadonlyMap<string, number>;
  /** Types of the label columns. */
  readonly columns: ReadonlyMap<string, string>;
}

export function totalsOf({
  fields,
  cls,
  columnTypes,
}: Pick<ShardIndex, 'fields' | 'cls' | 'columnTypes'>): ShardTotals {
  const classes = new Map<number, number>();
  for (const number of cls) if (number >= 0) addTo(classes, number, 1);
  const present = (offset: Float64Array) => offset.reduce((sum, at) => sum + (at < 0 ? 0 : 1), 0);
  const counts = new Map([...fields].map(([name, { offset }]) => [name, present(offset)]));
  return { classes, fields: counts, columns: new Map(columnTypes) };
}

/** Size of the largest sample with its headers, in bytes: the buffer that a reader needs. */
export function longestSpan({ bytes }: Pick<ShardIndex, 'bytes'>): number {
  return bytes.reduce((max, length) => Math.max(max, length), 0);
}

/** Sums of the shards of a dataset, to be compared with its manifest. */
export class DatasetTotals {
  readonly #classes = new Map<number, number>();
  readonly #fields = new Map<string, number>();
  readonly #columns = new Map<string, string>();
  /** True if a shard is damaged, so that the totals are unknown. */
  #isUnknown = false;

  add(shard: ShardTotals | null): void {
    if (shard === null) {
      this.#isUnknown = true;
      return;
    }
    for (const [number, samples] of shard.classes) addTo(this.#classes, number, samples);
    for (const [name, samples] of shard.fields) addTo(this.#fields, name, samples);
    for (const [name, type] of shard.columns) this.#columns.set(name, type);
  }

  /**
   * Returns a sentence for each difference between the manifest and its shards. An edited manifest may lack classes.
   */
  compare({ classes, fields, columns, shards }: Manifest, isByHand: boolean): string[] {
    const wrong = [
      ...repeated(shards.map(({ file }) => file)).map((file) => `it lists the shard ${file} twice`),
      ...repeated(fields.map(({ name }) => name)).map((name) => `it lists the field "${name}" twice`),
      ...repeated(columns.map(({ name }) => name)).map((name) => `it lists the column "${name}" twice`),
    ];
    if (this.#isUnknown) return wrong;
    for (const [number, { name, samples }] of classes.entries()) {
      const found = this.#classes.get(number) ?? 0;
      if (found !== samples) wrong.push(`the class "${name}" has ${countOf(found, 'sample')}, but it says ${samples}`);
    }
    const nameless = [...this.#classes.keys()].filter((number) => number >= classes.length);
    // Class numbers from files next to images need no names.
    if (isByHand && classes.length > 0 && nameless.length > 0)
      wrong.push(`it has no name for the class ${nameless[0]}`);
    return [
      ...wrong,
      ...differences('field', this.#fields, new Map(fields.map(({ name, samples }) => [name, samples]))),
      // The last shard that had a column may have been erased. Damage of the manifest itself is found by its own checksum.
      ...differences(
        'column',
        this.#columns,
        new Map(
          columns.filter(({ name }) => isByHand || this.#columns.has(name)).map(({ name, type }) => [name, type]),
        ),
      ),
    ];
  }
}

function repeated(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return [...new Set(names.filter((name) => seen.size === seen.add(name).size))];
}

function differences<T>(what: string, found: ReadonlyMap<string, T>, said: ReadonlyMap<string, T>): string[] {
  const names = [...new Set([...found.keys(), ...said.keys()])].sort();
  return names
    .filter((name) => found.get(name) !== said.get(name))
    .map((name) => {
      const [here, there] = [found.get(name), said.get(name)];
      if (here === undefined) return `it lists the ${what} "${name}", which no shard has`;
      if (there === undefined) return `it does not list the ${what} "${name}", which the shards have`;
      return `the ${what} "${name}" ${typeof here === 'number' ? `is in ${countOf(here, 'sample')}` : `is of type ${here}`}, but it says ${there}`;
    });
}
