/**
 * Keeps the most recently used values: at most `limit` of them, or values with a total size of `limit` if `sizeOf` is
 * given, and always at least the last one. `drop` receives each value that is evicted.
 */
export class LruCache<Key, Value> {
  readonly #values = new Map<Key, Value>();
  readonly #limit: number;
  readonly #drop: (value: Value) => void;
  readonly #sizeOf: (value: Value) => number;
  #size = 0;

  constructor(limit: number, drop: (value: Value) => void = () => {}, sizeOf: (value: Value) => number = () => 1) {
    this.#limit = limit;
    this.#drop = drop;
    this.#sizeOf = sizeOf;
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

  /** Drops the least recently used values first if the cache is full. */
  set(key: Key, value: Value): void {
    this.delete(key);
    this.#size += this.#sizeOf(value);
    for (const [oldest, dropped] of this.#values) {
      if (this.#size <= this.#limit) break;
      this.delete(oldest);
      this.#drop(dropped);
    }
    this.#values.set(key, value);
  }

  /** Removes a value without a call of `drop`. */
  delete(key: Key): void {
    const value = this.#values.get(key);
    if (value !== undefined) this.#size -= this.#sizeOf(value);
    this.#values.delete(key);
  }

  /** Drops every value. */
  clear(): void {
    for (const value of this.#values.values()) this.#drop(value);
    this.#values.clear();
    this.#size = 0;
  }
}
