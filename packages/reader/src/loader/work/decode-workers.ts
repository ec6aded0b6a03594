import { setTimeout as sleep } from 'node:timers/promises';
import { WorkerThread } from '@shardtool/base';

/** Size of the young generation in MiB. It is small because no object is kept longer than one sample. */
const YOUNG_GENERATION_MB = 4;

/**
 * If one worker fails to start, the others have this much time to start. Usually they need a fraction of it; see
 * `WorkerThread.whenEnded`.
 */
const START_PATIENCE_MS = 5000;

/**
 * Worker threads that live as long as the pool. They keep the process alive only while the consumer waits for a batch,
 * so that a program that stops reading can exit. A worker that ends on its own is a failure, which the consumer
 * receives as an error.
 */
export class DecodeWorkers<Message> {
  readonly #workers: WorkerThread<never>[] = [];
  #closing = false;
  #failure: Error | undefined;
  readonly #onFailure: () => void;
  /** Each resolves when its worker has started, or has ended. */
  readonly #starting: Promise<void>[] = [];

  /**
   * Starts `count` workers with the built file `entry`, without waiting for them: jobs may be published at once. A worker that cannot
   * start is a failure of the pool.
   */
  static start<Message extends { readonly kind: string }>(options: {
    readonly entry: URL;
    readonly count: number;
    readonly workerData: (worker: number) => unknown;
    readonly onMessage: (message: Message) => void;
    readonly onFailure: () => void;
  }): DecodeWorkers<Message> {
    const pool = new DecodeWorkers<Message>(options.onFailure);
    for (let i = 0; i < options.count; i++) pool.#starting.push(pool.#startWorker(i, options));
    pool.unref();
    return pool;
  }

  private constructor(onFailure: () => void) {
    this.#onFailure = onFailure;
  }

  /** Why the pool has failed. Undefined if it works. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  ref(): void {
    for (const worker of this.#workers) worker.ref();
  }

  unref(): void {
    for (const worker of this.#workers) worker.unref();
  }

  /**
   * Tells the workers to end with `stop`, which those that are still starting do when they have started. Terminates those that do not
   * end in time.
   */
  async close(stop: () => void): Promise<void> {
    this.#closing = true;
    stop();
    await settledInTime(this.#starting);
    await WorkerThread.whenEnded(this.#workers);
  }

  #startWorker(
    index: number,
    options: {
      readonly entry: URL;
      readonly workerData: (worker: number) => unknown;
      readonly onMessage: (message: Message) => void;
    },
  ): Promise<void> {
    return new Promise((resolve) => {
      const worker = new WorkerThread<Message & { readonly kind: string }>({
        script: options.entry,
        workerData: options.workerData(index),
        name: `Decode worker ${index}`,
        youngGenerationMb: YOUNG_GENERATION_MB,
        onMessage: (message) => {
          if (message.kind === 'ready') resolve();
          else options.onMessage(message);
        },
        onEnd: (reason) => {
          resolve();
          if (this.#closing || this.#failure !== undefined) return;
          this.#failure = reason;
          this.#onFailure();
        },
      });
      this.#workers.push(worker);
    });
  }
}

/** Waits until all have settled, at most {@link START_PATIENCE_MS}. */
async function settledInTime(promises: readonly Promise<unknown>[]): Promise<void> {
  const patience = new AbortController();
  const settled = Promise.all(promises);
  await Promise.race([
    settled,
    sleep(START_PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => undefined),
  ]);
  patience.abort();
}
