import { DamagedShardError, maskedCrc32c, TruncatedShardError, UnsupportedShardError } from '@shardtool/base';
import { SIGNATURE_BYTES } from '../../image/kinds.js';
import { jsonText } from '../../sample/exact-json.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { Source } from '../../source.js';
import { compressedWhole, compressionOf } from '../bytes/compressed.js';
import { becameShorter, FileWindow } from '../bytes/file-window.js';
import { unpacked } from '../bytes/unpacked.js';
import {
  classColumnOf,
  fieldOfColumn,
  imageColumnOf,
  keyOf,
  labelOfColumn,
  labelValue,
} from '../columns/column-names.js';
import { decodeTable, isField, SampleOfTable, TABLE_MARK, type TableColumn } from '../columns/table.js';
import type { ChosenColumns, FieldPosition, OnDamaged, SamplePosition, TableLayout } from '../layout.js';
import { ExampleError, type Feature, readExample } from './example.js';
import { TfrecordWriter } from './write.js';

/**
 * TensorFlow's record files with a tf.train.Example in each record, read in place: a length (uint64, little-endian) and
 * its masked crc32c, the example, and its masked crc32c (tensorflow, core/lib/io/record_writer.h). Opening reads
 * lengths and features; `index`, `verify` and `convert` check every record against its crc32c. Samples have no keys
 * there: here the key is the shard's name and the record's number.
 */
export const tfrecord: TableLayout = layoutWith({});

function layoutWith(chosen: ChosenColumns): TableLayout {
  const layout: TableLayout = {
    name: 'tfrecord',
    extension: '.tfrecord',
    isOpenedByWalk: true,
    samples: (source, _, onDamaged) => walk(source, true, chosen, onDamaged),
    headers: (source) => walk(source, false, chosen),
    unpack: async (source) => ((await isGzip(source)) ? unpacked(source, 'gz') : source),
    choosing: layoutWith,
    columnNames: { image: 'image/encoded', cls: 'image/class/label' },
    ofTable: (table) => ({
      ...layout,
      table,
      createWriter: (fd, shard, most) => new TfrecordWriter(fd, shard, table, most),
    }),
  };
  return layout;
}

const HEAD_BYTES = 12;
const FOOT_BYTES = 4;
/** A record is held in memory while its crc32c is computed. */
const MOST_RECORD_BYTES = 1 << 30;
const YIELDED = 256;
/** Enough for the names of the columns. */
const MOST_MARK_BYTES = 1 << 20;

/** Whether the file is compressed, whatever its name: no length that matches its crc32c begins like gzip. */
async function isGzip(source: Source): Promise<boolean> {
  const head = Buffer.alloc(HEAD_BYTES);
  const read = await source.readAt(0, head);
  const isRecord = read === HEAD_BYTES && maskedCrc32c(head.subarray(0, 8)) === head.readUInt32LE(8);
  return head[0] === 0x1f && head[1] === 0x8b && !isRecord;
}

async function* walk(
  source: Source,
  isChecked: boolean,
  chosen: ChosenColumns,
  onDamaged?: OnDamaged,
): AsyncGenerator<readonly SamplePosition[]> {
  const { location: shard, size } = source;
  const window = new FileWindow(source);
  const stem = shard
    .slice(Math.max(shard.lastIndexOf('/'), shard.lastIndexOf('\\')) + 1)
    .replace(/\.(tfrecords?|tfrec)$/, '');
  const naming = new Naming(shard, chosen);
  let found: SamplePosition[] = [];
  let ours: ReadonlyMap<string, TableColumn> | null = null;
  let record: Buffer<ArrayBufferLike> = Buffer.alloc(0);
  for (let offset = 0, number = 0; offset < size; number++) {
    const bytes = await recordBytes(window, shard, offset, size);
    const start = offset + HEAD_BYTES;
    const numbered = `${stem}/${String(number).padStart(6, '0')}`;
    if (isChecked) {
      const trouble = await troubleOf(async () => {
        record = await checkRecord(source, start, bytes, record);
      });
      if (trouble !== null) {
        if (onDamaged === undefined) throw trouble;
        onDamaged(trouble, ours === null && chosen.key === undefined ? numbered : undefined);
        offset = start + bytes + FOOT_BYTES;
        continue;
      }
    }
    const features = await exampleAt(window, shard, start, bytes);
    if (offset === 0 && Object.values(chosen).every((name) => name === undefined))
      ours = await tableIn(window, features.get(TABLE_MARK));
    if (ours !== null) {
      const whole = { offset, bytes: HEAD_BYTES + bytes + FOOT_BYTES };
      found.push({ ...whole, ...(await ownContentsOf(window, shard, features, ours, offset)) });
      offset += whole.bytes;
      if (found.length === YIELDED) yield found.splice(0);
      continue;
    }
    const key = chosen.key === undefined ? numbered : await keyAt(window, shard, features, chosen.key, offset);
    const span = { offset, bytes: HEAD_BYTES + bytes + FOOT_BYTES };
    found.push({ key, ...span, ...(await contentsOf(window, shard, key, features, naming)) });
    offset += span.bytes;
    if (found.length < YIELDED) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** The table in the first record of a file of ours; null for a file of other software. */
async function tableIn(
  window: FileWindow,
  mark: Feature | undefined,
): Promise<ReadonlyMap<string, TableColumn> | null> {
  const [place] = mark?.kind === 'bytes' ? mark.values : [];
  if (place === undefined || place.bytes > MOST_MARK_BYTES) return null;
  return decodeTable((await window.at(place.offset, place.bytes)).toString('utf8', 0, place.bytes));
}

/** The contents of a record of ours, by its table. */
async function ownContentsOf(
  window: FileWindow,
  shard: string,
  features: ReadonlyMap<string, Feature>,
  table: ReadonlyMap<string, TableColumn>,
  offset: number,
): Promise<Omit<SamplePosition, 'offset' | 'bytes'>> {
  const refuse = (why: string) => damaged(shard, offset, `the record at byte ${offset} ${why}`);
  const sample = new SampleOfTable();
  for (const [name, column] of table) {
    const feature = features.get(name);
    if (feature === undefined) {
      if (!isField(column)) sample.value(column, null);
      continue;
    }
    const [value] = feature.values;
    if (feature.values.length !== 1 || (isField(column) && feature.kind !== 'bytes'))
      throw refuse(`has a value in "${name}" that does not match its file's table`);
    if (feature.kind === 'numbers') sample.value(column, labelValue(value as number | bigint));
    else {
      const place = feature.values[0]!;
      if (isField(column)) sample.field(column, place);
      else sample.value(column, await textAt(window, place));
    }
  }
  return sample.read(refuse);
}

async function textAt(window: FileWindow, { offset, bytes }: { readonly offset: number; readonly bytes: number }) {
  return bytes === 0 ? '' : (await window.at(offset, bytes)).toString('utf8', 0, bytes);
}

/** The length of the record at `offset`. */
async function recordBytes(window: FileWindow, shard: string, offset: number, size: number): Promise<number> {
  if (size - offset < HEAD_BYTES + FOOT_BYTES) throw cut(shard, offset);
  const head = await window.at(offset, HEAD_BYTES);
  if (maskedCrc32c(head.subarray(0, 8)) !== head.readUInt32LE(8)) {
    const compression = offset === 0 ? compressionOf(head) : null;
    if (compression !== null) throw compressedWhole(shard, compression);
    throw damaged(
      shard,
      offset,
      `at byte ${offset} there is no TFRecord record, or its length has changed, so the records after it cannot be found`,
    );
  }
  const bytes = Number(head.readBigUInt64LE(0));
  if (bytes > size - offset - HEAD_BYTES - FOOT_BYTES) throw cut(shard, offset);
  return bytes;
}

/** The damage that `work` finds. The error of a truncated file is thrown, because nothing follows. */
async function troubleOf(work: () => Promise<void>): Promise<DamagedShardError | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!(error instanceof DamagedShardError) || error instanceof TruncatedShardError) throw error;
    return error;
  }
}

/** Checks a record against its crc32c. Returns the memory that it was read into, for reuse. */
async function checkRecord(source: Source, start: number, bytes: number, memory: Buffer): Promise<Buffer> {
  const { location: shard } = source;
  if (bytes > MOST_RECORD_BYTES) {
    throw new UnsupportedShardError(
      { shard, offset: start },
      `${shard}: the record at byte ${start - HEAD_BYTES} has ${bytes} bytes, more than 1 GiB; split it.`,
    );
  }
  const room = memory.length < bytes + FOOT_BYTES ? Buffer.allocUnsafeSlow(bytes + FOOT_BYTES) : memory;
  const record = room.subarray(0, bytes + FOOT_BYTES);
  const read = await source.readAt(start, record);
  if (read < record.length) throw becameShorter(shard, start + read);
  if (maskedCrc32c(record.subarray(0, bytes)) !== record.readUInt32LE(bytes)) {
    throw damaged(
      shard,
      start - HEAD_BYTES,
      `the record at byte ${start - HEAD_BYTES} has changed since it was written (its crc32c does not match)`,
    );
  }
  return room;
}

async function exampleAt(
  window: FileWindow,
  shard: string,
  start: number,
  bytes: number,
): Promise<ReadonlyMap<string, Feature>> {
  try {
    return await readExample(window, start, start + bytes);
  } catch (cause) {
    if (!(cause instanceof ExampleError)) throw cause;
    const message = `${shard}: the record at byte ${start - HEAD_BYTES} is not a readable tf.train.Example (${cause.message}), the only kind of record that shardtool reads.`;
    throw new UnsupportedShardError({ shard, offset: start - HEAD_BYTES }, message, { cause });
  }
}

/** Maximum length of a key. */
const MOST_KEY_BYTES = 4096;

/** The key in a feature, a text or one number. */
async function keyAt(
  window: FileWindow,
  shard: string,
  features: ReadonlyMap<string, Feature>,
  name: string,
  offset: number,
): Promise<string> {
  const refuse = (why: string) =>
    new UnsupportedShardError(
      { shard, offset },
      `${shard}: in the record at byte ${offset} the feature "${name}" ${why}, so it cannot be the key; choose another feature.`,
    );
  const feature = features.get(name);
  if (feature === undefined) throw noSuchFeature(shard, offset, name, features);
  if (feature.values.length !== 1) throw refuse(`has ${feature.values.length} values`);
  if (feature.kind === 'numbers') return keyOf(String(feature.values[0]), refuse);
  const { offset: at, bytes } = feature.values[0]!;
  if (bytes > MOST_KEY_BYTES) throw refuse(`has ${bytes} bytes`);
  return keyOf(bytes === 0 ? '' : (await window.at(at, bytes)).toString('utf8', 0, bytes), refuse);
}

function noSuchFeature(
  shard: string,
  offset: number,
  name: string,
  features: ReadonlyMap<string, Feature>,
): UnsupportedShardError {
  const there = [...features.keys()].join(', ');
  const message = `${shard}: the record at byte ${offset} has no feature "${name}"; its features are ${there}.`;
  return new UnsupportedShardError({ shard, offset }, message);
}

async function contentsOf(
  window: FileWindow,
  shard: string,
  key: string,
  features: ReadonlyMap<string, Feature>,
  naming: Naming,
): Promise<Pick<SamplePosition, 'fields' | 'cls' | 'labels'>> {
  const fields: FieldPosition[] = [];
  const labels = new Map<string, ColumnValue>();
  const { image, cls: classFeature } = naming.of(features);
  let cls = -1;
  for (const [name, feature] of features) {
    if (feature.kind === 'numbers') {
      const value = labelOf(feature.values);
      if (
        name === classFeature &&
        Number.isInteger(value) &&
        (value as number) >= -1 &&
        (value as number) <= 0x7fffffff
      ) {
        cls = value as number;
      } else labels.set(labelOfColumn(name), value);
      continue;
    }
    for (const [i, place] of feature.values.entries()) {
      const peek = Math.min(place.bytes, SIGNATURE_BYTES);
      const first = peek === 0 ? Buffer.alloc(0) : (await window.at(place.offset, peek)).subarray(0, peek);
      const numbered = i === 0 ? name : `${name}.${i}`;
      const field = fieldOfColumn(numbered, first, numbered === image, IS_TEXT.test(name) ? 'txt' : 'bin');
      if (fields.some((other) => other.name === field)) {
        const message = `${shard}: in sample ${key} two features would both be the field "${field}"; rename one of them.`;
        throw new UnsupportedShardError({ shard, key, offset: place.offset }, message);
      }
      fields.push({ name: field, ...place });
    }
  }
  return { fields, cls, labels };
}

/** Names of byte features that hold text, such as those of TensorFlow's ImageNet records. */
const IS_TEXT = /(text|caption|name|format|colorspace|synset|url|source_id|sha256|title|description)$/i;

/** Null, the single number, or all numbers as JSON. */
function labelOf(values: readonly (number | bigint)[]): ColumnValue {
  if (values.length === 0) return null;
  if (values.length === 1) return labelValue(values[0]!);
  return jsonText(values);
}

/** Which features are the image and the class. Looked up again if the names change. */
class Naming {
  readonly #shard: string;
  readonly #chosen: ChosenColumns;
  #names = '';
  #found: { readonly image: string | undefined; readonly cls: string | undefined } = {
    image: undefined,
    cls: undefined,
  };

  constructor(shard: string, chosen: ChosenColumns) {
    this.#shard = shard;
    this.#chosen = chosen;
  }

  of(features: ReadonlyMap<string, Feature>) {
    const names = [...features.keys()].sort().join('\0');
    if (names === this.#names) return this.#found;
    const ofKind = (kind: Feature['kind']) =>
      [...features]
        .filter(([, feature]) => feature.kind === kind)
        .map(([name]) => name)
        .sort();
    const { image, label } = this.#chosen;
    this.#check(image, 'bytes', features);
    this.#check(label, 'numbers', features);
    this.#names = names;
    this.#found = { image: image ?? imageColumnOf(ofKind('bytes')), cls: label ?? classColumnOf(ofKind('numbers')) };
    return this.#found;
  }

  #check(name: string | undefined, kind: Feature['kind'], features: ReadonlyMap<string, Feature>): void {
    if (name === undefined) return;
    const feature = features.get(name);
    if (feature === undefined) throw noSuchFeature(this.#shard, 0, name, features);
    if (feature.kind === kind) return;
    const message = `${this.#shard}: its feature "${name}" holds ${feature.kind}, so it cannot be the ${kind === 'bytes' ? 'image' : 'class number'}; choose another feature.`;
    throw new UnsupportedShardError({ shard: this.#shard }, message);
  }
}

function cut(shard: string, offset: number): TruncatedShardError {
  const message = `${shard}: its last record, at byte ${offset}, is truncated; fetch or write the file again.`;
  return new TruncatedShardError({ shard, offset }, message);
}

function damaged(shard: string, offset: number, what: string): DamagedShardError {
  return new DamagedShardError({ shard, offset }, `${shard}: ${what}; fetch or write the file again.`);
}
