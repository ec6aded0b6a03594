import type { WakeSignal } from '@shardtool/base';
import { deferred, optionName, sentence } from '@shardtool/base';
import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import { type Arena, placeBytes, ReadBufferError, SEGMENT_BYTES } from '../arena.js';
import { type Block, type BlockReader, blockItems, blockRows } from '../block.js';
import { fetchSampleAgain } from '../fetch-again.js';
import { type LoadedSample, type LoadedShards, load, loadSamples, planLoad } from '../load-shards.js';
import type { Opening } from './opening.js';

interface PlannedLoad {
  readonly block: PlannedBlock;
  readonly parts: Promise<LoadedShards>;
}

/** Facts that a reader knows about the batches that use its blocks. */
export interface Demand {
  /**
   * True if the consumer waits for the batch that needs the block. No memory will be freed until that batch is
   * delivered.
   */
  isUrgent(): boolean;
  /**
   * Resolves when no worker uses the arena. Resolves to false if the consumer uses it, or if there are no more batches.
   */
  settle(): Promise<boolean>;
  /** True if no more blocks are needed. */
  readonly isOver: boolean;
}

export interface StreamingOptions {
  readonly blocks: Iterator<PlannedBlock>;
  readonly samplesOf: SamplesOf;
  readonly store: ShardStore;
  readonly arena: Arena;
  /** Notified on every change by this reader, by readers that share the arena, and by the batches. */
  readonly wakeSignal: WakeSignal;
  /** Number of blocks in memory, unless a batch waits for one more. */
  readonly buffers: number;
  /** Number of blocks that are read concurrently. Without it, the number grows as long as that increases the rate. */
  readonly readConcurrency: number | undefined;
  readonly opening: Opening;
  readonly demand: Demand;
  /** The minimum memory with which the epoch can be read, in bytes. */
  leastBytes(): Promise<number>;
}

/**
 * Reads whole blocks into an arena, ahead of the batches, in the order in which they are first needed. Blocks get
 * memory strictly in that order, so that a later block never takes the memory of an earlier one. If memory is short,
 * reading waits until batches are delivered. If it would wait forever, blocks are compacted. If that is not enough, the
 * limit is too small for the order, and {@link ReadBufferError} is thrown.
 */
export class StreamingReader implements BlockReader {
  readonly #options: StreamingOptions;
  readonly #blocks = new Map<number, Block>();
  /** Items that are in memory, of blocks that are not complete yet. */
  readonly #partial = new Map<number, ReadonlySet<number>>();
  /** Functions that read the rest of the first blocks. */
  readonly #rest: (() => Promise<void>)[] = [];
  /** Blocks that were released before they were complete. */
  readonly #released = new Set<number>();
  #reading = 0;
  #live = 0;
  /** The ordinal that a batch waits for, or -1. */
  #wanted = -1;
  /** The first error, and the block that it concerns. Blocks before it are delivered, later blocks are not. */
  #failure: { readonly ordinal: number; readonly error: unknown } | null = null;
  #closed = false;
  readonly #planned: PlannedLoad[] = [];
  /** Number of the first blocks whose required items were requested, and of those whose items are in memory. */
  #opening = 0;
  #opened = 0;
  readonly #run: Promise<void>;

  constructor(options: StreamingOptions) {
    this.#options = options;
    this.#run = this.#readAhead();
  }

  get(ordinal: number, item: number): Block | Promise<Block> {
    return this.#blockWith(ordinal, item) ?? this.#waitFor(ordinal, item);
  }

  #blockWith(ordinal: number, item: number): Block | undefined {
    const there = this.#partial.get(ordinal);
    return there === undefined || there.has(item) ? this.#blocks.get(ordinal) : undefined;
  }

  release(block: Block): void {
    // The memory is still being written. It becomes free when that has ended.
    if (this.#partial.has(block.ordinal)) {
      this.#released.add(block.ordinal);
      return;
    }
    this.#options.arena.free(block.place, block.bytes);
    this.#blocks.delete(block.ordinal);
    this.#live--;
    this.#options.wakeSignal.notify();
  }

  async fetchAgain(block: Block, item: number): Promise<boolean> {
    const { store, arena, wakeSignal } = this.#options;
    // `close` waits for it.
    this.#reading++;
    try {
      return await fetchSampleAgain(block, item, store, arena);
    } finally {
      this.#reading--;
      wakeSignal.notify();
    }
  }

  async close(): Promise<void> {
    const { wakeSignal } = this.#options;
    this.#closed = true;
    wakeSignal.notify();
    await this.#run;
    this.#readRest();
    while (this.#reading > 0) await wakeSignal.wait();
  }

  async #waitFor(ordinal: number, item: number): Promise<Block> {
    const { wakeSignal } = this.#options;
    this.#wanted = ordinal;
    if (this.#partial.has(ordinal)) this.#readRest();
    wakeSignal.notify();
    for (;;) {
      const block = this.#blockWith(ordinal, item);
      if (block !== undefined) {
        this.#wanted = -1;
        return block;
      }
      if (this.#failure !== null && this.#failure.ordinal <= ordinal) throw this.#failure.error;
      if (this.#closed) throw new ReadBufferError({}, 'The loader was closed while it was reading.');
      await wakeSignal.wait();
    }
  }

  #fail(ordinal: number, error: unknown): void {
    if (this.#failure === null || ordinal < this.#failure.ordinal) this.#failure = { ordinal, error };
    this.#options.wakeSignal.notify();
  }

  /** Never rejects. Errors are thrown to the caller that waits for a block. */
  async #readAhead(): Promise<void> {
    const { wakeSignal, opening } = this.#options;
    let ordinal = 0;
    try {
      for (let next = this.#nextPlanned(); next !== null; next = this.#nextPlanned()) {
        ordinal = next.block.ordinal;
        if (!opening.items.has(ordinal)) {
          while (!this.#closed && this.#failure === null && this.#opened < this.#opening) await wakeSignal.wait();
          this.#readRest();
        }
        while (!this.#closed && this.#failure === null && this.#isAfterFirst(ordinal)) await wakeSignal.wait();
        while (!this.#closed && !this.#mayRead(ordinal)) {
          this.#readRest();
          await wakeSignal.wait();
        }
        if (this.#closed || this.#failure !== null) return;
        const parts = await next.parts;
        const place = await this.#allocate(parts.bytes, ordinal);
        if (place >= 0) void this.#read(next.block, parts, place);
      }
      this.#readRest();
    } catch (error) {
      this.#fail(ordinal, error);
    }
  }

  /** The next block and its planned load. On slow storage, the indexes of the blocks after it are requested ahead. */
  #nextPlanned(): PlannedLoad | null {
    const { blocks, samplesOf, store } = this.#options;
    while (this.#planned.length < store.costs.profile.plannedBlocks) {
      if (this.#planned.length > 0 && this.#isAfterFirst(this.#planned.at(-1)!.block.ordinal + 1)) break;
      const next = blocks.next();
      if (next.done) break;
      const parts = planLoad(blockRows(next.value, samplesOf), store);
      // The error is reported when the block is needed.
      parts.catch(() => {});
      this.#planned.push({ block: next.value, parts });
    }
    return this.#planned.shift() ?? null;
  }

  /** True if the block is not part of the first batch and that batch is not complete yet. */
  #isAfterFirst(ordinal: number): boolean {
    const { first } = this.#options.opening;
    return ordinal >= first && this.#opened < first;
  }

  #mayRead(ordinal: number): boolean {
    const { buffers, store, opening } = this.#options;
    // The first batches need only a few items of each block.
    const most = opening.items.has(ordinal)
      ? Number.POSITIVE_INFINITY
      : (this.#options.readConcurrency ?? store.costs.parallel);
    return this.#reading < most && (this.#live < buffers || this.#wanted >= ordinal);
  }

  /** Reads the rest of the first blocks, in their order, once the first batches have the items that they need. */
  #readRest(): void {
    for (const read of this.#rest.splice(0)) void read();
  }

  /** Never rejects. Errors are thrown to the caller that waits for a block. */
  async #read(planned: PlannedBlock, parts: LoadedShards, place: number): Promise<void> {
    const { samplesOf, store, arena, wakeSignal } = this.#options;
    const { ordinal, pass } = planned;
    const target = { store, arena, place, pass };
    const wanted = this.#options.opening.items.get(ordinal);
    this.#live++;
    this.#reading++;
    try {
      const items = blockItems(planned, samplesOf);
      const block = {
        ...items,
        reader: this,
        ordinal,
        pass,
        items: planned.samples.length,
        shards: parts.shards,
        inShards: false,
        left: planned.uses,
        place,
        bytes: parts.bytes,
      };
      if (wanted === undefined) {
        await load(parts.shards, target);
        this.#blocks.set(ordinal, block);
      } else {
        this.#opening++;
        const samples = wanted.map((item) => ({ shard: items.shard[item]!, row: items.row[item]! }));
        await loadSamples(samples, parts.shards, target);
        this.#partial.set(ordinal, new Set(wanted));
        const whole = deferred();
        // Only a batch that replaces a sample awaits it.
        whole.promise.catch(() => {});
        const partial: Block = { ...block, whole: whole.promise };
        this.#blocks.set(ordinal, partial);
        this.#rest.push(() => this.#complete(partial, samples, whole));
        // All required items have arrived, so the rest may be read, too.
        this.#opened++;
        if (this.#opened === this.#options.opening.items.size || this.#failure !== null) this.#readRest();
      }
    } catch (error) {
      this.#fail(ordinal, error);
      this.#readRest();
    }
    this.#reading--;
    wakeSignal.notify();
  }

  /**
   * Reads the rest of a block. Samples that are already in memory are not touched, because a worker may be using them.
   */
  async #complete(
    block: Block,
    samples: readonly LoadedSample[],
    whole: ReturnType<typeof deferred<void>>,
  ): Promise<void> {
    const { store, arena, wakeSignal } = this.#options;
    this.#reading++;
    try {
      if (!this.#closed && !this.#released.has(block.ordinal)) {
        await load(block.shards, { store, arena, place: block.place, pass: block.pass }, samples);
      }
      this.#partial.delete(block.ordinal);
      whole.resolve();
    } catch (error) {
      this.#fail(block.ordinal, error);
      whole.reject(error);
    }
    this.#reading--;
    if (this.#released.delete(block.ordinal)) {
      this.#partial.delete(block.ordinal);
      this.release(block);
    }
    wakeSignal.notify();
  }

  /**
   * Returns the offset of `bytes` bytes, after waiting for free memory if necessary; -1 if the reader was closed
   * meanwhile.
   */
  async #allocate(bytes: number, ordinal: number): Promise<number> {
    const { arena, wakeSignal } = this.#options;
    if (bytes > SEGMENT_BYTES) throw tooLarge(bytes);
    for (;;) {
      if (this.#closed) return -1;
      const place = arena.allocate(bytes);
      if (place >= 0) return place;
      if (this.#isStuck(ordinal)) {
        const moved = await this.#makeRoom(bytes);
        if (moved >= 0 || this.#closed) return moved;
        throw await this.#tooSmall(bytes);
      }
      this.#readRest();
      await wakeSignal.wait();
    }
  }

  /** True if the consumer waits for this block, and neither the consumer nor a read in progress will free memory. */
  #isStuck(ordinal: number): boolean {
    return this.#wanted === ordinal && this.#reading === 0 && this.#options.demand.isUrgent();
  }

  /** Compacts the blocks if that frees enough memory, and allocates it. Otherwise returns -1. */
  async #makeRoom(bytes: number): Promise<number> {
    const { arena, demand } = this.#options;
    const live = [...this.#blocks.values()];
    const own = live.reduce((sum, block) => sum + placeBytes(block.bytes), 0);
    if (own !== arena.used || own + placeBytes(bytes) > arena.capacity) return -1;
    if (!(await demand.settle()) || this.#closed) return -1;
    arena.compact(live);
    return arena.allocate(bytes);
  }

  async #tooSmall(bytes: number): Promise<ReadBufferError> {
    const { arena, leastBytes } = this.#options;
    const least = Math.max(await leastBytes(), arena.used + placeBytes(bytes));
    return new ReadBufferError(
      {},
      sentence`The read buffers of ${arena.capacity} bytes are full of blocks in use, and the next block takes ${bytes} bytes: set ${optionName('readBufferBytes')} to at least ${least}, or choose fewer streams or a smaller ${optionName('shuffleBufferSize')}.`,
    );
  }
}

function tooLarge(bytes: number): ReadBufferError {
  return new ReadBufferError(
    {},
    sentence`A block of ${bytes} bytes is larger than a segment of the read buffers (${SEGMENT_BYTES} bytes): choose a smaller ${optionName('shuffleBufferSize')} or ${optionName('blockSamples')}.`,
  );
}
