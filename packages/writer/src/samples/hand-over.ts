/** What waits until it was taken and done with. */
interface Waiting<T> {
  readonly item: T;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Hands items over, one by one, from whoever gives them to whoever takes them: a giver waits until its item is done with, which is
 * when the next one is asked for.
 */
export class HandOver<T> implements AsyncIterator<T, undefined> {
  readonly #waiting: Waiting<T>[] = [];
  #taken: Waiting<T> | null = null;
  #wake: (() => void) | null = null;
  #isClosed = false;
  #failure: { readonly error: unknown } | null = null;

  /** Resolves when the item is done with; rejects with what {@link refuse} or {@link fail} was told. */
  give(item: T): Promise<void> {
    return new Promise((done, failed) => {
      if (this.#failure !== null) return failed(this.#failure.error);
      this.#waiting.push({ item, done, failed });
      this.#wake?.();
    });
  }

  /** No more items come. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    this.#taken?.done();
    this.#taken = null;
    while (this.#waiting.length === 0 && !this.#isClosed) {
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
      this.#wake = null;
    }
    this.#taken = this.#waiting.shift() ?? null;
    return this.#taken === null ? { done: true, value: undefined } : { done: false, value: this.#taken.item };
  }

  /** The item that was taken last is not wanted. */
  refuse(error: unknown): void {
    this.#taken?.failed(error);
    this.#taken = null;
  }

  /** Nothing more is taken. */
  fail(error: unknown): void {
    this.#failure = { error };
    this.refuse(error);
    for (const { failed } of this.#waiting.splice(0)) failed(error);
  }
}
