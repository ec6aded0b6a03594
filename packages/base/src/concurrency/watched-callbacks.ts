import { setImmediate } from 'node:timers/promises';

/**
 * Calls functions that were passed in by the caller. If one of them throws, or returns a promise that rejects, the work
 * ends: {@link WatchedCallbacks.watch} rejects with the first such error.
 */
export class WatchedCallbacks {
  #first: { readonly error: unknown } | undefined;
  #isAsync = false;
  readonly #onError: () => void;

  /** `onError` is called once, at the first error. It should stop work that did not call the callback itself. */
  constructor(onError: () => void = () => undefined) {
    this.#onError = onError;
  }

  /**
   * Wraps a callback. If a watched callback has failed before, the wrapper throws that error. Otherwise it calls the
   * callback and throws its error, if any.
   */
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

  /**
   * Returns the result of `work`, or rejects with the first error of a callback. If the signal aborts, its reason
   * counts as such an error.
   */
  async watch<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const onAbort = () => this.#fail(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const result = await work();
      // A promise that a callback returned may be about to reject. A promise that stays pending is not waited for.
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
