import { maskedCrc32c } from '@shardtool/base';
import type { FieldSize } from '../../sample/sample-check.js';
import { SampleCheck, tableRules } from '../../sample/sample-check.js';
import type { SummedBytes } from '../../sample/sample-codec.js';
import { WriteBuffer } from '../bytes/write-buffer.js';
import {
  type Cell,
  encodeTable,
  type SampleValues,
  TABLE_MARK,
  type Table,
  type TableColumn,
  TableRow,
} from '../columns/table.js';
import type { FinishedShard, ShardWriter } from '../layout.js';
import { SamplePlaces } from '../sample-places.js';
import { ExampleLayout, type FeatureContent, type NewFeature } from './encode-example.js';

/** Length and its crc32c before a record, the crc32c of the record after it (tensorflow, core/lib/io/record_writer.h). */
const HEAD_BYTES = 12;
const FOOT_BYTES = 4;

/** protobuf.dev, "Proto Limits": a message has less than 2 GiB. */
const RULES = tableRules(0x7fff0000);

/** The sample being written: its record with framing, and the positions of the payloads in it, in the order in which they were given. */
interface Begun {
  readonly room: Buffer;
  readonly places: readonly { readonly offset: number; readonly bytes: number }[];
}

/**
 * Writes TFRecord: one tf.train.Example per sample. A value that a sample lacks has no feature. The first record
 * describes the features.
 */
export class TfrecordWriter implements ShardWriter {
  readonly #columns: readonly TableColumn[];
  readonly #names: readonly Uint8Array[];
  readonly #mark: NewFeature;
  readonly #row: TableRow;
  readonly #check: SampleCheck;
  readonly #output: WriteBuffer;
  readonly #places = new SamplePlaces();
  #values: SampleValues = { cls: -1, label: () => null };
  #begun: Begun | null = null;

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, table: Table, maxSampleBytes?: number) {
    this.#columns = table.columns;
    this.#names = table.columns.map(({ name }) => Buffer.from(name));
    this.#mark = { name: Buffer.from(TABLE_MARK), content: { kind: 'bytes', value: encodeTable(table) } };
    this.#row = new TableRow(table);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
    this.#output = new WriteBuffer(fd, shard);
  }

  describe(values: SampleValues): void {
    this.#values = values;
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const cells = this.#row.cells(key, fields, this.#values);
    const features: NewFeature[] = this.#output.position === 0 ? [this.#mark] : [];
    const order: number[] = [];
    for (const [i, cell] of cells.entries()) {
      if (cell === null) continue;
      if ('field' in cell) order.push(cell.field);
      features.push({ name: this.#names[i]!, content: contentOf(cell, this.#columns[i]!, fields) });
    }
    const example = new ExampleLayout(features);
    const bytes = HEAD_BYTES + example.bytes + FOOT_BYTES;
    const room = this.#output.room(bytes, key);
    room.writeBigUInt64LE(BigInt(example.bytes), 0);
    room.writeUInt32LE(maskedCrc32c(room.subarray(0, 8)), 8);
    const places: { offset: number; bytes: number }[] = new Array(fields.length);
    for (const [i, place] of example.layOut(room, HEAD_BYTES).entries()) places[order[i]!] = place;
    this.#begun = { room, places };
    return places.map((place) => room.subarray(place.offset, place.offset + place.bytes));
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (this.#begun === null) throw new Error('commit() without begin()');
    const { room, places } = this.#begun;
    const end = room.length - FOOT_BYTES;
    room.writeUInt32LE(maskedCrc32c(room.subarray(HEAD_BYTES, end)), end);
    const { position } = this.#output;
    this.#places.addSample(position, room.length);
    const summed: SummedBytes[] = [];
    for (const [i, place] of places.entries()) {
      this.#places.addPayload(position + place.offset);
      const sum = payloadCrc32[i];
      if (sum !== undefined) summed.push({ ...place, crc32: sum });
    }
    this.#output.append(
      room.length,
      summed.sort((a, b) => a.offset - b.offset),
    );
    this.#begun = null;
  }

  discard(): void {
    this.#begun = null;
  }

  finish(): FinishedShard {
    this.#output.flush();
    const { position: bytes, crc32 } = this.#output;
    return { bytes, crc32, ...this.#places.toArrays() };
  }
}

/** TFRecord has neither doubles nor booleans: they become floats, and 0 or 1. */
function contentOf(cell: Exclude<Cell, null>, { holds }: TableColumn, fields: readonly FieldSize[]): FeatureContent {
  if ('field' in cell) return { kind: 'payload', bytes: fields[cell.field]!.bytes };
  const { value } = cell;
  if (holds === 'double') return { kind: 'float', value };
  if (holds === 'bool') return { kind: 'integer', value: value ? 1 : 0 };
  return { kind: holds === 'class' || holds === 'int' ? 'integer' : 'bytes', value };
}
