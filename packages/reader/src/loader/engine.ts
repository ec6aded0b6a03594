import type { DecoderOptions } from '../decoder.js';
import { Arena } from './arena.js';
import { Control } from './control.js';
import type { DecodeWorkerData, WorkerMessage } from './decode-worker.js';
import { type MemoryPlan, slotAddress } from './slots.js';
import { WorkerPool } from './pool.js';

export interface EngineOptions {
  readonly plan: MemoryPlan;
  /** Rows of a full batch. */
  readonly rows: number;
  /** Bytes of shared memory for encoded samples. */
  readonly arenaBytes: number;
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  readonly list: boolean;
}

/** What lives longer than an epoch: the shared memory and the decode workers. */
export class Engine {
  readonly control: Control;
  readonly arena: Arena;
  readonly memory: WebAssembly.Memory;
  readonly plan: MemoryPlan;
  readonly #pool: WorkerPool<WorkerMessage>;
  #onMessage: (message: WorkerMessage) => void = () => {};

  static async start(options: EngineOptions): Promise<Engine> {
    const { plan } = options;
    const control = new Control({ slots: plan.slots, jobs: plan.slots * options.rows });
    const arena = new Arena(options.arenaBytes);
    const memory = new WebAssembly.Memory({ initial: plan.pages, maximum: plan.pages, shared: true });
    let engine: Engine | undefined;
    const pool = await WorkerPool.start<WorkerMessage>({
      entry: new URL('./decode-worker.js', import.meta.url),
      count: plan.workers,
      workerData: (worker): DecodeWorkerData => ({
        worker,
        control: control.buffers,
        arena: arena.segments,
        memory,
        plan,
        decoder: options.decoder,
        list: options.list,
      }),
      onMessage: (message) => {
        if (engine !== undefined) engine.#onMessage(message);
      },
      onFailure: () => control.wake(),
    });
    engine = new Engine(control, arena, memory, plan, pool);
    return engine;
  }

  private constructor(
    control: Control,
    arena: Arena,
    memory: WebAssembly.Memory,
    plan: MemoryPlan,
    pool: WorkerPool<WorkerMessage>,
  ) {
    this.control = control;
    this.arena = arena;
    this.memory = memory;
    this.plan = plan;
    this.#pool = pool;
  }

  /** Who hears the workers' messages from now on. */
  listen(onMessage: (message: WorkerMessage) => void): void {
    this.#onMessage = onMessage;
  }

  get failure(): Error | undefined {
    return this.#pool.failure;
  }

  /** While a batch is awaited the workers keep the process alive, and only then. */
  ref(): void {
    this.#pool.ref();
  }

  unref(): void {
    this.#pool.unref();
  }

  /** The bytes of a slot that `rows` rows take. */
  slotBytes(slot: number, rows: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, slotAddress(this.plan, slot), rows * this.plan.rowBytes);
  }

  close(): Promise<void> {
    return this.#pool.close(() => this.control.stop());
  }
}
