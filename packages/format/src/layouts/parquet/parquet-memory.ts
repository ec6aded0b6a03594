import { LruCache } from '@shardtool/base';
import type { Footer } from './footer.js';
import type { GroupPlaces } from './group-places.js';
import type { PageCache } from './pages/pages.js';

/** Memory for cached pages of all files of a dataset, and for positions of values. */
const PAGE_CACHE_BYTES = 128 << 20;
const KEPT_PLACES_BYTES = 256 << 20;
const KEPT_FOOTERS = 32;

/** The memory that all Parquet files of a dataset share for caches. */
export class ParquetMemory {
  readonly pages: PageCache = new LruCache(PAGE_CACHE_BYTES, undefined, ({ length }) => length);
  /** Recently used footers, decoded: the objects take ten times the memory of the bytes. */
  readonly #footers = new LruCache<object, Footer>(KEPT_FOOTERS);
  /** Places of values, by file and number of the row group. */
  readonly #places = new LruCache<string, { readonly bytes: number; readonly places: Promise<GroupPlaces> }>(
    KEPT_PLACES_BYTES,
    undefined,
    ({ bytes }) => bytes,
  );

  footer(file: object, parse: () => Footer): Footer {
    const known = this.#footers.get(file);
    if (known !== undefined) return known;
    const footer = parse();
    this.#footers.set(file, footer);
    return footer;
  }

  places(key: string, bytes: number, find: () => Promise<GroupPlaces>): Promise<GroupPlaces> {
    const known = this.#places.get(key);
    if (known !== undefined) return known.places;
    const places = find();
    this.#places.set(key, { bytes, places });
    places.catch(() => this.#places.delete(key));
    return places;
  }
}
