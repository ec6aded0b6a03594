/**
 * Keeps the values that were asked for most recently, at most `limit`. A value that is still being made is shared, and
 * one whose making failed is forgotten, so that the next caller tries again.
 */
export class Recent<Key, Value> {
  readonly #made = new Map<Key, Promise<Value>>();
  readonly #make: (key: Key) => Promise<Value>;
  readonly #drop: (value: Value) => void;
  #limit: number;

  constructor(limit: number, make: (key: Key) => Promise<Value>, drop: (value: Value) => void = () => {}) {
    this.#limit = limit;
    this.#make = make;
    this.#drop = drop;
  }

  /** From now on at least `limit` values are kept. */
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
    made.catch(() => this.#made.delete(key));
    this.#evict(this.#limit);
    return made;
  }

  /** Drops everything. */
  clear(): void {
    this.#evict(0);
  }

  #evict(limit: number): void {
    for (const [key, value] of this.#made) {
      if (this.#made.size <= limit) return;
      this.#made.delete(key);
      value.then(this.#drop, () => {});
    }
  }
}
