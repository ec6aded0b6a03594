import { crc32, type DamagedShardError, totalOf, UnsupportedShardError } from '@shardtool/base';
import type { ColumnValue } from '../../sample/label-column.js';
import type { Source } from '../../source.js';
import { partAt } from '../bytes/part-at.js';
import { keyOf } from '../columns/column-names.js';
import type { FieldPosition, SamplePosition } from '../layout.js';
import { type Columns, columnsOf } from './columns.js';
import { chunkOf, codecsOf, damaged, type Footer, parseFooter, readFooterBytes } from './footer.js';
import { bytesOfPlaces, findGroupPlaces, type GroupPlaces } from './group-places.js';
import { type Labels, readLabels } from './labels.js';
import { loadCodecs } from './pages/codecs.js';
import { addPiece, type Piece, readPieces } from './pages/page-pieces.js';
import type { Page } from './pages/pages.js';
import { ParquetMemory } from './parquet-memory.js';
import type { ColumnPlaces } from './places.js';

/** How many samples are yielded at once. */
const YIELDED = 256;

/** One row group: a run of samples that is found and read by itself. */
export interface RowGroup {
  readonly firstRow: number;
  readonly rows: number;
  /** Size of its columns of bytes in the file. */
  readonly bytes: number;
  /** Number of values of these columns, missing ones included. */
  readonly values: number;
}

/** A Parquet file: its footer, and readers for its row groups. The caller opens and closes the sources. */
export class ParquetFile {
  readonly location: string;
  readonly columns: Columns;
  readonly groups: readonly RowGroup[];
  readonly #size: number;
  readonly #codecs: ReadonlySet<string>;
  readonly #footer: Uint8Array;
  readonly #memory: ParquetMemory;

  private constructor(source: Source, footer: Uint8Array, memory: ParquetMemory) {
    this.location = source.location;
    this.#size = source.size;
    this.#footer = footer;
    this.#memory = memory;
    const parsed = this.#parse();
    this.columns = columnsOf(parsed, this.location);
    this.#codecs = codecsOf(parsed);
    let firstRow = 0;
    this.groups = parsed.row_groups.map(({ num_rows, columns }) => {
      const rows = Number(num_rows);
      const bytes = rows === 0 ? 0 : totalOf(this.columns.bytes, ({ leaf }) => chunkOf(columns[leaf]!).bytes);
      const values = rows === 0 ? 0 : totalOf(this.columns.bytes, ({ leaf }) => chunkOf(columns[leaf]!).values);
      const group = { firstRow, rows, bytes, values };
      firstRow += rows;
      return group;
    });
  }

  /** Reads only the footer. Throws DamagedShardError, UnsupportedShardError and FileError. */
  static async open(source: Source, memory = new ParquetMemory()): Promise<ParquetFile> {
    const file = new ParquetFile(source, await readFooterBytes(source), memory);
    await loadCodecs(file.#codecs);
    if (file.columns.bytes.length > 0) return file;
    const message = `${file.location}: none of its columns holds bytes, so it contains no images; its rows may name image files elsewhere.`;
    throw new UnsupportedShardError({ shard: file.location }, message);
  }

  get rows(): number {
    const last = this.groups.at(-1);
    return last === undefined ? 0 : last.firstRow + last.rows;
  }

  /** Length of a row group in the view. */
  async bytesOf(source: Source, group: number): Promise<number> {
    if (this.groups[group]!.rows === 0) return 0;
    return this.columns.ours?.groupBytes[group] ?? (await this.#placesOf(source, group)).starts.at(-1)!;
  }

  /** Fills `target` from `offset` on of the view of a row group; returns the number of bytes. */
  async read(source: Source, group: number, offset: number, target: Uint8Array): Promise<number> {
    const { starts, columns } = await this.#placesOf(source, group);
    const end = Math.min(offset + target.length, starts.at(-1)!);
    if (offset >= end) return 0;
    const wanted = new Map<Page, Piece[]>();
    for (let row = partAt(starts, offset); row < starts.length - 1 && starts[row]! < end; row++) {
      let at = starts[row]!;
      for (const { pages, page, at: inPage, bytes, lost } of columns) {
        if (page[row]! < 0) continue;
        const [from, to] = [Math.max(at, offset), Math.min(at + bytes[row]!, end)];
        if (from < to && lost.has(row)) target.fill(0, from - offset, to - offset);
        else if (from < to)
          addPiece(wanted, pages[page[row]!]!, { at: inPage[row]! + from - at, bytes: to - from, to: from - offset });
        at += bytes[row]!;
      }
    }
    await readPieces(source, wanted, target, this.#memory.pages);
    return end - offset;
  }

  /** The samples of a row group. `base` is added to their offsets. */
  async *positions(source: Source, group: number, base = 0): AsyncGenerator<readonly SamplePosition[]> {
    const { firstRow, rows } = this.groups[group]!;
    if (rows === 0) return;
    const { starts, columns } = await this.#placesOf(source, group);
    this.#checkImages(columns, group);
    const labels = await this.#labelsOf(source, group);
    const isDamaged =
      columns.some(({ lost }) => lost.size > 0) || labels.cls?.some((cls) => !this.#isClass(cls)) === true;
    for (let row = 0; row < rows; ) {
      const found: SamplePosition[] = [];
      for (const end = Math.min(rows, row + YIELDED); row < end; row++) {
        let at = starts[row]!;
        const fields: FieldPosition[] = [];
        const wrongClass = isDamaged ? this.#wrongClass(labels, firstRow, row) : undefined;
        for (const { page, bytes, field, fields: names, lost } of columns) {
          if (page[row]! < 0) continue;
          const name = names[field[row]!]! || this.#extensionOf(labels, row);
          // A sample with an invalid class must not be used, so its image gets no bytes.
          const place = { name, offset: base + at, bytes: wrongClass === undefined ? bytes[row]! : 0 };
          // Readers rely on checksums. A lost value gets a checksum that the zeros in its place do not match. In such a
          // row group, the other values also need checksums, so these are computed.
          if (isDamaged)
            fields.push({ ...place, ...(await this.#sumOf(source, group, at, place, lost.get(row) ?? wrongClass)) });
          else fields.push(place);
          at += bytes[row]!;
        }
        const span = { offset: base + starts[row]!, bytes: starts[row + 1]! - starts[row]! };
        found.push({ key: this.#keyOf(labels, firstRow, row), ...span, fields, ...this.#valuesOf(labels, row) });
      }
      yield found;
    }
  }

  /** Like {@link positions}, without offsets and fields, which needs no column of bytes. */
  async *labels(source: Source, group: number): AsyncGenerator<readonly SamplePosition[]> {
    const { firstRow, rows } = this.groups[group]!;
    if (rows === 0) return;
    const labels = await this.#labelsOf(source, group);
    const nowhere = { offset: 0, bytes: 0, fields: [] };
    yield Array.from({ length: rows }, (_, row) => ({
      key: this.#keyOf(labels, firstRow, row),
      ...nowhere,
      ...this.#valuesOf(labels, row),
    }));
  }

  #parse(): Footer {
    return this.#memory.footer(this, () => parseFooter(this.#footer, this.location, this.#size));
  }

  #labelsOf(source: Source, group: number): Promise<Labels> {
    return readLabels(source, this.#parse(), group, this.columns);
  }

  #keyOf({ keys }: Labels, firstRow: number, inGroup: number): string {
    const { location } = this;
    const row = firstRow + inGroup;
    const refuse = (why: string) => damaged(location, 0, `row ${row} has a key that ${why}`);
    if (keys !== undefined) return keyOf(String(keys[inGroup] ?? ''), refuse);
    const name = location.slice(Math.max(location.lastIndexOf('/'), location.lastIndexOf('\\')) + 1);
    return `${name.replace(/\.parquet$/, '')}/${String(row).padStart(6, '0')}`;
  }

  /** The checksum of a value in a row group that has lost some values. */
  async #sumOf(
    source: Source,
    group: number,
    offset: number,
    { bytes }: Pick<FieldPosition, 'bytes'>,
    lost: DamagedShardError | undefined,
  ): Promise<Pick<FieldPosition, 'crc32' | 'lost'>> {
    const value = new Uint8Array(bytes);
    if (lost !== undefined) return { crc32: ~crc32(value) >>> 0, lost };
    await this.read(source, group, offset, value);
    return { crc32: crc32(value) };
  }

  #valuesOf({ cls, columns }: Labels, row: number): Pick<SamplePosition, 'cls' | 'labels'> {
    const labels = new Map<string, ColumnValue>();
    for (const [name, values] of columns) labels.set(name, values[row] ?? null);
    const number = cls?.[row] ?? -1;
    return { cls: this.#isClass(number) ? number : -1, labels };
  }

  /**
   * Whether a number is a class number or means "no class". If the file does not name its classes, every number is
   * allowed.
   */
  #isClass(cls: number): boolean {
    const { classes } = this.columns;
    return classes.length === 0 || cls < classes.length;
  }

  /** The error of a sample whose class is not one of the file's. */
  #wrongClass({ cls }: Labels, firstRow: number, row: number): DamagedShardError | undefined {
    const number = cls?.[row] ?? -1;
    if (this.#isClass(number)) return undefined;
    const { length } = this.columns.classes;
    return damaged(
      this.location,
      0,
      `row ${firstRow + row} has the class ${number}, but the file names ${length} classes, 0 to ${length - 1}`,
    );
  }

  /** The name of an image field, if its column does not determine it. */
  #extensionOf({ endings }: Labels, row: number): string {
    const refuse = (why: string) => damaged(this.location, 0, `row ${row} has an image whose name ${why}`);
    const name = keyOf(String(endings?.[row] ?? ''), refuse);
    if (name.includes('/')) throw refuse('holds a slash');
    return name;
  }

  #placesOf(source: Source, group: number): Promise<GroupPlaces> {
    const { rows, values } = this.groups[group]!;
    const bytes = bytesOfPlaces(rows, values);
    const find = () => findGroupPlaces(source, this, this.#parse(), group, this.#memory.pages);
    return this.#memory.places(`${group} ${this.location}`, bytes, find);
  }

  /** An image that is not in the file but named by its path would otherwise be missing silently. */
  #checkImages(columns: readonly ColumnPlaces[], group: number): void {
    // Lists without items have no columns. The fields of a dataset are those of its first row group, which needs an image.
    const isKnown = columns.length > 0 || (group === 0 && this.columns.bytes.length > 0);
    const isEmpty =
      this.columns.ours === undefined && isKnown && columns.every(({ page }) => page.every((number) => number < 0));
    if (!isEmpty) return;
    const message = `${this.location}: no row of its row group ${group} contains an image; its rows may name image files elsewhere. Write it again with embedded images, as "push_to_hub" does.`;
    throw new UnsupportedShardError({ shard: this.location }, message);
  }
}
