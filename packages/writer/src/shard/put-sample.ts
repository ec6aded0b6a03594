import { crc32, type FieldSize, type IndexRows, type SampleRow, type ShardWriter } from '@shardtool/format';

/** One field of a sample on its way into a shard. */
export interface NewField extends FieldSize {
  /** Puts the payload into its place. Throws where it cannot be had. */
  put(place: Uint8Array): void;
  /** The same in pieces, each valid until the next, for a payload that is not to be held. */
  pieces?(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Of the payload, where it is known already. */
  readonly crc32?: number;
}

/** What the index says of a sample beside its fields. */
export type SampleFacts = Pick<SampleRow, 'source' | 'width' | 'height' | 'orientation' | 'cls'>;

/** What takes samples: a shard, or nothing. */
export type SampleWriter = Pick<ShardWriter, 'begin' | 'commit' | 'discard' | 'writeInPieces'>;

/** The payload of a field by its name; undefined where the sample has none of that name. */
export type PayloadOf = (name: string | undefined) => Uint8Array | undefined;

/** A field whose payload is at hand. */
export function fieldOf(name: string, payload: Uint8Array, crc32?: number): NewField {
  const put = (place: Uint8Array) => place.set(payload);
  return { name, bytes: payload.length, put, ...(crc32 !== undefined && { crc32 }) };
}

/**
 * The fields of a sample of class `cls` (-1 for none) as a shard stores them: the class number is a field of its own,
 * except where a shard stores images alone (`imageOnly`), since there the index has it.
 */
export function withClass<Field extends NewField>(
  fields: readonly Field[],
  cls: number,
  imageOnly: boolean,
): readonly (Field | NewField)[] {
  if (cls === -1) return fields;
  if (imageOnly) return fields.filter(({ name }) => name !== 'cls');
  if (fields.some(({ name }) => name === 'cls')) return fields;
  return [...fields, fieldOf('cls', Buffer.from(String(cls)))];
}

/**
 * Puts one sample into a shard, its fields sorted by name, and its row into the index: the only way into a shard.
 * `factsOf` sees the payloads in their places; where it returns null, nothing of the sample is kept, and false is
 * returned. Throws what the writer, the fields and `factsOf` throw; nothing of the sample is in the shard then.
 */
export function putSample(
  writer: SampleWriter,
  rows: IndexRows,
  key: string,
  fields: readonly NewField[],
  factsOf: (payloadOf: PayloadOf) => SampleFacts | null,
): boolean {
  const sorted = fields.length === 1 ? fields : fields.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  try {
    const payloads = writer.begin(key, sorted);
    for (let i = 0; i < sorted.length; i++) sorted[i]!.put(payloads[i]!);
    const facts = factsOf((name) => payloads[sorted.findIndex((field) => field.name === name)]);
    if (facts === null) {
      writer.discard();
      return false;
    }
    const sums = payloads.map((payload, i) => sorted[i]!.crc32 ?? crc32(payload));
    writer.commit(sums);
    rows.add({ key, fields: sorted, crc32: sums, ...facts });
    return true;
  } catch (error) {
    writer.discard();
    throw error;
  }
}
