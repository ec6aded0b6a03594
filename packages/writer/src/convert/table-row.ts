import { option, sentence, UnsupportedEntryError } from '@shardtool/base';
import type { Table } from '@shardtool/format';
import type { Sample } from '@shardtool/reader';
import type { NewField } from '../shard/put-sample.js';

/** Fields that have columns. The class is a separate value there, not a field. */
export function inTable({ columns }: Table, fields: readonly NewField[]): readonly NewField[] {
  if (!fields.some(({ name }) => name === 'cls') || columns.some(({ of, holds }) => of === 'cls' && holds !== 'class'))
    return fields;
  return fields.filter(({ name }) => name !== 'cls');
}

/**
 * Throws {@link UnsupportedEntryError} if a class field contains text that no column has, which is possible if the
 * fields were not read before.
 */
export function checkClass(
  { key, fields }: Sample,
  cls: number,
  table: Table,
  hasOtherClass: boolean,
  shard: string,
): void {
  if (cls !== -1 || hasOtherClass || fields.cls === undefined || inTable(table, [CLS]).length > 0) return;
  const said = Buffer.from(fields.cls.subarray(0, 64)).toString();
  const message = sentence`${shard}: the class of sample "${key}" is ${JSON.stringify(said)}, but a column of classes has numbers; give the classes in a labels file (${option('labels')}), or run "shardtool index" on the shards first to keep the text.`;
  throw new UnsupportedEntryError({ shard, key }, message);
}

const CLS: NewField = { name: 'cls', bytes: 0, put: () => 0 };
