import { Worker } from 'node:worker_threads';
import { ShardtoolError } from '@shardtool/format';

/** A decode worker ended, threw or could not start. `cause` has what it said. */
export class WorkerDiedError extends ShardtoolError {}

/**
 * Workers have so long to end by themselves. To terminate one while koffi binds functions aborts the whole process
 * (N-API cannot throw any more), so it is the last resort, and only for a worker that has started.
 */
const PATIENCE_MS = 5000;

/**
 * Of a worker's JavaScript heap, in MiB. Nothing in it outlives a sample, so collecting it costs next to nothing at any
 * size; by default it would grow to 48 MiB in every worker.
 */
const YOUNG_GENERATION_MB = 4;
/**
 * `node --input-type=module -e ...` is about the script of the main thread, and a worker that inherits it does not start.
 * All other flags are inherited: to name V8's (`--max-old-space-size`) here would be an error.
 */
const FLAGS = process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {};

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

  /** Starts `count` workers on the built file `entry`; resolves when each has said `ready`. */
  static async start<Message extends { readonly kind: string }>(options: {
    readonly entry: URL;
    readonly count: number;
    readonly workerData: (worker: number) => unknown;
    readonly onMessage: (message: Message) => void;
    readonly onFailure: () => void;
    /** Tells the workers to end once they have started. */
    readonly stop: () => void;
  }): Promise<WorkerPool<Message>> {
    const pool = new WorkerPool<Message>();
    const starting = Array.from({ length: options.count }, (_, i) => pool.#startWorker(i, options));
    try {
      await Promise.all(starting);
    } catch (error) {
      pool.#closing = true;
      options.stop();
      await Promise.allSettled(starting);
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
    const patience = setTimeout(() => this.#terminate(), PATIENCE_MS);
    this.ref();
    await Promise.all(this.#exits);
    clearTimeout(patience);
  }

  #terminate(): void {
    for (const worker of this.#workers) void worker.terminate();
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
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      ...FLAGS,
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
