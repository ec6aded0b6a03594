import { becameShorter, fieldPayload, planRuns, type ShardIndex, type Source } from '@shardtool/format';

/** One payload of a field, valid until the next one. */
export interface FoundPayload {
  readonly row: number;
  /** Null if it has more bytes than allowed, or if its stored value has no JSON text. */
  readonly payload: Uint8Array | null;
}

/**
 * Yields the payloads of one field in the order of the file, without checking checksums. Throws FileError, and
 * TruncatedShardError if the shard is shorter than its index says.
 */
export async function* fieldPayloads(
  source: Source,
  { fields }: Pick<ShardIndex, 'fields'>,
  field: string,
  maxBytes: number,
): AsyncGenerator<FoundPayload> {
  const { offset, bytes, msgpack } = fields.get(field)!;
  const all = Array.from(offset, (at, row) => ({ offset: at, bytes: bytes[row]!, row })).filter(
    (span) => span.offset >= 0,
  );
  for (const { row } of all.filter((span) => span.bytes > maxBytes)) yield { row, payload: null };
  for (const run of planRuns(all.filter((span) => span.bytes <= maxBytes))) {
    const buffer = new Uint8Array(run.bytes);
    const read = await source.readAt(run.offset, buffer);
    if (read < run.bytes) throw becameShorter(source.location, run.offset + read);
    for (const span of run.spans) {
      const start = span.offset - run.offset;
      yield { row: span.row, payload: decoded(buffer.subarray(start, start + span.bytes), msgpack?.[span.row] === 1) };
    }
  }
}

function decoded(stored: Uint8Array, isMsgpack: boolean): Uint8Array | null {
  try {
    return fieldPayload(stored, isMsgpack);
  } catch {
    return null;
  }
}
