import { fieldBytes } from '../../dataset/field-bytes.js';
import { type FieldValue, fieldValue } from '../../dataset/field-values.js';
import type { Arena } from '../read/arena.js';
import { type Block, keyOf, locate, placeOf } from '../read/block.js';
import type { PendingBatch } from './pending-batch.js';

export interface RowFieldOptions {
  readonly arena: Arena;
  readonly shardName: (shard: number) => string;
}

/** Puts the values of a row's fields into the batch. One that cannot be read makes the sample a bad one. */
export function readFields(pending: PendingBatch, row: number, options: RowFieldOptions): void {
  const block = pending.blocks[row]!;
  for (const name in pending.fields) {
    try {
      pending.fields[name]![row] = readField(block, pending.items[row]!, name, options);
    } catch (error) {
      const { message } = ((error as Error).cause ?? error) as Error;
      pending.bad.push({ row, reason: `field "${name}" is not what its name says (${message})` });
      return;
    }
  }
}

function readField(block: Block, item: number, name: string, { arena, shardName }: RowFieldOptions): FieldValue | null {
  const { index, indexRow, stretches } = locate(block, item);
  const column = index.fields.get(name);
  const offset = column?.offset[indexRow] ?? -1;
  if (column === undefined || offset < 0) return null;
  const stored = arena.view(placeOf(block, stretches, offset), column.bytes[indexRow]!);
  const place = { shard: shardName(block.shard[item]!), key: keyOf(block, item), field: name };
  return fieldValue(name, fieldBytes(stored, column, indexRow, place));
}
