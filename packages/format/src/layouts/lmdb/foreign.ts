import { isUtf8 } from 'node:buffer';
import { decodeHead, headBytes, type ObjectHead } from '../../msgpack/object.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { FileWindow } from '../bytes/file-window.js';
import { labelValue } from '../columns/column-names.js';
import { ColumnReader, damaged, type StoredValue, unsupported, type ValueColumn } from '../columns/value-columns.js';
import type { SamplePosition } from '../layout.js';
import type { LmdbDatabase } from './read.js';

/** Values in LMDB databases of other software: lists of tensorpack, and datasets for text recognition. Datums: datum.ts. */

/** Names of the entries that tensorpack adds to its samples. */
const TENSORPACK_NOTES: ReadonlySet<string> = new Set(['__keys__', '__len__']);
/** The keys of a NumPy array or value in msgpack: msgpack_numpy, `encode`. */
const ARRAY_KEYS = ['nd', 'type', 'kind', 'shape', 'data'];
const MOST_TEXT_BYTES = 1 << 16;
/** Limit for the number of values of a sample, and for the number of entries of an array. */
const MOST_VALUES = 100;

interface Value {
  readonly kind: 'bytes' | 'text' | 'number';
  readonly offset: number;
  readonly bytes: number;
}

const NOUNS = { bytes: 'bytes', text: 'a text', number: 'a number' } as const;

/**
 * Reads the samples of tensorpack's LMDBSerializer: lists in msgpack, whose arrays are those of msgpack_numpy. The first
 * bytes are the image; the only integer is the class; other values become fields and label columns that are named by
 * their number. All samples have the values that the first one has.
 */
export class TensorpackReader {
  readonly #file: FileWindow;
  readonly #shard: string;
  #columns: readonly ValueColumn[] | null = null;
  /** The kinds of the values of the first sample. */
  #kinds: readonly Value['kind'][] | null = null;
  #reader: ColumnReader | null = null;

  constructor(file: FileWindow, shard: string) {
    this.#file = file;
    this.#shard = shard;
  }

  static isNote(key: string): boolean {
    return TENSORPACK_NOTES.has(key);
  }

  /** Whether a value that begins with `head` is a list whose first object is bytes, or an array of msgpack_numpy. */
  static isBegin(head: Buffer): boolean {
    const list = head.length < headBytes(head[0] ?? 0) + 1 ? null : decodeHead(head, 0);
    if (list?.kind !== 'array' || list.children === 0) return false;
    const first = decodeHead(head, list.bytes);
    return first?.kind === 'bin' || (first?.kind === 'map' && isArrayKey(head, list.bytes + first.bytes));
  }

  /** Throws DamagedShardError and UnsupportedShardError. */
  async position(key: string, offset: number, bytes: number): Promise<SamplePosition> {
    const end = offset + bytes;
    const list = await this.#head(offset, end, key);
    if (list.kind !== 'array' || list.children > MOST_VALUES) throw this.#wrong(key, offset, 'is not a list');
    const values: Value[] = [];
    let at = offset + list.bytes;
    for (let i = 0; i < list.children; i++) {
      const { value, next } = await this.#value(at, end, key);
      values.push(value);
      at = next;
    }
    if (at !== end) throw this.#wrong(key, offset, 'has bytes after its list');
    this.#columns ??= columnsOf(values);
    const columns = this.#columns;
    if (values.length !== columns.length)
      throw this.#wrong(key, offset, `has ${values.length} values, but the first sample has ${columns.length}`);
    this.#kinds ??= values.map(({ kind }) => kind);
    for (const [i, { kind }] of values.entries()) {
      if (kind !== this.#kinds[i])
        throw this.#refused(
          key,
          `${NOUNS[kind]} as value ${i}, unlike the first sample, with ${NOUNS[this.#kinds[i]!]}`,
        );
    }
    const integer = columns.filter(({ role }) => role.kind === 'value');
    this.#reader ??= new ColumnReader(
      this.#file,
      this.#shard,
      columns,
      integer.length === 1 ? integer[0]!.name : undefined,
    );
    const stored: StoredValue[] = values.map((value, i) => ({
      column: columns[i]!,
      offset: value.offset,
      bytes: value.bytes,
    }));
    return { key, offset, bytes, ...(await this.#reader.sample(key, stored)) };
  }

  /** One value of the list, and the offset of the byte after it. */
  async #value(offset: number, end: number, key: string): Promise<{ value: Value; next: number }> {
    const head = await this.#head(offset, end, key);
    const next = offset + head.bytes + head.payload;
    if (head.kind === 'map') return this.#array(offset, head, end, key);
    if (next > end) throw this.#wrong(key, offset, 'contains a value that extends beyond its end');
    if (head.kind === 'bin' || head.kind === 'str') {
      const kind = head.kind === 'bin' ? 'bytes' : 'text';
      return { value: { kind, offset: offset + head.bytes, bytes: head.payload }, next };
    }
    if (head.kind === 'array') throw this.#refused(key, 'a list in its list');
    return { value: { kind: 'number', offset, bytes: next - offset }, next };
  }

  /** An array of msgpack_numpy: one of bytes, which is an encoded image, or a single number. */
  async #array(offset: number, map: ObjectHead, end: number, key: string): Promise<{ value: Value; next: number }> {
    let at = offset + map.bytes;
    let type = '';
    let dimensions = 0;
    let data: { offset: number; bytes: number } | null = null;
    for (let i = 0; i < map.children / 2; i++) {
      const name = await this.#head(at, end, key);
      const text =
        (name.kind === 'bin' || name.kind === 'str') && name.payload <= MOST_VALUES
          ? await this.#text(at + name.bytes, name.payload, end, key)
          : '';
      if (!ARRAY_KEYS.includes(text)) throw this.#refused(key, 'a map in its list');
      at += name.bytes + name.payload;
      const held = await this.#head(at, end, key);
      const start = at + held.bytes;
      if (held.kind === 'array' && held.children <= MOST_VALUES) {
        dimensions = held.children;
        at = start;
        for (let n = 0; n < held.children; n++) {
          const part = await this.#head(at, end, key);
          at += part.bytes + part.payload;
        }
        continue;
      }
      if (held.children > 0) throw this.#refused(key, 'an array of records');
      if (start + held.payload > end) throw this.#wrong(key, offset, 'contains a value that extends beyond its end');
      if (text === 'type') type = await this.#text(start, Math.min(held.payload, MOST_VALUES), end, key);
      if (text === 'data') data = { offset: start, bytes: held.payload };
      at = start + held.payload;
    }
    if (data === null) throw this.#refused(key, 'a map in its list');
    if (type === '|u1' && dimensions === 1) return { value: { kind: 'bytes', ...data }, next: at };
    throw this.#refused(
      key,
      dimensions === 0 ? `a NumPy value of ${type}` : `an array of ${type} with ${dimensions} dimensions`,
    );
  }

  async #text(offset: number, bytes: number, end: number, key: string): Promise<string> {
    if (offset + bytes > end) throw this.#wrong(key, offset, 'contains a value that extends beyond its end');
    return bytes === 0 ? '' : (await this.#file.at(offset, bytes)).toString('latin1', 0, bytes);
  }

  async #head(offset: number, end: number, key: string): Promise<ObjectHead> {
    if (offset >= end) throw this.#wrong(key, offset, 'ends within its list');
    const needed = headBytes((await this.#file.at(offset, 1))[0]!);
    if (offset + needed > end) throw this.#wrong(key, offset, 'ends within its list');
    const head = decodeHead(await this.#file.at(offset, needed), 0);
    if (head === null) throw this.#refused(key, 'a value of an extension type');
    return head;
  }

  #wrong(key: string, offset: number, what: string) {
    return damaged(this.#shard, offset, `the value of the key ${JSON.stringify(key)} ${what}`);
  }

  #refused(key: string, what: string) {
    return unsupported(
      this.#shard,
      `the value of the key ${JSON.stringify(key)} has ${what}, which is not read: read the database with tensorpack, and write the samples with shardtool.Writer`,
    );
  }
}

function isArrayKey(head: Buffer, at: number): boolean {
  if (at >= head.length || at + headBytes(head[at]!) >= head.length) return false;
  const name = decodeHead(head, at);
  if (name?.kind !== 'bin' && name?.kind !== 'str') return false;
  return ARRAY_KEYS.includes(head.toString('latin1', at + name.bytes, at + name.bytes + name.payload));
}

/** Columns are named by their number. Text is a field, like bytes. */
function columnsOf(values: readonly Value[]): ValueColumn[] {
  return values.map(({ kind }, i) => ({
    name: String(i),
    role:
      kind === 'number'
        ? { kind: 'value', value: numberOf }
        : { kind: 'bytes', extension: kind === 'text' ? 'txt' : 'bin' },
  }));
}

/** A number, boolean or nil in msgpack, as a label column has it. Throws RangeError. */
function numberOf(view: DataView): ColumnValue {
  const first = view.getUint8(0);
  if (first < 0x80) return first;
  if (first >= 0xe0) return first - 0x100;
  switch (first) {
    case 0xc0:
      return null;
    case 0xc2:
      return false;
    case 0xc3:
      return true;
    case 0xca:
      return view.getFloat32(1);
    case 0xcb:
      return view.getFloat64(1);
    case 0xcc:
      return view.getUint8(1);
    case 0xcd:
      return view.getUint16(1);
    case 0xce:
      return view.getUint32(1);
    case 0xcf:
      return labelValue(view.getBigUint64(1));
    case 0xd0:
      return view.getInt8(1);
    case 0xd1:
      return view.getInt16(1);
    case 0xd2:
      return view.getInt32(1);
    case 0xd3:
      return labelValue(view.getBigInt64(1));
    default:
      throw new RangeError('it is not a number');
  }
}

/** Keys of datasets for text recognition (clovaai/deep-text-recognition-benchmark, create_lmdb_dataset.py). */
const OCR_IMAGE = /^image-(\d{9})$/;
const OCR_LABEL = /^label-(\d{9})$/;
const OCR_COUNT = 'num-samples';

/** The keys of a dataset for text recognition. */
export const ocr = {
  count: OCR_COUNT,
  isImage: (key: string) => OCR_IMAGE.test(key),
  isLabel: (key: string) => OCR_LABEL.test(key),
  imageOf: (label: string) => label.replace(OCR_LABEL, 'image-$1'),
};

/**
 * The text of the label that belongs to the image `key`; null if there is none. Throws {@link UnsupportedShardError} if it
 * is not UTF-8, or too long.
 */
export async function ocrText(shard: string, database: LmdbDatabase, key: string): Promise<string | null> {
  const name = key.replace(OCR_IMAGE, 'label-$1');
  const label = await database.find(name);
  if (label === undefined) return null;
  const what = `the value of the key ${JSON.stringify(name)}`;
  if (label.bytes > MOST_TEXT_BYTES)
    throw unsupported(shard, `${what} has ${label.bytes} bytes, but a text may have ${MOST_TEXT_BYTES}: shorten it`);
  const value = await database.value(label);
  if (!isUtf8(value)) throw unsupported(shard, `${what} is not a text of UTF-8: write it again`);
  return value.toString('utf8');
}
