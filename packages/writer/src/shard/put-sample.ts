import { crc32 } from '@shardtool/base';
import type { FieldSize, IndexRows, SampleRow, ShardWriter } from '@shardtool/format';

/** One field of a sample on its way into a shard. */
export interface NewField extends FieldSize {
  /**
   * Copies the payload to its place and returns its crc32, which is of the bytes where they came from: whatever
   * happens to the place afterwards shows when the finished shard is read back. Throws if the payload cannot be read.
   */
  put(place: Uint8Array): number;
  /** The same in pieces, each valid until the next, for a payload that is not to be held. */
  readonly pieces?: (() => Iterable<Uint8Array> | AsyncIterable<Uint8Array>) | undefined;
}

/** What the index says of a sample beside its fields. */
export type SampleFacts = Pick<SampleRow, 'source' | 'width' | 'height' | 'orientation' | 'cls'>;

/** What takes samples: a shard, or nothing. */
export type SampleWriter = Pick<ShardWriter, 'begin' | 'commit' | 'discard' | 'writeInPieces'>;

/** The payload of a field by its name; undefined where the sample has none of that name. */
export type PayloadOf = (name: string | undefined) => Uint8Array | undefined;

/** A field whose payload is at hand, and its crc32 if that is known already. */
export function fieldOf(name: string, payload: Uint8Array, crc32?: number): NewField {
  return new HeldField(name, payload, crc32);
}

class HeldField implements NewField {
  readonly name: string;
  readonly bytes: number;
  readonly #crc32: number | undefined;
  readonly #payload: Uint8Array;

  constructor(name: string, payload: Uint8Array, crc32: number | undefined) {
    this.name = name;
    this.bytes = payload.length;
    this.#crc32 = crc32;
    this.#payload = payload;
  }

  put(place: Uint8Array): number {
    place.set(this.#payload);
    return this.#crc32 ?? crc32(this.#payload);
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

/** A sample that lies in the write buffer of a shard, and is not part of the shard yet. */
export interface LaidOutSample {
  /** Sorted by name. */
  readonly fields: readonly NewField[];
  /** Where the payload of each field lies, until the sample is committed or discarded. */
  readonly payloads: readonly Uint8Array[];
  /** The crc32 of each payload where it came from. */
  readonly crc32: readonly number[];
}

/**
 * Puts one sample into a shard and its row into the index: the only way into a shard, except for samples that are too
 * large to be held (`putLargeSample`). `factsOf` sees the payloads in their places. Throws what {@link layOutSample} and
 * `factsOf` throw; nothing of the sample is in the shard then.
 */
export function putSample(
  writer: SampleWriter,
  rows: IndexRows,
  key: string,
  fields: readonly NewField[],
  factsOf: (payloadOf: PayloadOf) => SampleFacts,
): void {
  const sample = layOutSample(writer, key, fields);
  try {
    commitSample(
      writer,
      rows,
      key,
      sample,
      factsOf((name) => payloadNamed(name, sample)),
    );
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/**
 * Lays a sample out in the write buffer, its fields sorted by name. The caller commits it ({@link commitSample}) or
 * discards it. Throws SampleSizeError, EntryNameError or KeyLengthError for what the layout does not take, FileError, and
 * the errors of the fields as they are; nothing is laid out then.
 */
export function layOutSample(writer: SampleWriter, key: string, fields: readonly NewField[]): LaidOutSample {
  const sorted = fields.length === 1 ? fields : fields.toSorted(byName);
  try {
    const payloads = writer.begin(key, sorted);
    const sums: number[] = [];
    for (let i = 0; i < sorted.length; i++) sums.push(sorted[i]!.put(payloads[i]!));
    return { fields: sorted, payloads, crc32: sums };
  } catch (error) {
    writer.discard();
    throw error;
  }
}

/** Makes a sample that was laid out part of the shard, and adds its row to the index. */
export function commitSample(
  writer: SampleWriter,
  rows: IndexRows,
  key: string,
  { fields, crc32: sums }: LaidOutSample,
  { source, width, height, orientation, cls }: SampleFacts,
): void {
  writer.commit(sums);
  rows.add({ key, source, fields, crc32: sums, width, height, orientation, cls });
}

function byName(a: NewField, b: NewField): number {
  return a.name < b.name ? -1 : 1;
}

/** The payload of a field of a sample that was laid out. */
export function payloadNamed(name: string | undefined, { fields, payloads }: LaidOutSample): Uint8Array | undefined {
  for (let i = 0; i < fields.length; i++) if (fields[i]!.name === name) return payloads[i];
  return undefined;
}
