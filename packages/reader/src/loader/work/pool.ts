import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { awaitExits, ShardtoolError, workerOptions } from '@shardtool/format';

/** A decode worker ended, threw or could not start. `cause` has what it said. */
export class WorkerDiedError extends ShardtoolError {}

/** MiB: nothing outlives a sample. */
const YOUNG_GENERATION_MB = 4;

/** Where one worker cannot start, the others have so long to do it: it takes a fraction of that, and see `awaitExits`. */
const START_PATIENCE_MS = 5000;

/**
 * Worker threads that live as long as the pool. They are ref'd only while the consumer waits for a batch, so that a
 * program that stops asking can end; a worker that ends by itself is a failure that the consumer hears of.
 */
export class WorkerPool<Message> {
  readonly #workers: Worker[] = [];
  readonly #exits: Promise<unknown>[] = [];
  #closing = false;
  #failure: WorkerDiedError | undefined;
  #onFailure: () => void = () => {};

  /**
   * Starts `count` workers on the built file `entry`; resolves when each has said `ready`. Throws
   * {@link WorkerDiedError} where one cannot start, at the latest when the patience with the others is at its end.
   */
  static async start<Message extends { readonly kind: string }>(options: {
    readonly entry: URL;
    readonly count: number;
    readonly workerData: (worker: number) => unknown;
    readonly onMessage: (message: Message) => void;
    readonly onFailure: () => void;
    /** Tells the workers to end once they have started. */
    readonly stop: () => void;
    /** Ends a start that is under way, with the signal's reason. */
    readonly giveUp: AbortSignal;
  }): Promise<WorkerPool<Message>> {
    const pool = new WorkerPool<Message>();
    const starting = Array.from({ length: options.count }, (_, i) => pool.#startWorker(i, options));
    try {
      await Promise.race([Promise.all(starting), aborted(options.giveUp)]);
    } catch (error) {
      pool.#closing = true;
      options.stop();
      await settledInTime(starting);
      await pool.close(options.stop);
      throw error;
    }
    pool.#onFailure = options.onFailure;
    if (pool.#failure !== undefined) options.onFailure();
    pool.unref();
    return pool;
  }

  /** Why the pool can go on no more, if so. */
  get failure(): WorkerDiedError | undefined {
    return this.#failure;
  }

  ref(): void {
    for (const worker of this.#workers) worker.ref();
  }

  unref(): void {
    for (const worker of this.#workers) worker.unref();
  }

  /** Asks the workers to end by `stop`, and ends those that have not in time. */
  async close(stop: () => void): Promise<void> {
    this.#closing = true;
    stop();
    await awaitExits(this.#workers, this.#exits);
  }

  #startWorker(
    index: number,
    options: {
      readonly entry: URL;
      readonly workerData: (worker: number) => unknown;
      readonly onMessage: (message: Message) => void;
    },
  ): Promise<void> {
    const worker = new Worker(options.entry, {
      workerData: options.workerData(index),
      name: `shardtool-${index}`,
      ...workerOptions(YOUNG_GENERATION_MB),
    });
    this.#workers.push(worker);
    this.#exits.push(new Promise((resolve) => worker.once('exit', resolve)));
    return new Promise((resolve, reject) => {
      const died = (error: WorkerDiedError) => {
        reject(error);
        if (this.#closing || this.#failure !== undefined) return;
        this.#failure = error;
        this.#onFailure();
      };
      worker.on('message', (message: Message & { readonly kind: string }) => {
        if (message.kind === 'ready') resolve();
        else options.onMessage(message);
      });
      worker.on('error', (cause: Error) => {
        died(new WorkerDiedError({}, `Decode worker ${index} failed: ${cause.message}`, { cause }));
      });
      worker.on('exit', (code) => {
        died(
          new WorkerDiedError({}, `Decode worker ${index} ended with exit code ${code} while batches were to come.`),
        );
      });
    });
  }
}

/** Waits until all have settled, or {@link START_PATIENCE_MS}. */
async function settledInTime(promises: readonly Promise<unknown>[]): Promise<void> {
  const patience = new AbortController();
  const settled = Promise.allSettled(promises);
  await Promise.race([
    settled,
    sleep(START_PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => undefined),
  ]);
  patience.abort();
}

/** Rejects with the signal's reason. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
