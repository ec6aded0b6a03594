/**
 * Keeps the most recently requested values, at most `limit`. Callers share a value that is still being made. If making
 * a value fails, it is forgotten, so that the next caller tries again.
 */
export class Recent<Key, Value> {
  readonly #made = new Map<Key, Promise<Value>>();
  readonly #make: (key: Key) => Promise<Value>;
  readonly #drop: (value: Value) => unknown;
  #limit: number;

  constructor(limit: number, make: (key: Key) => Promise<Value>, drop: (value: Value) => unknown = () => {}) {
    this.#limit = limit;
    this.#make = make;
    this.#drop = drop;
  }

  /** Raises the limit to at least `limit`. */
  reserve(limit: number): void {
    this.#limit = Math.max(this.#limit, limit);
  }

  get(key: Key): Promise<Value> {
    const known = this.#made.get(key);
    if (known !== undefined) {
      this.#made.delete(key);
      this.#made.set(key, known);
      return known;
    }
    const made = this.#make(key);
    this.#made.set(key, made);
    made.catch(() => {
      if (this.#made.get(key) === made) this.#made.delete(key);
    });
    void this.#evict(this.#limit);
    return made;
  }

  /** Drops everything; resolves when that is done. */
  clear(): Promise<void> {
    return this.#evict(0);
  }

  /** An error in making a value is reported to its callers; an error in dropping it is ignored. */
  async #evict(limit: number): Promise<void> {
    const dropped: Promise<unknown>[] = [];
    for (const [key, value] of this.#made) {
      if (this.#made.size <= limit) break;
      this.#made.delete(key);
      dropped.push(value.then(this.#drop));
    }
    await Promise.allSettled(dropped);
  }
}
