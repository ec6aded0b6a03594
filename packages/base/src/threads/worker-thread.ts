import { type MessagePort, Worker } from 'node:worker_threads';
import { ShardtoolError, WorkerDiedError } from '../errors.js';
import { type ErrorClasses, recordError, reviveError } from './error-record.js';
import { shareLoading, waitAtExit } from './native-loading.js';

/**
 * Time in which workers may end by themselves. Terminating a worker while koffi binds functions aborts the whole
 * process (N-API cannot throw any more), so it is the last resort, and only for a worker that has started.
 */
const PATIENCE_MS = 5000;

/**
 * Flags of the process that workers inherit. The flags of `node --input-type=module -e ...` are omitted, because they
 * concern the script of the main thread, and a worker with them does not start. V8's flags (`--max-old-space-size`)
 * must not be named here.
 */
const FLAGS = process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {};

export interface WorkerThreadOptions<Message> {
  /** Path of the built script. */
  readonly script: URL;
  readonly workerData: unknown;
  /** Ports in `workerData`, which belong to the thread from now on. */
  readonly ports?: MessagePort[];
  /** Name of the thread in messages: `Decode worker 3`. */
  readonly name: string;
  /**
   * Limit for young objects in its JavaScript heap, in MiB. If no object outlives a sample, collecting them costs
   * almost nothing at any size. By default they would grow to 48 MiB in every worker.
   */
  readonly youngGenerationMb: number;
  /** Classes of errors with which it may end, in addition to those of this package. */
  readonly errors?: ErrorClasses;
  onMessage(message: Message): void;
  /** Called once when the thread has ended, with the error that ended it, or with a {@link WorkerDiedError}. */
  onEnd(reason: Error): void;
}

/** A thread from its start to its end. */
export class WorkerThread<Message> {
  readonly #thread: Worker;
  readonly #exit: Promise<unknown>;
  #hasEnded = false;

  constructor(options: WorkerThreadOptions<Message>) {
    const { script, workerData, ports, name, youngGenerationMb, errors } = options;
    const end = (reason: Error): void => {
      if (!this.#hasEnded) options.onEnd(reason);
      this.#hasEnded = true;
    };
    shareLoading();
    this.#thread = new Worker(script, {
      workerData,
      ...(ports && { transferList: ports }),
      name,
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
      ...FLAGS,
    });
    this.#exit = new Promise((resolve) => this.#thread.once('exit', resolve));
    waitAtExit(this.#thread);
    this.#thread.on('message', (message: Message) => options.onMessage(message));
    // Node passes on the name and the fields of the error, but not its class.
    this.#thread.on('error', (thrown) => {
      const cause = reviveError(recordError(thrown), errors);
      end(
        cause instanceof ShardtoolError
          ? cause
          : new WorkerDiedError({}, `${name} failed: ${cause.message}`, { cause }),
      );
    });
    this.#thread.on('exit', (code) => {
      end(new WorkerDiedError({}, `${name} ended before its work was done (exit code ${code}).`));
    });
  }

  post(message: unknown): void {
    this.#thread.postMessage(message);
  }

  /** Sets whether the thread keeps the process alive. */
  ref(): void {
    this.#thread.ref();
  }

  unref(): void {
    this.#thread.unref();
  }

  /** Waits until the threads that were asked to end have ended, and terminates those that do not end in time. */
  static async whenEnded(threads: readonly WorkerThread<never>[]): Promise<void> {
    const patience = setTimeout(() => {
      for (const thread of threads) void thread.#thread.terminate();
    }, PATIENCE_MS);
    for (const thread of threads) thread.ref();
    await Promise.all(threads.map((thread) => thread.#exit));
    clearTimeout(patience);
  }
}
