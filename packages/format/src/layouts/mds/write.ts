import { isUtf8 } from 'node:buffer';
import { crc32, crc32Combine, OptionError, option, optionName, sentence, UnsupportedEntryError } from '@shardtool/base';
import { kindOfField } from '../../image/kinds.js';
import { jsonText } from '../../sample/exact-json.js';
import type { ColumnValue } from '../../sample/label-column.js';
import type { FieldSize } from '../../sample/sample-check.js';
import { SampleCheck, tableRules } from '../../sample/sample-check.js';
import type { SummedBytes } from '../../sample/sample-codec.js';
import { unwritable, WriteBuffer, writeAt } from '../bytes/write-buffer.js';
import {
  type Cell,
  encodeTable,
  isField,
  type SampleValues,
  TABLE_MARK,
  type Table,
  type TableColumn,
  TableRow,
} from '../columns/table.js';
import type { FinishedShard, ListedShard, ShardWriter } from '../layout.js';
import { SamplePlaces } from '../sample-places.js';

const WORD = 4;
const MOST_SHARD_BYTES = 0xffffffff;

const RULES = tableRules();

/** A column as MosaicML's reader expects it: the name of its encoding, and the length of its values if all have the same length. */
interface Encoding {
  readonly name: string;
  readonly bytes: number | null;
  encode?(value: Exclude<ColumnValue, null>): Uint8Array;
}

const utf8 = (value: Exclude<ColumnValue, null>) => Buffer.from(String(value));
const json = (value: unknown) => Buffer.from(jsonText(value));
const BYTES: Encoding = { name: 'bytes', bytes: null };
const STR: Encoding = { name: 'str', bytes: null, encode: utf8 };
const JSON_TEXT: Encoding = { name: 'json', bytes: null, encode: json };
const INT: Encoding = { name: 'int', bytes: 8, encode: int64 };
const FLOAT: Encoding = { name: 'float64', bytes: 8, encode: float64 };

/**
 * MDS has no missing values: a label column with missing values becomes JSON, where they are `null`. A field that a
 * sample lacks is empty.
 */
function encodingOf({ holds, of, isOptional }: TableColumn): Encoding {
  switch (holds) {
    case 'image':
      return imageEncoding(of, isOptional);
    case 'bytes':
      return BYTES;
    // An empty text is not JSON.
    case 'json':
      return isOptional ? STR : JSON_TEXT;
    case 'text':
    case 'key':
    case 'ending':
    case 'missing':
      return STR;
    case 'class':
      return INT;
    case 'bool':
      return JSON_TEXT;
    case 'string':
      return isOptional ? JSON_TEXT : STR;
    case 'int':
      return isOptional ? JSON_TEXT : INT;
    case 'double':
      return isOptional ? JSON_TEXT : FLOAT;
  }
}

/** MosaicML's reader decodes `jpeg` and `png` columns to images if every sample has one. */
function imageEncoding(field: string, isOptional: boolean): Encoding {
  const kind = kindOfField(field.slice(field.lastIndexOf('.') + 1));
  return !isOptional && (kind === 'jpeg' || kind === 'png') ? { name: kind, bytes: null } : BYTES;
}

function int64(value: Exclude<ColumnValue, null>): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

function float64(value: Exclude<ColumnValue, null>): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(Number(value));
  return bytes;
}

const MISSING: TableColumn = { name: '__missing__', holds: 'missing', of: '', isOptional: false };

/**
 * The table with a column that lists the fields that a sample lacks, if any sample lacks one: an empty value could also
 * be an empty field.
 */
function withMissing(table: Table): Table {
  const isSparse = table.columns.some((column) => isField(column) && column.isOptional);
  return isSparse ? { ...table, columns: [...table.columns, MISSING] } : table;
}

/** The description of the columns in shards and in their list, by MosaicML's names (mosaicml-streaming, base/format/mds/writer.py). */
function configOf(table: Table) {
  const encodings = table.columns.map(encodingOf);
  return {
    column_encodings: encodings.map(({ name }) => name),
    column_names: table.columns.map(({ name }) => name),
    column_sizes: encodings.map(({ bytes }) => bytes),
    compression: null,
    format: 'mds',
    hashes: [],
    size_limit: null,
    version: 2,
  };
}

/** The file `index.json`, in which StreamingDataset finds the shards. */
export function listOf(table: Table, shards: readonly ListedShard[]): string {
  const config = configOf(withMissing(table));
  const listed = shards.map(({ file, bytes, samples }) => ({
    ...config,
    raw_data: { basename: file, bytes, hashes: {} },
    samples,
    zip_data: null,
  }));
  return JSON.stringify({ shards: listed, version: 2 });
}

/** The sample being written. */
interface Begun {
  readonly key: string;
  readonly bytes: number;
  /** Offsets from the start of the sample, in the order in which the fields were given. */
  readonly places: readonly { readonly offset: number; readonly bytes: number }[];
  readonly payloads: readonly Uint8Array[];
  readonly cells: readonly Cell[];
}

/** Writes an MDS shard: the samples after room for the list of their offsets, which is written last. */
export class MdsWriter implements ShardWriter {
  readonly #fd: number;
  readonly #shard: string;
  readonly #table: Table;
  readonly #encodings: readonly Encoding[];
  readonly #lengths: number;
  readonly #row: TableRow;
  readonly #check: SampleCheck;
  readonly #samples: number;
  readonly #config: Buffer;
  readonly #start: number;
  readonly #output: WriteBuffer;
  readonly #places = new SamplePlaces();
  #values: SampleValues = { cls: -1, label: () => null };
  #begun: Begun | null = null;

  /** `fd` is open on a new, empty file that will have exactly `samples` samples. `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, table: Table, samples: number, maxSampleBytes?: number) {
    this.#fd = fd;
    this.#shard = shard;
    this.#table = withMissing(table);
    const { columns } = this.#table;
    this.#encodings = columns.map(encodingOf);
    this.#lengths = this.#encodings.filter(({ bytes }) => bytes === null).length;
    this.#row = new TableRow(this.#table);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
    this.#samples = samples;
    const mark = JSON.parse(encodeTable(this.#table));
    this.#config = Buffer.from(JSON.stringify({ ...configOf(this.#table), [TABLE_MARK]: mark }));
    this.#start = (samples + 2) * WORD + this.#config.length;
    this.#output = new WriteBuffer(fd, shard, this.#start);
  }

  describe(values: SampleValues): void {
    this.#values = values;
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const cells = this.#row.cells(key, fields, this.#values);
    const missing = () => this.#table.columns.filter((column, i) => isField(column) && cells[i] === null);
    const encoded = cells.map((cell, i) => {
      if (this.#table.columns[i] === MISSING) return json(missing().map(({ name }) => name));
      if (cell === null) return this.#encodings[i]!.name === 'json' ? json(null) : new Uint8Array(0);
      return 'field' in cell ? null : this.#encodings[i]!.encode!(cell.value);
    });
    const bytesIn = (i: number) => encoded[i]?.length ?? fields[(cells[i] as { field: number }).field]!.bytes;
    let bytes = this.#lengths * WORD;
    for (let i = 0; i < cells.length; i++) bytes += bytesIn(i);
    if (this.#output.position + bytes > MOST_SHARD_BYTES) throw this.#tooLarge();
    const room = this.#output.room(bytes, key);
    const places: { offset: number; bytes: number }[] = new Array(fields.length);
    let head = 0;
    let at = this.#lengths * WORD;
    for (const [i, cell] of cells.entries()) {
      const length = bytesIn(i);
      if (this.#encodings[i]!.bytes === null) head = room.writeUInt32LE(length, head);
      if (cell !== null && 'field' in cell) places[cell.field] = { offset: at, bytes: length };
      else room.set(encoded[i]!, at);
      at += length;
    }
    const payloads = places.map((place) => room.subarray(place.offset, place.offset + place.bytes));
    this.#begun = { key, bytes, places, payloads, cells };
    return payloads;
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (this.#begun === null) throw new Error('commit() without begin()');
    const { bytes, places } = this.#begun;
    this.#checkTexts(this.#begun);
    const { position } = this.#output;
    const summed: SummedBytes[] = [];
    for (const [i, place] of places.entries()) {
      this.#places.addPayload(position + place.offset);
      const sum = payloadCrc32[i];
      if (sum !== undefined) summed.push({ ...place, crc32: sum });
    }
    this.#places.addSample(position, bytes);
    this.#output.append(
      bytes,
      summed.sort((a, b) => a.offset - b.offset),
    );
    this.#begun = null;
  }

  discard(): void {
    this.#begun = null;
  }

  finish(): FinishedShard {
    const places = this.#places.toArrays();
    const { sampleOffset } = places;
    if (sampleOffset.length !== this.#samples)
      throw new Error(`${this.#shard} was announced with ${this.#samples} samples, but got ${sampleOffset.length}.`);
    this.#output.flush();
    const head = Buffer.alloc(this.#start);
    let at = head.writeUInt32LE(this.#samples, 0);
    for (const offset of sampleOffset) at = head.writeUInt32LE(offset, at);
    at = head.writeUInt32LE(this.#output.position, at);
    head.set(this.#config, at);
    try {
      writeAt(this.#fd, head, 0);
    } catch (cause) {
      throw unwritable(this.#shard, cause);
    }
    const { position, crc32: sum } = this.#output;
    return {
      bytes: position,
      crc32: crc32Combine(crc32(head), sum, position - head.length),
      ...places,
    };
  }

  /** Columns that MosaicML's reader decodes as text or JSON must be valid, or it fails there. */
  #checkTexts({ key, cells, payloads }: Begun): void {
    for (const [i, cell] of cells.entries()) {
      const { name } = this.#encodings[i]!;
      if (cell === null || !('field' in cell) || (name !== 'str' && name !== 'json')) continue;
      const payload = payloads[cell.field]!;
      const isGood = name === 'str' ? isUtf8(payload) : isJson(payload);
      if (!isGood) throw this.#notText(key, this.#table.columns[i]!.of, name === 'str' ? 'UTF-8' : 'JSON');
    }
  }

  #notText(key: string, field: string, what: string): UnsupportedEntryError {
    const shard = this.#shard;
    const message = sentence`${shard}: field "${field}" of sample "${key}" is not ${what}, which its column requires; give it another extension, or exclude the sample with ${option('where')}.`;
    return new UnsupportedEntryError({ shard, key }, message);
  }

  #tooLarge(): OptionError {
    const shard = this.#shard;
    const message = sentence`${shard}: it would exceed 4 GiB, the largest offset that MDS can store; pack smaller shards first (${optionName('maxShardBytes')}).`;
    return new OptionError({ shard }, message);
  }
}

function isJson(payload: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(payload));
    return true;
  } catch {
    return false;
  }
}
