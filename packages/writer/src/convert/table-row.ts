import { UnsupportedEntryError } from '@shardtool/base';
import type { Table } from '@shardtool/format';
import type { Sample } from '@shardtool/reader';
import type { NewField } from '../shard/put-sample.js';

/** The fields that have columns: the class is a value of its own there, and no field. */
export function inTable({ columns }: Table, fields: readonly NewField[]): readonly NewField[] {
  if (!fields.some(({ name }) => name === 'cls') || columns.some(({ of, holds }) => of === 'cls' && holds !== 'class'))
    return fields;
  return fields.filter(({ name }) => name !== 'cls');
}

/** Throws {@link UnsupportedEntryError} where a field says the class in words that no column has: nobody had read it before. */
export function checkClass({ key, cls, fields }: Sample, table: Table, hasOtherClass: boolean, shard: string): void {
  if (cls !== -1 || hasOtherClass || fields.cls === undefined || inTable(table, [CLS]).length > 0) return;
  const said = Buffer.from(fields.cls.subarray(0, 64)).toString();
  const message = `${shard}: the class of sample "${key}" is ${JSON.stringify(said)}, and a column of classes has numbers; give classes by a table ("labels", --labels), or run "shardtool index" on the shards first to keep the words.`;
  throw new UnsupportedEntryError({ shard, key }, message);
}

const CLS: NewField = { name: 'cls', bytes: 0, put: () => 0 };
