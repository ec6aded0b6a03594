import { OptionError, optionName, type Sentence, sentence, WakeSignal } from '@shardtool/base';
import type { CheckedAnnotations } from '../../annotations/options.js';
import type { DecoderOptions } from '../../decode/decoder.js';
import type { KernelMemory } from '../../kernels/kernel-memory.js';
import type { Mixes } from '../../transform/mixes/mix-option.js';
import type { ViewLayout } from '../../views/slot-layout.js';
import { Arena, arenaView } from '../read/arena.js';
import { BatchFacts } from '../ring/batch-facts.js';
import { ColumnTexts } from '../ring/column-texts.js';
import { Control } from '../ring/control.js';
import { type ExtraField, type Part, PartTable } from '../ring/extra-fields.js';
import type { FreeSlots } from '../ring/free-slots.js';
import { ShardPaths } from '../ring/shard-paths.js';
import { layOverFile } from '../ring/slot-file.js';
import { type MemoryPlan, movedPlan, slotAddress } from '../ring/slots.js';
import type { ResolvedSteps } from '../setup/custom-steps.js';
import type { RaggedRows } from '../setup/decoder-output.js';
import type { DecodeWorkerData, WorkerMessage } from './decode-worker.js';
import type { Workers } from './start-workers.js';

export interface EngineOptions {
  readonly plan: MemoryPlan;
  /** Rows of a full batch. */
  readonly rows: number;
  /** Bytes of shared memory for encoded samples: for blocks, and for single samples. */
  readonly arenaBytes: number;
  readonly heldBytes: number;
  readonly decoder: Omit<DecoderOptions, 'memory' | 'scratch'> | null;
  readonly list: boolean;
  /** False: rows have only extra fields. */
  readonly hasImages: boolean;
  readonly views: ViewLayout | null;
  /** Null if each sample has one image. */
  readonly ragged: RaggedRows | null;
  /** The extra fields of each image. */
  readonly extraFields: readonly ExtraField[];
  /** How annotations are stored. Their rows are after those of all extra fields in a slot. */
  readonly annotations: CheckedAnnotations | null;
  /** Custom steps, with absolute paths. */
  readonly steps: ResolvedSteps;
  readonly mixes: Mixes;
  /** The files of the shards, if workers may read images directly. Otherwise empty. */
  readonly shardPaths: readonly string[];
  /** Whether they read only the crops of images that are not checked, because all are uncompressed. */
  readonly readsCrops: boolean;
  /** The file that provides the memory of the slots, if there is one. */
  readonly slotFile: number | undefined;
  readonly freeSlots: FreeSlots;
}

/** The rows of a batch in a slot. `bucket`: number of the batch's size. */
interface SlotRows {
  readonly slot: number;
  readonly rows: number;
  readonly bucket: number;
}

/** The memory of the rows of a batch: that of the images, and of each part of a row after the image, in their order. */
export interface SlotContents {
  readonly images: Uint8Array;
  readonly parts: readonly Uint8Array[];
}

/** Resources that outlive an iteration: the shared memory, the batch slots and the decode workers. */
export class Engine {
  readonly control: Control;
  /** Arena of blocks, and arena of single samples. */
  readonly arena: Arena;
  readonly held: Arena;
  readonly memory: KernelMemory;
  readonly plan: MemoryPlan;
  readonly wakeSignal: WakeSignal;
  readonly parts: PartTable;
  readonly texts: ColumnTexts;
  readonly facts: BatchFacts;
  /** The slots without a batch. A batch that is held longer than its iteration keeps its slot. */
  readonly freeSlots: FreeSlots;
  readonly #segments: readonly SharedArrayBuffer[];
  readonly #pool: Workers;
  #onMessage: (message: WorkerMessage) => void = () => {};

  /** `pool` belongs to the engine from now on. `giveUp` aborts a start in progress, with the signal's reason. */
  static async start(options: EngineOptions, pool: Workers, giveUp: AbortSignal): Promise<Engine> {
    const plan = movedPlan(options.plan, options.freeSlots.place(options.plan));
    const wakeSignal = new WakeSignal();
    const control = Control.create({ slots: plan.slots, jobs: plan.slots * options.rows });
    const partCount = options.ragged?.max ?? options.extraFields.length;
    const parts = new PartTable({ slots: plan.slots, rows: options.rows, parts: partCount });
    const hasTexts = options.extraFields.some(({ kind }) => kind === 'columns');
    const texts = new ColumnTexts({ slots: hasTexts ? plan.slots : 0, rows: options.rows });
    const facts = new BatchFacts({
      slots: plan.slots,
      rows: options.rows,
      showsParts: options.decoder?.showsParts ?? false,
      isRagged: options.ragged !== null,
    });
    const arena = reserve(sentence`${optionName('readBufferBytes')}`, () => new Arena(options.arenaBytes));
    const held = reserve(
      sentence`${optionName('holdBytes')}`,
      () => new Arena(options.heldBytes, arena.segments.length),
    );
    const memory = reserve(
      sentence`${optionName('batchSize')}, ${optionName('prefetchBatches')} or workers`,
      () => new WebAssembly.Memory({ initial: plan.pages, maximum: plan.pages, shared: true }),
    );
    if (options.slotFile !== undefined) await layOverFile(memory, options.slotFile, slotAddress(plan, plan.slots));
    options.freeSlots.begin(plan, () => wakeSignal.notify());
    giveUp.throwIfAborted();
    const shardPaths = ShardPaths.of(options.shardPaths);
    let engine: Engine | undefined;
    pool.begin(plan.workers, {
      workerData: (worker): DecodeWorkerData => ({
        worker,
        control: control.buffers,
        arena: [...arena.segments, ...held.segments],
        memory,
        plan,
        decoder: options.decoder,
        list: options.list,
        hasImages: options.hasImages,
        views: options.views,
        ragged: options.ragged,
        rows: options.rows,
        extraFields: options.extraFields,
        annotations: options.annotations,
        parts: parts.buffer,
        texts: texts.buffers,
        facts: facts.buffers,
        steps: options.steps,
        mixes: options.mixes,
        shardPaths: shardPaths.buffers,
        readsCrops: options.readsCrops,
      }),
      onMessage: (message) => {
        if (engine !== undefined) engine.#onMessage(message);
      },
      onFailure: () => {
        control.slots.wake();
        wakeSignal.notify();
      },
    });
    const { freeSlots } = options;
    engine = new Engine({ control, arena, held, memory, plan, wakeSignal, parts, texts, facts, freeSlots }, pool);
    return engine;
  }

  private constructor(
    parts: Pick<
      Engine,
      'control' | 'arena' | 'held' | 'memory' | 'plan' | 'wakeSignal' | 'parts' | 'texts' | 'facts' | 'freeSlots'
    >,
    pool: Workers,
  ) {
    this.control = parts.control;
    this.arena = parts.arena;
    this.held = parts.held;
    this.#segments = [...parts.arena.segments, ...parts.held.segments];
    this.memory = parts.memory;
    this.plan = parts.plan;
    this.wakeSignal = parts.wakeSignal;
    this.parts = parts.parts;
    this.texts = parts.texts;
    this.facts = parts.facts;
    this.freeSlots = parts.freeSlots;
    this.#pool = pool;
  }

  /** Sets the function that receives the messages of the workers. */
  listen(onMessage: (message: WorkerMessage) => void): void {
    this.#onMessage = onMessage;
  }

  get failure(): Error | undefined {
    return this.#pool.failure;
  }

  /** Sets whether the workers keep the process alive: only while a batch is awaited. */
  ref(): void {
    this.#pool.ref();
  }

  unref(): void {
    this.#pool.unref();
  }

  /** A view of the encoded bytes of a field. Offsets run over both arenas. */
  encoded({ offset, bytes }: Pick<Part, 'offset' | 'bytes'>): Uint8Array {
    return arenaView(this.#segments, offset, bytes);
  }

  /** All slots. */
  get slotMemory(): Uint8Array {
    return new Uint8Array(this.memory.buffer, 0, slotAddress(this.plan, this.plan.slots));
  }

  /** The memory of the rows of a batch. */
  contents({ slot, rows, bucket }: SlotRows): SlotContents {
    const { buffer } = this.memory;
    const address = slotAddress(this.plan, slot);
    const { image, extraFields } = this.plan.rowBytes[bucket]!;
    return {
      images: new Uint8Array(buffer, address, rows * image),
      parts: extraFields.map(
        (rowBytes, i) => new Uint8Array(buffer, address + this.plan.extraFields[i]!, rows * rowBytes),
      ),
    };
  }

  close(): Promise<void> {
    return this.#pool.close(() => this.control.stop());
  }
}

function reserve<Memory>(options: string | Sentence, make: () => Memory): Memory {
  try {
    return make();
  } catch (cause) {
    throw new OptionError(
      {},
      sentence`This process cannot reserve its memory (${(cause as Error).message}): lower ${options}.`,
      {
        cause,
      },
    );
  }
}
