import { crc32 } from '@shardtool/base';
import type { FieldSize, IndexRows, SampleRow, ShardWriter } from '@shardtool/format';

/** One field of a sample on its way into a shard. */
export interface NewField extends FieldSize {
  /** Puts the payload into its place. Throws where it cannot be had. */
  put(place: Uint8Array): void;
  /** The same in pieces, each valid until the next, for a payload that is not to be held. */
  readonly pieces?: (() => Iterable<Uint8Array> | AsyncIterable<Uint8Array>) | undefined;
  /** Of the payload, where it is known already. */
  readonly crc32?: number | undefined;
}

/** What the index says of a sample beside its fields. */
export type SampleFacts = Pick<SampleRow, 'source' | 'width' | 'height' | 'orientation' | 'cls'>;

/** What takes samples: a shard, or nothing. */
export type SampleWriter = Pick<ShardWriter, 'begin' | 'commit' | 'discard' | 'writeInPieces'>;

/** The payload of a field by its name; undefined where the sample has none of that name. */
export type PayloadOf = (name: string | undefined) => Uint8Array | undefined;

/** A field whose payload is at hand. */
export function fieldOf(name: string, payload: Uint8Array, crc32?: number): NewField {
  return new HeldField(name, payload, crc32);
}

class HeldField implements NewField {
  readonly name: string;
  readonly bytes: number;
  readonly crc32: number | undefined;
  readonly #payload: Uint8Array;

  constructor(name: string, payload: Uint8Array, crc32: number | undefined) {
    this.name = name;
    this.bytes = payload.length;
    this.crc32 = crc32;
    this.#payload = payload;
  }

  put(place: Uint8Array): void {
    place.set(this.#payload);
  }
}

/** So many classes are made fields once and for all. */
const KEPT_CLASSES = 4096;
const CLASS_FIELDS = new Map<number, NewField>();

function classField(cls: number): NewField {
  const kept = CLASS_FIELDS.get(cls);
  if (kept !== undefined) return kept;
  const payload = Buffer.from(String(cls));
  const field = fieldOf('cls', payload, crc32(payload));
  if (cls < KEPT_CLASSES) CLASS_FIELDS.set(cls, field);
  return field;
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
  for (let i = 0; i < fields.length; i++) if (fields[i]!.name === 'cls') return fields;
  return fields.concat(classField(cls) as Field);
}

/**
 * Puts one sample into a shard, its fields sorted by name, and its row into the index: the only way into a shard, but for
 * samples that are too large to be held (`putLargeSample`).
 * `factsOf` sees the payloads in their places; where it returns null, nothing of the sample is kept, and false is
 * returned. Throws SampleSizeError, EntryNameError or KeyLengthError for what the layout does not take, FileError, and the errors of
 * the fields and of `factsOf` as they are; nothing of the sample is in the shard then.
 */
export function putSample(
  writer: SampleWriter,
  rows: IndexRows,
  key: string,
  fields: readonly NewField[],
  factsOf: (payloadOf: PayloadOf) => SampleFacts | null,
): boolean {
  const sorted = fields.length === 1 ? fields : fields.toSorted(byName);
  try {
    const payloads = writer.begin(key, sorted);
    for (let i = 0; i < sorted.length; i++) sorted[i]!.put(payloads[i]!);
    const facts = factsOf((name) => payloadNamed(name, sorted, payloads));
    if (facts === null) {
      writer.discard();
      return false;
    }
    const sums: number[] = [];
    for (let i = 0; i < sorted.length; i++) sums.push(sorted[i]!.crc32 ?? crc32(payloads[i]!));
    writer.commit(sums);
    const { source, width, height, orientation, cls } = facts;
    rows.add({ key, source, fields: sorted, crc32: sums, width, height, orientation, cls });
    return true;
  } catch (error) {
    writer.discard();
    throw error;
  }
}

function byName(a: NewField, b: NewField): number {
  return a.name < b.name ? -1 : 1;
}

function payloadNamed(
  name: string | undefined,
  fields: readonly NewField[],
  payloads: readonly Uint8Array[],
): Uint8Array | undefined {
  for (let i = 0; i < fields.length; i++) if (fields[i]!.name === name) return payloads[i];
  return undefined;
}
