import { readAhead } from '@shardtool/storage';
import { UnsupportedShardError } from '../../errors.js';
import type { ColumnValue } from '../../shard-index/label-column.js';
import { planRuns } from '../../shard-index/read-runs.js';
import type { Source } from '../../source.js';
import { fieldOfColumn, keyOf } from '../column-names.js';
import { FileWindow } from '../file-window.js';
import type { FieldPosition, SamplePosition } from '../layout.js';
import { partAt } from '../part-at.js';
import { loadCodecs } from './codecs.js';
import { type Columns, columnsOf } from './columns.js';
import { type Chunk, chunkOf, damaged, type Footer, fill, parseFooter, readFooterBytes } from './footer.js';
import { type Labels, readLabels } from './labels.js';
import { liesOpen, type Page, PageCache, plainPage } from './pages.js';
import { type ColumnPlaces, findPlaces } from './places.js';

/** Pages of all files of a dataset that stay in memory, and places of values. */
const PAGE_CACHE_BYTES = 128 << 20;
const KEPT_PLACES_BYTES = 256 << 20;
const KEPT_FOOTERS = 32;
/** Reads that are under way at once for one read. */
const READS_AT_ONCE = 8;
const YIELDED = 256;
/** Of a file that is far, at once, while places are found. */
const FETCHED_BYTES = 2 << 20;

/** One row group: a run of samples that is found and read by itself. */
export interface RowGroup {
  readonly firstRow: number;
  readonly rows: number;
  /** Of its columns of bytes in the file. */
  readonly bytes: number;
}

/** What all files of a dataset share. */
export class ParquetMemory {
  readonly pages = new PageCache(PAGE_CACHE_BYTES);
  /** What the footers used last say: objects take ten times the memory of the bytes. */
  readonly #footers = new Map<ParquetFile, Footer>();
  /** By file and number of the row group. The ones used last come last. */
  readonly #places = new Map<string, { readonly bytes: number; readonly places: Promise<GroupPlaces> }>();
  #bytes = 0;

  footer(file: ParquetFile, parse: () => Footer): Footer {
    const footer = this.#footers.get(file) ?? parse();
    this.#footers.delete(file);
    this.#footers.set(file, footer);
    for (const oldest of this.#footers.keys()) {
      if (this.#footers.size <= KEPT_FOOTERS) break;
      this.#footers.delete(oldest);
    }
    return footer;
  }

  places(key: string, bytes: number, find: () => Promise<GroupPlaces>): Promise<GroupPlaces> {
    const known = this.#places.get(key);
    if (known !== undefined) {
      this.#places.delete(key);
      this.#places.set(key, known);
      return known.places;
    }
    const places = find();
    this.#places.set(key, { bytes, places });
    this.#bytes += bytes;
    places.catch(() => this.#drop(key));
    for (const oldest of this.#places.keys()) {
      if (this.#bytes <= KEPT_PLACES_BYTES || oldest === key) break;
      this.#drop(oldest);
    }
    return places;
  }

  #drop(key: string): void {
    this.#bytes -= this.#places.get(key)?.bytes ?? 0;
    this.#places.delete(key);
  }
}

/** Where everything of a row group lies, seen as if the values of each row lay one behind the other, and the rows, too. */
interface GroupPlaces {
  /** Where each row begins, and the last one ends. */
  readonly starts: Float64Array;
  readonly columns: readonly ColumnPlaces[];
}

/** Memory that one value's place takes, and one row's. */
const PLACE_BYTES = 13;
const ROW_BYTES = 8;

/** A Parquet file: its footer, and reading of what its row groups hold. Sources are given: whoever opens one closes it. */
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
    this.#codecs = new Set(
      parsed.row_groups.flatMap(({ columns }) => columns.map((chunk) => chunk.meta_data?.codec ?? '')),
    );
    let firstRow = 0;
    this.groups = parsed.row_groups.map(({ num_rows, columns }) => {
      const rows = Number(num_rows);
      const bytes = this.columns.bytes.reduce((sum, { leaf }) => sum + chunkOf(columns[leaf]!).bytes, 0);
      const group = { firstRow, rows, bytes };
      firstRow += rows;
      return group;
    });
  }

  /** Reads the footer, and nothing else. Throws DamagedShardError, UnsupportedShardError and FileError. */
  static async open(source: Source, memory = new ParquetMemory()): Promise<ParquetFile> {
    const file = new ParquetFile(source, await readFooterBytes(source), memory);
    await loadCodecs(file.#codecs);
    if (file.columns.bytes.length > 0) return file;
    const message = `${file.location}: no column of it holds bytes, so there are no images in it; its rows may name files that lie elsewhere.`;
    throw new UnsupportedShardError({ shard: file.location }, message);
  }

  get rows(): number {
    const last = this.groups.at(-1);
    return last === undefined ? 0 : last.firstRow + last.rows;
  }

  /** Length of a row group as it is seen here. */
  async bytesOf(source: Source, group: number): Promise<number> {
    return this.columns.ours?.groupBytes[group] ?? (await this.#placesOf(source, group)).starts.at(-1)!;
  }

  /** Fills `target` from `offset` on of a row group as it is seen here; returns how many bytes there were. */
  async read(source: Source, group: number, offset: number, target: Uint8Array): Promise<number> {
    const { starts, columns } = await this.#placesOf(source, group);
    const end = Math.min(offset + target.length, starts.at(-1)!);
    if (offset >= end) return 0;
    const wanted = new Map<Page, Piece[]>();
    for (let row = partAt(starts, offset); row < starts.length - 1 && starts[row]! < end; row++) {
      let at = starts[row]!;
      for (const { pages, page, at: inPage, bytes } of columns) {
        if (page[row]! < 0) continue;
        const [from, to] = [Math.max(at, offset), Math.min(at + bytes[row]!, end)];
        if (from < to)
          add(wanted, pages[page[row]!]!, { at: inPage[row]! + from - at, bytes: to - from, to: from - offset });
        at += bytes[row]!;
      }
    }
    await this.#readPieces(source, wanted, target);
    return end - offset;
  }

  /** The samples of a row group; `base` is added to their places. */
  async *positions(source: Source, group: number, base = 0): AsyncGenerator<readonly SamplePosition[]> {
    const { firstRow, rows } = this.groups[group]!;
    const { starts, columns } = await this.#placesOf(source, group);
    this.#checkImages(columns, group);
    const labels = await this.#labelsOf(source, group);
    for (let row = 0; row < rows; ) {
      const found: SamplePosition[] = [];
      for (const end = Math.min(rows, row + YIELDED); row < end; row++) {
        let at = base + starts[row]!;
        const fields: FieldPosition[] = [];
        for (const { page, bytes, field, fields: names } of columns) {
          if (page[row]! < 0) continue;
          const name = names[field[row]!]! || this.#endingOf(labels, row);
          fields.push({ name, offset: at, bytes: bytes[row]! });
          at += bytes[row]!;
        }
        const span = { offset: base + starts[row]!, bytes: starts[row + 1]! - starts[row]! };
        found.push({ key: this.#keyOf(labels, firstRow, row), ...span, fields, ...valuesOf(labels, row) });
      }
      yield found;
    }
  }

  /** The same without places and fields, for which no column of bytes is read. */
  async *labels(source: Source, group: number): AsyncGenerator<readonly SamplePosition[]> {
    const { firstRow, rows } = this.groups[group]!;
    const labels = await this.#labelsOf(source, group);
    const nowhere = { offset: 0, bytes: 0, fields: [] };
    yield Array.from({ length: rows }, (_, row) => ({
      key: this.#keyOf(labels, firstRow, row),
      ...nowhere,
      ...valuesOf(labels, row),
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

  /** The name of an image that its own column does not say. */
  #endingOf({ endings }: Labels, row: number): string {
    const refuse = (why: string) => damaged(this.location, 0, `row ${row} has an image whose name ${why}`);
    const name = keyOf(String(endings?.[row] ?? ''), refuse);
    if (name.includes('/')) throw refuse('holds a slash');
    return name;
  }

  #placesOf(source: Source, group: number): Promise<GroupPlaces> {
    const { rows } = this.groups[group]!;
    const bytes = rows * (ROW_BYTES + PLACE_BYTES * this.columns.bytes.length);
    return this.#memory.places(`${group} ${this.location}`, bytes, () => this.#findPlaces(source, group));
  }

  async #findPlaces(source: Source, group: number): Promise<GroupPlaces> {
    const { rows } = this.groups[group]!;
    const { columns: chunks } = this.#parse().row_groups[group]!;
    const columns: ColumnPlaces[] = [];
    for (const column of this.columns.bytes) {
      const chunk = chunkOf(chunks[column.leaf]!);
      const part = frontToBack(source, chunk);
      const reader = { source: part, window: new FileWindow(part), cache: this.#memory.pages };
      try {
        const own = this.columns.ours?.of.get(column.name)?.of;
        const nameOf = (first: Uint8Array) =>
          own ?? fieldOfColumn(column.name, first, column.name === this.columns.image);
        columns.push(await findPlaces(reader, column, nameOf, chunk, rows));
      } finally {
        if (part !== source) await part.close();
      }
    }
    this.#checkFields(columns);
    const starts = new Float64Array(rows + 1);
    for (let row = 0; row < rows; row++) {
      let bytes = 0;
      for (const column of columns) bytes += column.bytes[row]!;
      starts[row + 1] = starts[row]! + bytes;
    }
    const known = this.columns.ours?.groupBytes[group];
    if (known !== undefined && known !== starts[rows])
      throw damaged(
        this.location,
        0,
        `row group ${group} has ${starts[rows]} bytes of fields, and its footer says ${known}`,
      );
    return { starts, columns };
  }

  #checkFields(columns: readonly ColumnPlaces[]): void {
    const owner = new Map<string, string>();
    for (const [i, { fields }] of columns.entries()) {
      const { name } = this.columns.bytes[i]!;
      for (const field of fields) {
        const other = owner.get(field);
        if (other !== undefined && other !== name) {
          const message = `${this.location}: its columns "${other}" and "${name}" would both be the field "${field}"; rename one of them.`;
          throw new UnsupportedShardError({ shard: this.location }, message);
        }
        owner.set(field, name);
      }
    }
  }

  /** An image that is not in the file, but is named by its path, would be missing without a word. */
  #checkImages(columns: readonly ColumnPlaces[], group: number): void {
    const isEmpty =
      this.columns.ours === undefined &&
      columns.length > 0 &&
      columns.every(({ page }) => page.every((number) => number < 0));
    if (!isEmpty || this.groups[group]!.rows === 0) return;
    const message = `${this.location}: no row of its row group ${group} has an image in it: its rows may name files that lie elsewhere; write it anew with the images in it, as "push_to_hub" does.`;
    throw new UnsupportedShardError({ shard: this.location }, message);
  }

  async #readPieces(source: Source, wanted: ReadonlyMap<Page, readonly Piece[]>, target: Uint8Array): Promise<void> {
    const spans: PageSpan[] = [];
    for (const [page, pieces] of wanted) {
      const known = this.#memory.pages.get(page);
      if (known !== undefined) copy(known, 0, pieces, target);
      else if (!liesOpen(page, source)) spans.push({ page, pieces, offset: page.offset, bytes: page.bytes });
      else {
        const [from, to] = [pieces[0]!.at, pieces.at(-1)!.at + pieces.at(-1)!.bytes];
        spans.push({ page, pieces, offset: page.offset + from, bytes: to - from });
      }
    }
    const runs = planRuns(spans);
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < runs.length) {
        const run = runs[next++]!;
        const [only] = run.spans;
        if (run.spans.length === 1 && only!.pieces.length === 1 && liesOpen(only!.page, source)) {
          const { to, bytes } = only!.pieces[0]!;
          await fill(source, run.offset, target.subarray(to, to + bytes));
          continue;
        }
        const stored = new Uint8Array(run.bytes);
        await fill(source, run.offset, stored);
        for (const span of run.spans) {
          const bytes = stored.subarray(span.offset - run.offset, span.offset - run.offset + span.bytes);
          if (liesOpen(span.page, source)) copy(bytes, span.offset - span.page.offset, span.pieces, target);
          else {
            // Pages of a run share its memory, and are kept one by one.
            const own = run.spans.length === 1 ? bytes : bytes.slice();
            const plain = plainPage(span.page, own, this.location);
            this.#memory.pages.put(span.page, plain);
            copy(plain, 0, span.pieces, target);
          }
        }
      }
    };
    const lanes = await Promise.allSettled(Array.from({ length: Math.min(runs.length, READS_AT_ONCE) }, lane));
    for (const result of lanes) if (result.status === 'rejected') throw result.reason;
  }
}

/** A chunk of a file that is far, fetched once from front to back and not beyond its end; a file of this machine as it is. */
function frontToBack(source: Source, { offset, bytes }: Chunk): Source {
  if (source.readNow !== undefined) return source;
  const { location } = source;
  const chunk = readAhead(
    { location, size: bytes, readAt: (at, target) => source.readAt(offset + at, target), close: async () => {} },
    { chunkBytes: FETCHED_BYTES, ahead: 2, kept: 4 },
  );
  return { ...chunk, size: offset + bytes, readAt: (at, target) => chunk.readAt(at - offset, target) };
}

/** Bytes of a page that are wanted, and where they go. */
interface Piece {
  readonly at: number;
  readonly bytes: number;
  readonly to: number;
}

/** What of a page is read, and what of that is wanted. */
interface PageSpan {
  readonly page: Page;
  readonly pieces: readonly Piece[];
  readonly offset: number;
  readonly bytes: number;
}

/** `from`: where in the page `bytes` begin. */
function copy(bytes: Uint8Array, from: number, pieces: readonly Piece[], target: Uint8Array): void {
  for (const piece of pieces) target.set(bytes.subarray(piece.at - from, piece.at - from + piece.bytes), piece.to);
}

function add(wanted: Map<Page, Piece[]>, page: Page, piece: Piece): void {
  const pieces = wanted.get(page);
  if (pieces === undefined) wanted.set(page, [piece]);
  else pieces.push(piece);
}

function valuesOf({ cls, columns }: Labels, row: number): Pick<SamplePosition, 'cls' | 'labels'> {
  const labels = new Map<string, ColumnValue>();
  for (const [name, values] of columns) labels.set(name, values[row] ?? null);
  return { cls: cls?.[row] ?? -1, labels };
}
