import { keptKey, type PieceFiles } from './piece-files.js';

/** What other processes did is looked for this often. */
const LOOK_MS = 10_000;

/** When the pieces of a cache are needed next, as far as this process knows: others may have used or evicted some since. */
export class KeptKeys {
  readonly #pieces: PieceFiles;
  readonly #known = new Map<string, number>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(pieces: PieceFiles) {
    this.#pieces = pieces;
  }

  /** The piece has come into the cache with this key. */
  add(name: string, key: number): void {
    this.#known.set(name, keptKey(key));
  }

  /** The piece was used, and will be again when its key says. */
  use(name: string, key: number): void {
    const kept = keptKey(key);
    if (this.#known.get(name) === kept) return;
    if (!this.#pieces.setKey(name, kept)) this.#known.delete(name);
    else if (this.#known.has(name)) this.#known.set(name, kept);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  /** The piece that is needed last of all; null if none is needed later than `key`. */
  lastAfter(key: number): string | null {
    this.#look();
    for (;;) {
      let last: string | null = null;
      let lastKey = key;
      for (const [name, known] of this.#known) {
        if (known > lastKey) {
          last = name;
          lastKey = known;
        }
      }
      if (last === null) return null;
      const found = this.#pieces.keyOf(last);
      if (found === lastKey) return last;
      if (found === null) this.#known.delete(last);
      else this.#known.set(last, found);
    }
  }

  #look(): void {
    if (performance.now() - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = performance.now();
    this.#known.clear();
    for (const name of this.#pieces.names()) {
      const key = this.#pieces.keyOf(name);
      if (key !== null) this.#known.set(name, key);
    }
  }
}
