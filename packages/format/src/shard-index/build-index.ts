import { crc32, DamagedShardError, ImageError, NpyError } from '@shardtool/base';
import { imageFields } from '../image/kinds.js';
import { type ImageHeader, probeImage } from '../image/probe.js';
import { becameShorter } from '../layouts/bytes/file-window.js';
import { planRuns, type Span } from '../layouts/bytes/read-runs.js';
import type { FieldPosition, OnSkipped, SamplePosition, ShardLayout } from '../layouts/layout.js';
import { NumberList } from '../layouts/number-list.js';
import { isNpy, probeNpyImage } from '../npy/index.js';
import { fieldPayload } from '../sample/field-payload.js';
import type { ColumnValue } from '../sample/label-column.js';
import type { Source } from '../source.js';
import { IndexRows } from './index-rows.js';
import type { FieldColumns, ShardIndex } from './shard-index.js';

/** Longer payloads are checksummed piece by piece, and their header is read from the first piece. */
const HELD_BYTES = 64 << 20;
const PIECE_BYTES = 4 << 20;
const CLASS_FIELD = 'cls';

/**
 * Builds the index of a shard from its headers alone: positions, classes and labels. Image sizes are 0, and checksums
 * absent unless the layout stores them. Throws {@link DamagedShardError} (TruncatedShardError if the shard ends too
 * early), UnsupportedShardError or UnsupportedEntryError for unsupported content, FileError.
 */
export function walkShardIndex(layout: ShardLayout, source: Source): Promise<ShardIndex> {
  return indexOfPositions(layout.headers?.(source) ?? layout.samples(source));
}

/** Builds the same index from the samples that such a walk yields. */
export async function indexOfPositions(walk: AsyncIterable<readonly SamplePosition[]>): Promise<ShardIndex> {
  const rows = new FoundRows();
  for await (const samples of walk) for (const sample of samples) rows.add(sample);
  return rows.toWalkedIndex();
}

/**
 * Like {@link walkShardIndex}, for a caller that reads and checks every payload afterwards: the checks and the files that
 * belong to no sample are those of {@link buildShardIndex}. Null if payloads have to be read first, because the layout
 * stores the checksums of only some of them, or encodes them as values. Throws the errors of {@link walkShardIndex}.
 */
export async function walkShardToCopy(
  layout: ShardLayout,
  source: Source,
  onSkipped: OnSkipped,
): Promise<ShardIndex | null> {
  const rows = new FoundRows();
  for await (const samples of layout.samples(source, onSkipped)) for (const sample of samples) rows.add(sample);
  return rows.needsPayloads ? null : rows.toWalkedIndex();
}

/**
 * Builds the index of a shard that has none, from its headers and payloads: positions, crc32, size and orientation of
 * the image (0, 0 and 1 if it is not an image), class number from the text of `cls`. A crc32 that the layout stores is
 * kept, whatever the bytes are now. Samples are in the order of the file; `source` is '', and label columns are those
 * of the layout. Reads the shard roughly once, front to back, and holds at most one read, or one payload of up to 64
 * MiB. Throws the errors of {@link walkShardIndex}, also for a payload.
 */
export async function buildShardIndex(layout: ShardLayout, source: Source, onSkipped?: OnSkipped): Promise<ShardIndex> {
  const rows = new FoundRows();
  const buffer = new ReadBuffer(source);
  for await (const samples of layout.samples(source, onSkipped)) {
    const payloads = samples.flatMap((sample) => rows.addUnread(sample));
    for (const run of planRuns(payloads)) {
      if (run.bytes > HELD_BYTES) {
        await sumPieces(run.spans[0]!, buffer, rows);
        continue;
      }
      const bytes = await buffer.read(run);
      for (const payload of run.spans) {
        const start = payload.offset - run.offset;
        const stored = bytes.subarray(start, start + payload.bytes);
        const given = payloadOf(payload, stored, source.location);
        rows.note(payload, crc32(given), given);
      }
    }
  }
  return rows.toIndex();
}

/** A payload that has to be read. */
interface Payload extends Pick<FieldPosition, 'name' | 'offset' | 'bytes'> {
  readonly msgpack: boolean;
  /** crc32 if the layout stores it. */
  readonly crc32: number | undefined;
  readonly row: number;
  readonly key: string;
  /** Whether it is the image of its sample. */
  readonly image: boolean;
}

async function sumPieces(payload: Payload, buffer: ReadBuffer, rows: FoundRows): Promise<void> {
  let sum = 0;
  for (let done = 0; done < payload.bytes; done += PIECE_BYTES) {
    const bytes = Math.min(PIECE_BYTES, payload.bytes - done);
    const piece = await buffer.read({ offset: payload.offset + done, bytes });
    sum = crc32(piece, sum);
    rows.note(payload, sum, done === 0 ? piece : null);
  }
}

function payloadOf({ msgpack, key, name, offset }: Payload, stored: Uint8Array, shard: string): Uint8Array {
  try {
    return fieldPayload(stored, msgpack);
  } catch (cause) {
    const message = `${shard}: field "${name}" of sample "${key}" contains a value that cannot be decoded (${(cause as Error).message}).`;
    throw new DamagedShardError({ shard, key, offset }, message, { cause });
  }
}

/** A buffer that is reused for each read. */
class ReadBuffer {
  readonly #source: Source;
  #memory = Buffer.allocUnsafeSlow(PIECE_BYTES);

  constructor(source: Source) {
    this.#source = source;
  }

  /** Valid until the next read. */
  async read({ offset, bytes }: Span): Promise<Uint8Array> {
    if (this.#memory.length < bytes) this.#memory = Buffer.allocUnsafeSlow(bytes);
    const target = this.#memory.subarray(0, bytes);
    const read = await this.#source.readAt(offset, target);
    if (read < bytes) throw becameShorter(this.#source.location, offset + read);
    return target;
  }
}

/** Collects the rows of samples that are found one after the other, with their positions. */
class FoundRows {
  readonly #rows = new IndexRows();
  readonly #sampleOffset = new NumberList();
  readonly #sampleBytes = new NumberList();
  readonly #payloadOffset = new NumberList();
  readonly #payloadMsgpack = new NumberList();
  readonly #labels = new Map<string, ColumnValue[]>();
  /** Whether the layout lacks the checksum of any payload, and whether it has that of any. */
  #lacksCrc32 = false;
  #hasCrc32 = false;
  #hasValues = false;

  /** Whether only the payloads complete the checksums, or have to be decoded. */
  get needsPayloads(): boolean {
    return this.#hasValues || (this.#lacksCrc32 && this.#hasCrc32);
  }

  /** Adds a sample whose payloads are not read. */
  add({ key, offset, bytes, fields, cls = -1, labels }: SamplePosition): void {
    const row = this.#rows.samples;
    for (let i = 0; i < fields.length; i++) {
      const { offset: at, crc32: known, msgpack = false } = fields[i]!;
      if (known === undefined) this.#lacksCrc32 = true;
      else this.#hasCrc32 = true;
      if (msgpack) this.#hasValues = true;
      this.#payloadOffset.push(at);
      this.#payloadMsgpack.push(msgpack ? 1 : 0);
    }
    const unread = {
      source: '',
      crc32: fields.map(({ crc32: known = 0 }) => known),
      width: 0,
      height: 0,
      orientation: 1,
      cls,
    };
    this.#rows.add({ key, fields, ...unread });
    this.#sampleOffset.push(offset);
    this.#sampleBytes.push(bytes);
    for (const [name, value] of labels ?? []) this.#labelRows(name, row).push(value);
  }

  /** Adds a sample and returns its payloads, which have to be read and noted. */
  addUnread(sample: SamplePosition): Payload[] {
    const row = this.#rows.samples;
    this.add(sample);
    const { key, fields } = sample;
    const imageField = imageFieldOf(fields);
    return fields.map(({ name, offset, bytes, crc32: known, msgpack = false }) => {
      const image = name === imageField;
      return { name, offset, bytes, crc32: known, msgpack, row, key, image };
    });
  }

  /** Records the crc32 of a payload, and the facts in its first bytes; null if they are already known. */
  note({ row, name, image, crc32: known }: Payload, sum: number, bytes: Uint8Array | null): void {
    // The checksum that the layout stores is kept, so that changed bytes are still detected.
    if (known === undefined) this.#rows.noteCrc32(row, name, sum);
    if (bytes === null) return;
    if (name === CLASS_FIELD) this.#rows.noteClass(row, classNumber(bytes));
    const header = image ? headerOf(bytes) : null;
    if (header !== null) this.#rows.noteImage(row, header);
  }

  toIndex(): ShardIndex {
    const samples = this.#rows.samples;
    const index = this.#rows.toIndex({
      sampleOffset: this.#sampleOffset.toArray(),
      sampleBytes: this.#sampleBytes.toArray(),
      payloadOffset: this.#payloadOffset.toArray(),
      payloadMsgpack: Uint8Array.from(this.#payloadMsgpack.toArray()),
    });
    return {
      ...index,
      columns: new Map([...this.#labels.keys()].sort().map((name) => [name, alike(this.#labelRows(name, samples))])),
    };
  }

  /** The index if no payload was noted. */
  toWalkedIndex(): ShardIndex {
    const index = this.toIndex();
    const known = (columns: FieldColumns): FieldColumns => {
      const { crc32: sums, ...places } = columns;
      return this.#lacksCrc32 || sums === undefined ? places : columns;
    };
    const fields = new Map([...index.fields].map(([name, columns]) => [name, known(columns)]));
    return { ...index, fields, orientation: new Uint8Array(index.samples) };
  }

  /** The values of a label column, with null for samples up to `row` that have none. */
  #labelRows(name: string, row: number): ColumnValue[] {
    let values = this.#labels.get(name);
    if (values === undefined) {
      values = [];
      this.#labels.set(name, values);
    }
    while (values.length < row) values.push(null);
    return values;
  }
}

/** The field that is a sample's image: the first of {@link imageFields}. */
export function imageFieldOf(fields: readonly { readonly name: string }[]): string | undefined {
  return imageFields(fields.map(({ name }) => name))[0];
}

/** The facts in the header of an image; null if it is not an image that can be decoded. */
export function headerOf(bytes: Uint8Array): Omit<ImageHeader, 'kind'> | null {
  try {
    return isNpy(bytes) ? { ...probeNpyImage(bytes), orientation: 1 } : probeImage(bytes);
  } catch (error) {
    if (error instanceof ImageError || error instanceof NpyError) return null;
    throw error;
  }
}

/** The number in the text of a field `cls`, as Python's `int` parses it; -1 if it is not a class number. */
export function classNumber(bytes: Uint8Array): number {
  const text = bytes.length > 64 ? '' : Buffer.from(bytes).toString('latin1').trim();
  const number = /^\+?\d+$/.test(text) ? Number(text) : -1;
  return number <= 0x7fffffff ? number : -1;
}

/** Converts a column that mixes text and numbers to text. */
function alike(values: ColumnValue[]): ColumnValue[] {
  const isText = (value: ColumnValue) => typeof value === 'string';
  const isMixed = values.some(isText) && values.some((value) => value !== null && !isText(value));
  return isMixed ? values.map((value) => (value === null ? null : String(value))) : values;
}
