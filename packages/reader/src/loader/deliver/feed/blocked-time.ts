/** Sums up how long something was blocked, by cause, so that any two moments can be compared. Milliseconds. */
export class BlockedTime {
  #storage = 0;
  #order = 0;
  #cause: 'storage' | 'order' | null = null;
  #since = 0;

  begin(cause: 'storage' | 'order'): void {
    this.#cause = cause;
    this.#since = performance.now();
  }

  end(): void {
    const { storage, order } = this.now();
    this.#storage = storage;
    this.#order = order;
    this.#cause = null;
  }

  /** Total so far, including the current period. */
  now(): { readonly storage: number; readonly order: number } {
    const underWay = this.#cause === null ? 0 : performance.now() - this.#since;
    return {
      storage: this.#storage + (this.#cause === 'storage' ? underWay : 0),
      order: this.#order + (this.#cause === 'order' ? underWay : 0),
    };
  }
}
