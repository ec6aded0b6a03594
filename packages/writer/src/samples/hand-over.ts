/** An item, and the promise that settles when it has been processed. */
interface Waiting<T> {
  readonly item: T;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Passes items one by one from a producer to a consumer. A producer waits until its item is processed, which is when
 * the consumer requests the next one.
 */
export class HandOver<T> implements AsyncIterator<T, undefined> {
  readonly #waiting: Waiting<T>[] = [];
  #taken: Waiting<T> | null = null;
  #wake: (() => void) | null = null;
  #isClosed = false;
  #failure: { readonly error: unknown } | null = null;
  #stopped: { readonly error: unknown } | null = null;

  /** Resolves when the item is processed; rejects with the error passed to {@link refuse} or {@link fail}. */
  give(item: T): Promise<void> {
    return new Promise((done, failed) => {
      if (this.#failure !== null) return failed(this.#failure.error);
      this.#waiting.push({ item, done, failed });
      this.#wake?.();
    });
  }

  /** No more items will be given. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#taken?.done();
    this.#taken = null;
    while (this.#waiting.length === 0 && !this.#isClosed && this.#stopped === null) {
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
      this.#wake = null;
    }
    if (this.#stopped !== null) throw this.#stopped.error;
    this.#taken = this.#waiting.shift() ?? null;
    return this.#taken === null ? { done: true, value: undefined } : { done: false, value: this.#taken.item };
  }

  /** Rejects the item that was taken last. */
  refuse(error: unknown): void {
    this.#taken?.failed(error);
    this.#taken = null;
  }

  /** Rejects all remaining items. */
  fail(error: unknown): void {
    this.#failure = { error };
    this.refuse(error);
    for (const { failed } of this.#waiting.splice(0)) failed(error);
  }

  /** Like {@link fail}, and the consumer gets the error, too: at once if it waits for an item, otherwise with the next one. */
  stop(error: unknown): void {
    this.fail(error);
    this.#stopped = { error };
    this.#wake?.();
  }
}
