import type { DamagedShardError } from '@shardtool/base';
import { total } from '@shardtool/base';
import { SIGNATURE_BYTES } from '../../image/kinds.js';
import type { Source } from '../../source.js';
import type { FileWindow } from '../bytes/file-window.js';
import type { BytesColumn } from './columns.js';
import { type Chunk, damaged, fill } from './footer.js';
import {
  type Dictionary,
  dictionaryOf,
  inPage,
  LENGTH_BYTES,
  type LoadedPage,
  presentIn,
  type Span,
  valuesBegin,
  valuesOf,
} from './pages/page-values.js';
import {
  findPages,
  isDamage,
  liesOpen,
  type Page,
  type PageCache,
  PLAIN_DICTIONARY,
  plainPage,
  RLE_DICTIONARY,
} from './pages/pages.js';

/** Where the values of one column of bytes are, row by row of a row group. */
export interface ColumnPlaces {
  readonly pages: readonly Page[];
  /** The page of each value; -1 for a row without a value. */
  readonly page: Int32Array;
  /** The offset in the decompressed page, and the length. */
  readonly at: Uint32Array;
  readonly bytes: Uint32Array;
  /** The index in `fields` of the value's field, by its first bytes. */
  readonly field: Uint8Array;
  readonly fields: readonly string[];
  /** Why the values of these rows are lost. A lost value is presented as a zero byte. */
  readonly lost: ReadonlyMap<number, DamagedShardError>;
}

/** The inputs for finding positions. */
export interface PlaceReader {
  readonly source: Source;
  readonly window: FileWindow;
  readonly cache: PageCache;
}

/**
 * Finds the values of a column in a row group. If they are stored plainly in a local file, only their lengths and first
 * bytes are read (`fieldOf` maps these bytes to a field); otherwise each page is read, and cached. A damaged page costs
 * only its own rows. If its header is damaged, the number of its rows is unknown, so all rows are lost. Throws {@link
 * DamagedShardError} and {@link UnsupportedShardError}.
 */
export async function findPlaces(
  { source, window, cache }: PlaceReader,
  column: BytesColumn,
  fieldOf: (first: Uint8Array) => string,
  chunk: Chunk,
  rows: number,
): Promise<ColumnPlaces> {
  const { location: shard } = source;
  if (chunk.values !== rows)
    throw damaged(shard, chunk.offset, `its column "${column.name}" does not have one value per row`);
  const { pages, trouble } = await findPages(window, shard, chunk);
  const places = new PlaceList(pages, rows, fieldOf);
  let dictionary: Dictionary | null = null;
  let withoutDictionary: DamagedShardError | null = null;
  if (trouble !== null) places.lose(rows, trouble);
  for (const [number, page] of trouble === null ? pages.entries() : []) {
    try {
      if (page.kind === 'dictionary') {
        const bytes = await bytesOf(page, source, cache);
        dictionary = dictionaryOf({ page, number, bytes }, shard);
        continue;
      }
      places.begin();
      if (liesOpen(page, source)) await walkFile(window, shard, page, column.maxLevel, places, number);
      else {
        const isOfDictionary = page.encoding === PLAIN_DICTIONARY || page.encoding === RLE_DICTIONARY;
        if (isOfDictionary && withoutDictionary !== null) throw withoutDictionary;
        const loaded = { page, number, bytes: await bytesOf(page, source, cache), dictionary };
        inPage(page, shard, () => walkPage(loaded, column, places, shard));
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (page.kind === 'dictionary') withoutDictionary = error;
      else places.lose(page.values, error);
    }
  }
  places.nameLost();
  return places;
}

/** The decompressed bytes of a page, from the cache if they are there. */
export async function bytesOf(page: Page, source: Source, cache: PageCache): Promise<Uint8Array> {
  const bytes = cache.get(page) ?? (await loadPage(source, page));
  cache.set(page, bytes);
  return bytes;
}

/** Reads a page and decompresses it. */
export async function loadPage(source: Source, page: Page): Promise<Uint8Array> {
  const stored = new Uint8Array(page.bytes);
  await fill(source, page.offset, stored);
  return plainPage(page, stored, source.location);
}

/** Places that are filled row by row. */
export class PlaceList implements ColumnPlaces {
  readonly pages: readonly Page[];
  readonly page: Int32Array;
  readonly at: Uint32Array;
  readonly bytes: Uint32Array;
  readonly field: Uint8Array;
  readonly fields: string[] = [];
  readonly lost = new Map<number, DamagedShardError>();
  readonly #fieldOf: (first: Uint8Array) => string;
  #row = 0;
  /** The first row of the current page. */
  #begin = 0;

  constructor(pages: readonly Page[], rows: number, fieldOf: (first: Uint8Array) => string) {
    this.pages = pages;
    this.page = new Int32Array(rows).fill(-1);
    this.at = new Uint32Array(rows);
    this.bytes = new Uint32Array(rows);
    this.field = new Uint8Array(rows);
    this.#fieldOf = fieldOf;
  }

  /** Starts the rows of a page. */
  begin(): void {
    this.#begin = this.#row;
  }

  /** Marks the rows of the current page as lost: `values` rows from the first one. */
  lose(values: number, why: DamagedShardError): void {
    this.#row = this.#begin;
    const end = Math.min(this.page.length, this.#begin + values);
    for (; this.#row < end; this.#row++) {
      this.page[this.#row] = 0;
      this.at[this.#row] = 0;
      this.bytes[this.#row] = 1;
      this.lost.set(this.#row, why);
    }
  }

  /** Gives lost values the field of most other values: images of one kind. */
  nameLost(): void {
    if (this.lost.size === 0) return;
    if (this.fields.length === 0) this.fields.push(this.#fieldOf(new Uint8Array(1)));
    for (const row of this.lost.keys()) this.field[row] = 0;
  }

  /** Adds a row without a value. */
  skip(): void {
    this.#row++;
  }

  /** Adds the next row's value; `first` are its first bytes. */
  add(span: Span, first: Uint8Array): void {
    this.put(this.#row++, span, first);
  }

  /** Sets the value of a row. */
  put(row: number, { page, at, bytes }: Span, first: Uint8Array): void {
    this.page[row] = page;
    this.at[row] = at;
    this.bytes[row] = bytes;
    const field = this.#fieldOf(first);
    const known = this.fields.indexOf(field);
    this.field[row] = known === -1 ? this.fields.push(field) - 1 : known;
  }
}

/** Walks a page whose values are stored plainly in the file: levels, then lengths and values in turn. */
async function walkFile(
  window: FileWindow,
  shard: string,
  page: Page,
  maxLevel: number,
  places: PlaceList,
  number: number,
): Promise<void> {
  const wrong = (what: string): never => {
    throw damaged(shard, page.offset, `the page at byte ${page.offset} is invalid (${what})`);
  };
  let at = page.levelBytes;
  let present: Uint8Array | null = null;
  if (maxLevel > 0) {
    const head = page.kind === 'data' ? LENGTH_BYTES : 0;
    if (head > page.bytes) wrong('it is cut');
    if (head > 0) at = head + (await window.at(page.offset, head)).readUInt32LE(0);
    if (at > page.bytes) wrong('its levels are longer than the page');
    const levels = at === head ? Buffer.alloc(0) : await window.at(page.offset, at);
    try {
      present = presentIn(levels.subarray(head, at), maxLevel, page.values);
    } catch (cause) {
      wrong((cause as Error).message);
    }
  }
  for (let row = 0; row < page.values; row++) {
    if (present?.[row] === 0) {
      places.skip();
      continue;
    }
    if (at + LENGTH_BYTES > page.bytes) wrong('it ends before its values do');
    const found = window.at(page.offset + at, LENGTH_BYTES);
    const bytes = (found instanceof Promise ? await found : found).readUInt32LE(0);
    at += LENGTH_BYTES;
    if (bytes > page.bytes - at) wrong('a value is longer than the page');
    const peek = Math.min(bytes, SIGNATURE_BYTES);
    const first = peek === 0 ? new Uint8Array(0) : await window.at(page.offset + at, peek);
    places.add({ page: number, at, bytes }, first.subarray(0, peek));
    at += bytes;
  }
}

function walkPage(loaded: LoadedPage, column: BytesColumn, places: PlaceList, shard: string): void {
  const { page, bytes } = loaded;
  const begin = valuesBegin(page, bytes, column.maxLevel);
  const levels = bytes.subarray(page.kind === 'data' ? LENGTH_BYTES : 0, begin);
  const present = column.maxLevel === 0 ? null : presentIn(levels, column.maxLevel, page.values);
  const count = present === null ? page.values : total(present);
  const next = valuesOf(loaded, begin, count, column.name, shard);
  for (let row = 0; row < page.values; row++) {
    if (present?.[row] === 0) {
      places.skip();
      continue;
    }
    const { span, first } = next();
    places.add(span, first);
  }
}
