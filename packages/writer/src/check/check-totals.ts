import { countOf } from '@shardtool/base';
import type { Manifest, ShardIndex } from '@shardtool/format';
import { addTo } from '@shardtool/format';

/** What the index of one shard adds to the totals of its dataset. */
export interface ShardTotals {
  /** Samples of each class, by its number. */
  readonly classes: ReadonlyMap<number, number>;
  /** Samples that have each field. */
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

/** Length of the longest sample with its headers, in bytes: what a reader must have room for. */
export function longestSpan({ bytes }: Pick<ShardIndex, 'bytes'>): number {
  return bytes.reduce((most, length) => Math.max(most, length), 0);
}

/** Sums up the shards of a dataset, to be held against its manifest. */
export class DatasetTotals {
  readonly #classes = new Map<number, number>();
  readonly #fields = new Map<string, number>();
  readonly #columns = new Map<string, string>();
  /** Something is wrong with a shard, so that nothing can be said of the totals. */
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

  /** What a manifest says otherwise than its shards do: a sentence each. One that was edited by hand may lack classes. */
  compare({ classes, fields, columns, shards }: Manifest, isByHand: boolean): string[] {
    const wrong = [
      ...repeated(shards.map(({ file }) => file)).map((file) => `it names the shard ${file} twice`),
      ...repeated(fields.map(({ name }) => name)).map((name) => `it names the field "${name}" twice`),
      ...repeated(columns.map(({ name }) => name)).map((name) => `it names the column "${name}" twice`),
    ];
    if (this.#isUnknown) return wrong;
    for (const [number, { name, samples }] of classes.entries()) {
      const found = this.#classes.get(number) ?? 0;
      if (found !== samples) wrong.push(`the class "${name}" has ${countOf(found, 'sample')}, and it says ${samples}`);
    }
    const nameless = [...this.#classes.keys()].filter((number) => number >= classes.length);
    // Numbers that stood in files beside images need no names.
    if (isByHand && classes.length > 0 && nameless.length > 0)
      wrong.push(`it has no name for the class ${nameless[0]}`);
    return [
      ...wrong,
      ...differences('field', this.#fields, new Map(fields.map(({ name, samples }) => [name, samples]))),
      ...differences('column', this.#columns, new Map(columns.map(({ name, type }) => [name, type]))),
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
      if (here === undefined) return `it names the ${what} "${name}", which no shard has`;
      if (there === undefined) return `it does not name the ${what} "${name}", which shards have`;
      return `the ${what} "${name}" ${typeof here === 'number' ? `is in ${countOf(here, 'sample')}` : `is of type ${here}`}, and it says ${there}`;
    });
}
