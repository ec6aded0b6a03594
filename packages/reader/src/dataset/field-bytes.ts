import { DamagedShardError } from '@shardtool/base';
import { type FieldColumns, fieldPayload } from '@shardtool/format';

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
      `${shard}: field "${field}" of sample "${key}" ${notAValue(cause)}. Run "shardtool verify" to list every damaged sample.`,
      { cause },
    );
  }
}

/** The end of a sentence about bytes that are no msgpack value, although the index says so: they have nothing to be summed. */
export function notAValue(cause: unknown): string {
  return `has changed since it was packed (checksum: what stands there is no value any more, ${(cause as Error).message})`;
}
