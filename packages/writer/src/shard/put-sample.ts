import { crc32 } from '@shardtool/base';
import type { FieldSize, IndexRows, SampleRow, ShardWriter } from '@shardtool/format';

/** One field of a sample that is written into a shard. */
export interface NewField extends FieldSize {
  /**
   * Copies the payload to `place` and returns its crc32, computed from the original bytes. A later change in the buffer
   * is therefore detected when the finished shard is read back. Throws if the payload cannot be read.
   */
  put(place: Uint8Array): number;
  /** Returns the payload in pieces, each valid until the next, if it is too large for memory. */
  readonly pieces?: (() => Iterable<Uint8Array> | AsyncIterable<Uint8Array>) | undefined;
}

/** What the index stores about a sample in addition to its fields. */
export type SampleFacts = Pick<SampleRow, 'source' | 'width' | 'height' | 'orientation' | 'cls'>;

/** Receives samples: a shard, or a writer that discards them. */
export type SampleWriter = Pick<ShardWriter, 'begin' | 'commit' | 'discard' | 'writeInPieces'>;

/** Returns the payload of a field by name; undefined if the sample has no field of that name. */
export type PayloadOf = (name: string | undefined) => Uint8Array | undefined;

/** A field whose payload is in memory, and its crc32 if it is already known. */
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

/** Number of classes whose fields are cached. */
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
 * The fields of a sample of class `cls` (-1 for none) as a shard stores them. The class number is a separate field. If
 * a shard stores images alone (`imageOnly`), the class is only in the index.
 */
export function withClass<Field extends NewField>(
  fields: readonly Field[],
  cls: number,
  imageOnly: boolean,
): readonly (Field | NewField)[] {
  if (cls === -1) return fields;
  if (imageOnly) return fields.filter(({ name }) => name !== 'cls');
  for (let i = 0; i < fields.length; i++) if (fields[i]!.name === 'cls') return fields;
  return [...fields, classField(cls)];
}

/** A sample in the write buffer of a shard that is not part of the shard yet. */
export interface LaidOutSample {
  /** Sorted by name. */
  readonly fields: readonly NewField[];
  /** The payload of each field in the buffer, until the sample is committed or discarded. */
  readonly payloads: readonly Uint8Array[];
  /** The crc32 of each payload, computed from the original bytes. */
  readonly crc32: readonly number[];
}

/**
 * Puts one sample into a shard and its row into the index. All samples use this function, except those that are too
 * large for memory (`putLargeSample`). `factsOf` receives the payloads in the buffer. Throws the errors of {@link
 * layOutSample} and `factsOf`. Nothing of the sample is in the shard then.
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
 * discards it. Throws SampleSizeError, EntryNameError or KeyLengthError for samples that the layout does not support,
 * FileError, and the errors of the fields unchanged. Nothing is laid out then.
 */
export function layOutSample(writer: SampleWriter, key: string, fields: readonly NewField[]): LaidOutSample {
  const sorted = isSorted(fields) ? fields : fields.toSorted(byName);
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

/** Makes a laid-out sample part of the shard, and adds its row to the index. */
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

function isSorted(fields: readonly NewField[]): boolean {
  for (let i = 1; i < fields.length; i++) if (fields[i]!.name < fields[i - 1]!.name) return false;
  return true;
}

function byName(a: NewField, b: NewField): number {
  return a.name < b.name ? -1 : 1;
}

/** Returns the payload of a field of a laid-out sample. */
export function payloadNamed(name: string | undefined, { fields, payloads }: LaidOutSample): Uint8Array | undefined {
  for (let i = 0; i < fields.length; i++) if (fields[i]!.name === name) return payloads[i];
  return undefined;
}
