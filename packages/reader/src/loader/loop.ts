import { deferred } from '@shardtool/base';
import type { Batch } from './deliver/batch/batch.js';
import type { Iteration } from './deliver/iteration.js';

/**
 * One iteration of a loader, from the request of its first batch to its end. It can be stopped by an abort signal or by
 * closing the loader at any time: during setup, while workers start, and between batches.
 */
export class Loop {
  readonly #signal: AbortSignal | undefined;
  #stop: { readonly reason: unknown } | null = null;
  #iteration: Iteration | null = null;
  readonly #stopped = deferred<never>();
  readonly #onAbort = () => this.stop(this.#signal?.reason);

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal;
    // Often no caller waits at this moment: avoid an unhandled rejection.
    this.#stopped.promise.catch(() => {});
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener('abort', this.#onAbort);
  }

  /** Ends the loop with this reason. Callers that wait get the reason at once. */
  stop(reason: unknown): void {
    if (this.#stop !== null) return;
    this.#stop = { reason };
    this.#stopped.reject(reason);
    this.#iteration?.stop(reason);
  }

  /** Returns the result of `make`. Throws if the loop has been stopped, or is stopped during the call. */
  orStopped<Made>(make: () => Promise<Made>): Promise<Made> {
    if (this.#stop !== null) return this.#stopped.promise;
    return Promise.race([make(), this.#stopped.promise]);
  }

  /** The batches of the iteration that `begin` begins. */
  async *batches(begin: () => Iteration): AsyncGenerator<Batch, undefined> {
    if (this.#stop !== null) throw this.#stop.reason;
    const iteration = begin();
    this.#iteration = iteration;
    try {
      for (let batch = await iteration.next(); batch !== null; batch = await iteration.next()) yield batch;
    } finally {
      await iteration.end();
    }
  }

  /** From now on, the loop cannot be stopped any more. Resolves when all of its work has ended. */
  async end(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#onAbort);
    await this.#iteration?.end();
  }
}
