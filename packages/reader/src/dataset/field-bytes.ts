import { DamagedShardError, type FieldColumns, fieldPayload } from '@shardtool/format';

/**
 * The bytes of a field as they were packed, from those that are stored: the same ones, but where the index says that they
 * are a msgpack value the text of that. Throws {@link DamagedShardError} where they are no such value.
 */
export function fieldBytes(
  stored: Uint8Array,
  column: FieldColumns,
  row: number,
  { shard, key, field }: { readonly shard: string; readonly key: string; readonly field: string },
): Uint8Array {
  if (column.msgpack?.[row] !== 1) return stored;
  try {
    return fieldPayload(stored, true);
  } catch (cause) {
    throw new DamagedShardError(
      { shard, key, offset: column.offset[row] },
      `${shard}: field "${field}" of sample "${key}" is damaged (${(cause as Error).message}). Run "shardtool verify" to ` +
        'list every damaged sample.',
      { cause },
    );
  }
}
