import { setImmediate } from 'node:timers/promises';

/**
 * Calls functions that the caller of some work has passed in. An error that one of them throws, or that the promise which it
 * returns rejects with, ends the work: {@link WatchedCallbacks.watch} rejects with the first such error.
 */
export class WatchedCallbacks {
  #first: { readonly error: unknown } | undefined;
  #isAsync = false;
  readonly #onError: () => void;

  /** `onError` is called once, at the first error: it stops what the callback itself was not called from. */
  constructor(onError: () => void = () => undefined) {
    this.#onError = onError;
  }

  /** The callback as the work calls it: throws what it throws, and what any of these callbacks has failed with before. */
  wrap<Args extends readonly unknown[]>(
    callback: ((...args: Args) => unknown) | undefined,
  ): ((...args: Args) => void) | undefined {
    if (typeof callback !== 'function') return callback;
    return (...args) => {
      this.#throwFirst();
      try {
        const returned = callback(...args);
        if (!isThenable(returned)) return;
        this.#isAsync = true;
        returned.then(undefined, (error: unknown) => this.#fail(error));
      } catch (error) {
        this.#fail(error);
        throw error;
      }
    };
  }

  /** The result of `work`, or the first error of a callback. A signal that aborts counts as one whose error is its reason. */
  async watch<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const onAbort = () => this.#fail(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const result = await work();
      // The last promise that was returned may be about to reject. One that stays open is not waited for.
      if (this.#isAsync) await setImmediate();
      this.#throwFirst();
      return result;
    } catch (error) {
      this.#throwFirst();
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  #fail(error: unknown): void {
    if (this.#first !== undefined) return;
    this.#first = { error };
    this.#onError();
  }

  #throwFirst(): void {
    if (this.#first !== undefined) throw this.#first.error;
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
