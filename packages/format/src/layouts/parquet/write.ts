import { isUtf8 } from 'node:buffer';
import { crc32, option, sentence, totalOf, UnsupportedEntryError } from '@shardtool/base';
import { MAGIC } from '../../parquet/footer.js';
import type { FieldSize } from '../../sample/sample-check.js';
import { SampleCheck, tableRules } from '../../sample/sample-check.js';
import { WriteBuffer } from '../bytes/write-buffer.js';
import { type Cell, type SampleValues, type Table, TableRow } from '../columns/table.js';
import type { FinishedShard, ShardWriter } from '../layout.js';
import { SamplePlaces } from '../sample-places.js';
import { encodeFileFooter, type Leaf, leavesOf, type WrittenGroup } from './file-schema.js';
import { PagesAhead, SparePages } from './pages/pages-ahead.js';

/** A row group is in memory until it is written, and other software reads all of it to get one image. */
const GROUP_BYTES = 16 << 20;
const GROUP_ROWS = 10_000;

/** Lengths are signed words. */
const RULES = tableRules(0x7fffffff);

/** The sample being written. */
interface Begun {
  readonly key: string;
  readonly cells: readonly Cell[];
  readonly fields: readonly FieldSize[];
  readonly payloads: readonly Uint8Array[];
}

/**
 * Writes Parquet with one row per sample, in row groups of some MiB, plain and uncompressed. Positions refer to the
 * view of `expand`: the payloads of a row in the order of the columns, and the rows in sequence.
 */
export class ParquetWriter implements ShardWriter {
  readonly #shard: string;
  readonly #table: Table;
  readonly #row: TableRow;
  readonly #check: SampleCheck;
  readonly #output: WriteBuffer;
  readonly #leaves: readonly Leaf[];
  readonly #pages: readonly PagesAhead[];
  readonly #groups: WrittenGroup[] = [];
  readonly #places = new SamplePlaces();
  #values: SampleValues = { cls: -1, label: () => null };
  #begun: Begun | null = null;
  /** Length of the view of all rows so far, and of the current row group. */
  #seen = 0;
  #groupBytes = 0;
  #groupRows = 0;

  /** `fd` is open on a new, empty file; `shard` is its final name, for messages. */
  constructor(fd: number, shard: string, table: Table, maxSampleBytes?: number) {
    this.#shard = shard;
    this.#table = table;
    this.#row = new TableRow(table);
    this.#check = new SampleCheck(shard, RULES, maxSampleBytes);
    this.#output = new WriteBuffer(fd, shard);
    this.#leaves = leavesOf(table);
    const spare = new SparePages();
    this.#pages = this.#leaves.map((leaf) => new PagesAhead(leaf, spare));
    this.#output.room(MAGIC.length).set(MAGIC);
    this.#output.append(MAGIC.length);
  }

  describe(values: SampleValues): void {
    this.#values = values;
  }

  begin(key: string, fields: readonly FieldSize[]): readonly Uint8Array[] {
    this.#check.check(key, fields);
    const bytes = totalOf(fields, (field) => field.bytes);
    if (this.#groupRows === GROUP_ROWS || (this.#groupRows > 0 && this.#groupBytes + bytes > GROUP_BYTES))
      this.#writeGroup();
    const cells = this.#row.cells(key, fields, this.#values);
    const payloads: Uint8Array[] = new Array(fields.length);
    for (const [i, { column, path }] of this.#leaves.entries()) {
      const cell = cells[column]!;
      if (isPayload(cell, path)) payloads[cell.field] = this.#pages[i]!.room(fields[cell.field]!.bytes);
    }
    this.#begun = { key, cells, fields, payloads };
    return payloads;
  }

  commit(payloadCrc32: readonly number[] = []): void {
    if (this.#begun === null) throw new Error('commit() without begin()');
    const { key, cells, fields, payloads } = this.#begun;
    const offsets: number[] = new Array(fields.length);
    let at = this.#seen;
    for (const { column, type, path } of this.#leaves) {
      const cell = cells[column]!;
      if (!isPayload(cell, path)) continue;
      if (type === 'text' && !isUtf8(payloads[cell.field]!)) throw this.#notText(key, this.#table.columns[column]!.of);
      offsets[cell.field] = at;
      at += fields[cell.field]!.bytes;
    }
    for (const [i, { column, path, maxLevel }] of this.#leaves.entries()) {
      const cell = cells[column]!;
      const pages = this.#pages[i]!;
      if (isPayload(cell, path))
        pages.keep(fields[cell.field]!.bytes, payloadCrc32[cell.field] ?? crc32(payloads[cell.field]!));
      // An image has everything but the path.
      else if (cell === null || 'field' in cell) pages.skip(cell === null ? 0 : maxLevel - 1);
      else pages.add(cell.value);
    }
    this.#places.addSample(this.#seen, at - this.#seen);
    for (const offset of offsets) this.#places.addPayload(offset);
    this.#groupBytes += at - this.#seen;
    this.#groupRows++;
    this.#seen = at;
    this.#begun = null;
  }

  discard(): void {
    this.#begun = null;
  }

  finish(): FinishedShard {
    if (this.#groupRows > 0) this.#writeGroup();
    const footer = encodeFileFooter(this.#table, this.#leaves, this.#groups);
    this.#output.room(footer.length).set(footer);
    this.#output.append(footer.length);
    this.#output.flush();
    const { position: bytes, crc32 } = this.#output;
    return { bytes, crc32, ...this.#places.toArrays() };
  }

  #writeGroup(): void {
    const chunks = this.#pages.map((pages) => pages.write(this.#output));
    this.#groups.push({ rows: this.#groupRows, chunks, payloadBytes: this.#groupBytes });
    this.#groupRows = 0;
    this.#groupBytes = 0;
  }

  #notText(key: string, field: string): UnsupportedEntryError {
    const shard = this.#shard;
    const message = sentence`${shard}: field "${field}" of sample "${key}" is not UTF-8, which its column requires; give it another extension, or exclude the sample with ${option('where')}.`;
    return new UnsupportedEntryError({ shard, key }, message);
  }
}

/** Whether a leaf contains the payload of a field: for an image its bytes, not its path. */
function isPayload(cell: Cell, path: readonly string[]): cell is { readonly field: number } {
  return cell !== null && 'field' in cell && path[1] !== 'path';
}
