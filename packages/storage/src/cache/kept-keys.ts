import { keptKey, type PieceFiles } from './piece-files.js';

/** Interval at which this process looks at the changes of other processes. */
const LOOK_MS = 10_000;

/** The keys of the pieces of a cache, as far as this process knows: other processes may have used or evicted pieces since. */
export class KeptKeys {
  readonly #pieces: PieceFiles;
  readonly #known = new Map<string, number>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(pieces: PieceFiles) {
    this.#pieces = pieces;
  }

  /** Records that the piece was stored with this key. */
  add(name: string, key: number): void {
    this.#known.set(name, keptKey(key));
  }

  /** Records that the piece was used. `key` says when it is needed next. */
  use(name: string, key: number): void {
    const kept = keptKey(key);
    if (this.#known.get(name) === kept) return;
    if (!this.#pieces.setKey(name, kept)) this.#known.delete(name);
    else if (this.#known.has(name)) this.#known.set(name, kept);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  /** Returns the piece with the largest key; null if no key is larger than `key`. */
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
