import type { ColumnValue } from '@shardtool/format';
import { INSPECT_PREFIX } from '../dataset/inspection-columns.js';
import type { StoredDataset } from '../dataset/stored-dataset.js';
import { type Copies, isLeak, membersOf } from '../inspect/copies.js';
import { namesOf } from '../inspect/sample-names.js';
import { keepColumns } from './measure-dataset.js';

/** Stores the columns that name the group of copies of each sample: `duplicate`, `near` and, with a second dataset, `leak`. */
export async function keepGroups(dataset: StoredDataset, copies: Copies, other: StoredDataset | null): Promise<void> {
  const { own, total } = copies;
  const exact = await firstKeys(membersOf(copies.exact, own), dataset);
  const near = await firstKeys(membersOf(copies.near, own), dataset);
  const leaks = other === null ? null : await leakKeys(membersOf(copies.near, total), own, other);
  for (const [number, shard] of dataset.shards.entries()) {
    const first = dataset.files.firstSample[number]!;
    const found = await shard.loadInspection?.();
    if (found === undefined || found === null) continue;
    const rows = Array.from({ length: shard.samples }, (_, row) => first + row);
    const columns = new Map(found.columns);
    const put = (name: string, values: ReadonlyMap<number, string>) => {
      const column: ColumnValue[] = rows.map((row) => values.get(row) ?? null);
      columns.set(INSPECT_PREFIX + name, { type: 'string', values: column });
    };
    put('duplicate', exact);
    put('near', near);
    if (leaks !== null) put('leak', leaks);
    await keepColumns(shard, columns, found.totals);
  }
}

/** For each member of a group, the key of the first member, which does not change when the dataset grows. */
async function firstKeys(groups: ReadonlyMap<number, number[]>, dataset: StoredDataset): Promise<Map<number, string>> {
  const names = await namesOf(dataset, [...groups.keys()]);
  const keys = new Map<number, string>();
  for (const [first, rows] of groups) for (const row of rows) keys.set(row, names.get(first)!.key);
  return keys;
}

/** For each sample that also occurs in the second dataset, its key there. */
async function leakKeys(
  groups: ReadonlyMap<number, number[]>,
  own: number,
  other: StoredDataset,
): Promise<Map<number, string>> {
  const leaks = [...groups.values()].filter((rows) => isLeak(rows, own));
  const names = await namesOf(
    other,
    leaks.map((rows) => rows.find((row) => row >= own)! - own),
  );
  const keys = new Map<number, string>();
  for (const rows of leaks) {
    const { key } = names.get(rows.find((row) => row >= own)! - own)!;
    for (const row of rows) if (row < own) keys.set(row, key);
  }
  return keys;
}
