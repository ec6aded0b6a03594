import { UnsupportedShardError } from '@shardtool/base';
import type { BytesColumn } from './columns.js';
import { type Chunk, damaged } from './footer.js';
import { type Dictionary, dictionaryOf, inPage, LENGTH_BYTES, type LoadedPage, valuesOf } from './pages/page-values.js';
import { findPages, isDamage, type Page } from './pages/pages.js';
import { decodeRuns } from './pages/runs.js';
import { bytesOf, type ColumnPlaces, PlaceList, type PlaceReader } from './places.js';

/** Maximum number of positions of one list column in a row group: rows times items of the longest list. */
const MOST_PLACES = 1 << 24;

/**
 * Finds the values of a list column in a row group: places of all first items, of all second items, and so on. A row
 * with fewer items, or with null as an item, has no value there. If any page is damaged, all rows of the column are lost.
 * `fieldOf` maps the number of an item and its first bytes to a field. Throws {@link UnsupportedShardError} for lists
 * that are too long.
 */
export async function findListPlaces(
  { source, window, cache }: PlaceReader,
  column: BytesColumn & { readonly itemLevel: number },
  fieldOf: (item: number, first: Uint8Array) => string,
  chunk: Chunk,
  rows: number,
): Promise<ColumnPlaces[]> {
  const { location: shard } = source;
  const { pages, trouble } = await findPages(window, shard, chunk);
  const lists = new ListPlaces(pages, rows, fieldOf, shard, column.name);
  try {
    if (trouble !== null) throw trouble;
    let dictionary: Dictionary | null = null;
    for (const [number, page] of pages.entries()) {
      const loaded = { page, number, bytes: await bytesOf(page, source, cache) };
      if (page.kind === 'dictionary') dictionary = dictionaryOf(loaded, shard);
      else inPage(page, shard, () => walkPage({ ...loaded, dictionary }, column, lists, shard));
    }
    if (lists.rows !== rows)
      throw damaged(shard, chunk.offset, `its column "${column.name}" has ${lists.rows} rows instead of ${rows}`);
    // Lists without items name no image that would be missing.
    return lists.hasItems ? lists.items : [];
  } catch (error) {
    if (!isDamage(error)) throw error;
    const lost = new PlaceList(pages, rows, (first) => fieldOf(0, first));
    lost.lose(rows, error);
    lost.nameLost();
    return [lost];
  }
}

/** The places of each item, which grow with the longest list. */
class ListPlaces {
  readonly items: PlaceList[] = [];
  /** Whether any list has an item, even if that is null. */
  hasItems = false;
  /** Number of rows that have begun. */
  rows = 0;
  #item = -1;
  readonly #most: number;
  readonly #list: (item: number) => PlaceList;
  readonly #refuse: () => never;

  constructor(
    pages: readonly Page[],
    most: number,
    fieldOf: (item: number, first: Uint8Array) => string,
    shard: string,
    name: string,
  ) {
    this.#most = most;
    this.#list = (item) => new PlaceList(pages, most, (first) => fieldOf(item, first));
    this.#refuse = () => {
      const message = `${shard}: the lists of its column "${name}" are too long for a row group of ${most} rows; write it again with smaller row groups.`;
      throw new UnsupportedShardError({ shard }, message);
    };
    this.items.push(this.#list(0));
  }

  beginRow(): void {
    if (this.rows === this.#most) throw new RangeError('it has more rows than its row group');
    this.rows++;
    this.#item = -1;
  }

  /** Adds the next item of the row, which has a value unless it is null. */
  add(value: ReturnType<ReturnType<typeof valuesOf>> | null): void {
    if (this.rows === 0) throw new RangeError('it begins within a row');
    this.hasItems = true;
    this.#item++;
    if ((this.#item + 1) * this.#most > MOST_PLACES) this.#refuse();
    if (this.items.length === this.#item) this.items.push(this.#list(this.#item));
    if (value !== null) this.items[this.#item]!.put(this.rows - 1, value.span, value.first);
  }
}

/** Apache Parquet format, README.md, "Nested Encoding": repetition levels, definition levels, values. */
function walkPage(
  loaded: LoadedPage,
  column: BytesColumn & { readonly itemLevel: number },
  lists: ListPlaces,
  shard: string,
): void {
  const { page, bytes } = loaded;
  const { maxLevel, itemLevel, name } = column;
  const [repetition, definition] = levelBytes(page, bytes);
  const begins = decodeRuns(bytes.subarray(...repetition), 1, page.values);
  const levels = decodeRuns(bytes.subarray(...definition), 32 - Math.clz32(maxLevel), page.values);
  const count = levels.reduce((sum, level) => (level === maxLevel ? sum + 1 : sum), 0);
  const next = valuesOf(loaded, definition[1], count, name, shard);
  for (let i = 0; i < page.values; i++) {
    if (begins[i] === 0) lists.beginRow();
    if (levels[i] === maxLevel) lists.add(next());
    else if (levels[i]! >= itemLevel) lists.add(null);
  }
}

/** The ranges of both kinds of levels in a page. Throws RangeError. */
function levelBytes(page: Page, bytes: Uint8Array): [[number, number], [number, number]] {
  const range = (at: number): [number, number] => {
    if (at + LENGTH_BYTES > bytes.length) throw new RangeError('it is cut');
    const from = at + LENGTH_BYTES;
    const end = from + new DataView(bytes.buffer, bytes.byteOffset + at, LENGTH_BYTES).getUint32(0, true);
    if (end > bytes.length) throw new RangeError('its levels are longer than the page');
    return [from, end];
  };
  const isSecond = page.kind === 'data v2';
  const repetition: [number, number] = isSecond ? [0, page.repetitionBytes] : range(0);
  const definition: [number, number] = isSecond ? [page.repetitionBytes, page.levelBytes] : range(repetition[1]);
  return [repetition, definition];
}
