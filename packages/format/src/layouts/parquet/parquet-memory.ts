import type { Footer } from './footer.js';
import type { GroupPlaces } from './group-places.js';
import { PageCache } from './pages.js';

/** Pages of all files of a dataset that stay in memory, and places of values. */
const PAGE_CACHE_BYTES = 128 << 20;
const KEPT_PLACES_BYTES = 256 << 20;
const KEPT_FOOTERS = 32;

/** What all Parquet files of a dataset share: what was read of them, as far as it is worth its memory. */
export class ParquetMemory {
  readonly pages = new PageCache(PAGE_CACHE_BYTES);
  /** What the footers used last say: objects take ten times the memory of the bytes. */
  readonly #footers = new Map<object, Footer>();
  /** By file and number of the row group. The ones used last come last. */
  readonly #places = new Map<string, { readonly bytes: number; readonly places: Promise<GroupPlaces> }>();
  #bytes = 0;

  footer(file: object, parse: () => Footer): Footer {
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
