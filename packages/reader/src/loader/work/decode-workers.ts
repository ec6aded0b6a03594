import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { WorkerDiedError, WorkerThread } from '@shardtool/base';
import type { WaitingWorkerData } from './first-message.js';

/** Size of the young generation in MiB. It is small because no object is kept longer than one sample. */
const YOUNG_GENERATION_MB = 4;

/**
 * If one worker fails to start, the others have this much time to start. Usually they need a fraction of it; see
 * `WorkerThread.whenEnded`.
 */
const START_PATIENCE_MS = 5000;

/** What the workers of a pool do. */
interface WorkOfPool<Message> {
  readonly workerData: (worker: number) => unknown;
  readonly onMessage: (message: Message) => void;
  readonly onFailure: () => void;
}

/**
 * Worker threads that live as long as the pool. They keep the process alive only while the consumer waits for a batch,
 * so that a program that stops reading can exit. A worker that ends on its own is a failure, which the consumer
 * receives as an error.
 */
export class DecodeWorkers<Message> {
  readonly #entry: URL;
  readonly #workers: WorkerThread<never>[] = [];
  /** By worker: where it gets its first message. */
  readonly #ports: MessagePort[] = [];
  /** See {@link WaitingWorkerData}. */
  readonly #gate = new Int32Array(new SharedArrayBuffer(4));
  #closing = false;
  #failure: Error | undefined;
  #work: WorkOfPool<Message> | null = null;
  /** Number of workers that have work. */
  #count = Number.POSITIVE_INFINITY;
  /** Each resolves when its worker has started, or has ended. */
  readonly #starting: Promise<void>[] = [];

  /**
   * Starts `count` threads of the built file `entry`, without waiting for them. They wait for {@link begin}: a thread
   * takes longer to start than most loaders to find out what it has to do. A worker that cannot start is a failure of
   * the pool.
   */
  constructor(entry: URL, count: number) {
    this.#entry = entry;
    this.#grow(count);
  }

  /**
   * Gives `count` workers their data. Threads that are missing are started, and those beyond `count` end. Jobs may be
   * published at once.
   */
  begin(count: number, work: WorkOfPool<Message>): void {
    this.#work = work;
    this.#count = count;
    this.#grow(count);
    this.#give((worker) => (worker < count ? work.workerData(worker) : null));
    if (this.#failure !== undefined) work.onFailure();
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
  async close(stop: () => void = () => {}): Promise<void> {
    this.#closing = true;
    if (this.#work === null) this.#give(() => null);
    stop();
    await settledInTime(this.#starting);
    await WorkerThread.whenEnded(this.#workers);
  }

  #grow(count: number): void {
    while (this.#starting.length < count) this.#starting.push(this.#startWorker(this.#starting.length));
    this.unref();
  }

  #give(first: (worker: number) => unknown): void {
    for (const [i, port] of this.#ports.entries()) port.postMessage(first(i));
    Atomics.store(this.#gate, 0, 1);
    Atomics.notify(this.#gate, 0);
  }

  #startWorker(index: number): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    this.#ports.push(port1);
    return new Promise((resolve) => {
      const onEnd = (reason: Error): void => {
        resolve();
        if (this.#closing || this.#failure !== undefined || index >= this.#count) return;
        this.#failure = reason;
        this.#work?.onFailure();
      };
      const name = `Decode worker ${index}`;
      try {
        const worker = new WorkerThread<Message & { readonly kind: string }>({
          script: this.#entry,
          workerData: { worker: index, gate: this.#gate, port: port2 } satisfies WaitingWorkerData,
          ports: [port2],
          name,
          youngGenerationMb: YOUNG_GENERATION_MB,
          onMessage: (message) => {
            if (message.kind === 'ready') resolve();
            else this.#work!.onMessage(message);
          },
          onEnd,
        });
        this.#workers.push(worker);
      } catch (cause) {
        // The system has no thread or no memory left.
        port1.close();
        onEnd(new WorkerDiedError({}, `${name} cannot start: ${(cause as Error).message}`, { cause }));
      }
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
