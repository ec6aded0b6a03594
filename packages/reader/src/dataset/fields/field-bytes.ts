import { DamagedShardError } from '@shardtool/base';
import { type FieldColumns, fieldPayload } from '@shardtool/format';

/**
 * Returns the bytes of a field as they were packed. Stored bytes are returned unchanged, except for those that the
 * index marks as a msgpack value: their text is returned. Throws {@link DamagedShardError} if they are not a msgpack
 * value.
 */
export function fieldBytes(
  stored: Uint8Array<ArrayBuffer>,
  column: FieldColumns,
  row: number,
  { shard, key, field }: { readonly shard: string; readonly key: string; readonly field: string },
): Uint8Array<ArrayBuffer> {
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

/**
 * Returns the end of a sentence about bytes that the index marks as a msgpack value although they are not. They have no
 * checksum.
 */
export function notAValue(cause: unknown): string {
  return `has changed since it was packed (checksum: the stored bytes are no longer a value, ${(cause as Error).message})`;
}
