/** Keeps the `limit` values that were used most recently. `drop` receives each value that makes room for another one. */
export class LruCache<Key, Value> {
  readonly #values = new Map<Key, Value>();
  readonly #limit: number;
  readonly #drop: (value: Value) => void;

  constructor(limit: number, drop: (value: Value) => void = () => {}) {
    this.#limit = limit;
    this.#drop = drop;
  }

  get(key: Key): Value | undefined {
    const value = this.#values.get(key);
    if (value !== undefined) {
      this.#values.delete(key);
      this.#values.set(key, value);
    }
    return value;
  }

  has(key: Key): boolean {
    return this.#values.has(key);
  }

  /** Drops the least recently used value first if the cache is full. */
  set(key: Key, value: Value): void {
    this.#values.delete(key);
    while (this.#values.size >= this.#limit) {
      const [oldest] = this.#values;
      this.#values.delete(oldest![0]);
      this.#drop(oldest![1]);
    }
    this.#values.set(key, value);
  }

  /** Removes a value without dropping it. */
  delete(key: Key): void {
    this.#values.delete(key);
  }

  /** Drops every value. */
  clear(): void {
    for (const value of this.#values.values()) this.#drop(value);
    this.#values.clear();
  }
}
