import type { Bell } from '@shardtool/format';
import type { PlannedBlock } from '../../order/batches.js';
import type { Selection } from '../../selection/selection.js';
import { type Arena, placeBytes, ReadBufferError, SEGMENT_BYTES } from './arena.js';
import { type Block, type BlockReader, blockItems, blockRows } from './block.js';
import { type LoadedShards, load, planLoad, type ShardStore } from './load-shards.js';

/** What a reader has to know of the batches that its blocks are for. */
export interface Demand {
  /** The consumer waits for the very batch that waits for a block: nothing will give memory back before. */
  isUrgent(): boolean;
  /** Resolves when no worker looks at the arena; false where the consumer does, or where batches come no more. */
  settle(): Promise<boolean>;
  /** Nobody wants blocks any more. */
  readonly isOver: boolean;
}

export interface StreamingOptions {
  readonly blocks: Iterator<PlannedBlock>;
  /** Number on the line of each shard's first sample. */
  readonly first: Float64Array;
  readonly selection: Selection;
  readonly store: ShardStore;
  readonly arena: Arena;
  /** Rung by all who change something: this reader, those that share the arena, and the batches. */
  readonly bell: Bell;
  /** Blocks in memory at once, as long as none more is waited for. */
  readonly slabs: number;
  /** Blocks that are being read at once. */
  readonly readConcurrency: number;
  readonly demand: Demand;
  /** The least memory with which the epoch can be read, in bytes. */
  leastBytes(): Promise<number>;
}

/**
 * Reads whole blocks in the order in which they are first needed, ahead of the batches, into an arena. Blocks get their
 * memory strictly in that order, so that a later one never takes an earlier one's place. Where the memory is tight,
 * reading waits for batches to be delivered; where it would wait for ever, blocks are moved together; and where that does
 * not help either, the limit is too small for the order, which is a {@link ReadBufferError}.
 */
export class StreamingReader implements BlockReader {
  readonly #options: StreamingOptions;
  readonly #blocks = new Map<number, Block>();
  #reading = 0;
  #live = 0;
  /** The ordinal that a batch waits for, or -1. */
  #wanted = -1;
  /** What went wrong with a block; later ones do not come either, earlier ones do. */
  #failure: { readonly ordinal: number; readonly error: unknown } | null = null;
  #closed = false;
  readonly #run: Promise<void>;

  constructor(options: StreamingOptions) {
    this.#options = options;
    this.#run = this.#readAhead();
  }

  get(ordinal: number): Block | Promise<Block> {
    return this.#blocks.get(ordinal) ?? this.#waitFor(ordinal);
  }

  release(block: Block): void {
    this.#options.arena.free(block.place, block.bytes);
    this.#blocks.delete(block.ordinal);
    this.#live--;
    this.#options.bell.ring();
  }

  async close(): Promise<void> {
    const { bell } = this.#options;
    this.#closed = true;
    bell.ring();
    await this.#run;
    while (this.#reading > 0) await bell.wait();
  }

  async #waitFor(ordinal: number): Promise<Block> {
    const { bell } = this.#options;
    this.#wanted = ordinal;
    bell.ring();
    for (;;) {
      const block = this.#blocks.get(ordinal);
      if (block !== undefined) {
        this.#wanted = -1;
        return block;
      }
      if (this.#failure !== null && this.#failure.ordinal <= ordinal) throw this.#failure.error;
      if (this.#closed) throw new ReadBufferError({}, 'Reading has ended: the loader was closed.');
      await bell.wait();
    }
  }

  #fail(ordinal: number, error: unknown): void {
    if (this.#failure === null || ordinal < this.#failure.ordinal) this.#failure = { ordinal, error };
    this.#options.bell.ring();
  }

  /** Never rejects: what goes wrong is heard by whoever waits for a block. */
  async #readAhead(): Promise<void> {
    const { blocks, bell } = this.#options;
    let ordinal = 0;
    try {
      for (let next = blocks.next(); !next.done; next = blocks.next()) {
        ordinal = next.value.ordinal;
        while (!this.#closed && !this.#mayRead(ordinal)) await bell.wait();
        if (this.#closed || this.#failure !== null) return;
        await this.#begin(next.value);
      }
    } catch (error) {
      this.#fail(ordinal, error);
    }
  }

  /** Resolves when the block has its place and is being read. */
  async #begin(planned: PlannedBlock): Promise<void> {
    const { selection, store } = this.#options;
    const parts = await planLoad(blockRows(planned, selection), store);
    const place = await this.#allocate(parts.bytes, planned.ordinal);
    if (place >= 0) void this.#read(planned, parts, place);
  }

  #mayRead(ordinal: number): boolean {
    const { slabs, readConcurrency } = this.#options;
    return this.#reading < readConcurrency && (this.#live < slabs || this.#wanted >= ordinal);
  }

  /** Never rejects: what goes wrong is heard by whoever waits for a block. */
  async #read(planned: PlannedBlock, parts: LoadedShards, place: number): Promise<void> {
    const { first, selection, store, arena, bell } = this.#options;
    this.#live++;
    this.#reading++;
    try {
      await load(parts.shards, place, store, arena);
      this.#blocks.set(planned.ordinal, {
        ...blockItems(planned, first, selection),
        reader: this,
        ordinal: planned.ordinal,
        pass: planned.pass,
        items: planned.samples.length,
        shards: parts.shards,
        inShards: false,
        left: planned.uses,
        place,
        bytes: parts.bytes,
      });
    } catch (error) {
      this.#fail(planned.ordinal, error);
    }
    this.#reading--;
    bell.ring();
  }

  /** The place of `bytes` bytes, waiting for memory where there is none; -1 when the reader was closed meanwhile. */
  async #allocate(bytes: number, ordinal: number): Promise<number> {
    const { arena, bell } = this.#options;
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
      await bell.wait();
    }
  }

  /** The consumer waits for this block, and neither it nor a read that is under way will free memory. */
  #isStuck(ordinal: number): boolean {
    return this.#wanted === ordinal && this.#reading === 0 && this.#options.demand.isUrgent();
  }

  /** Moves blocks together where that gives enough room, and takes it; else -1. */
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
      `The read buffers of ${arena.capacity} bytes are full of blocks in use, and the next block takes ${bytes} bytes: set ` +
        `readBufferBytes to at least ${least}, or choose fewer streams or a smaller shuffleBufferSize.`,
    );
  }
}

function tooLarge(bytes: number): ReadBufferError {
  return new ReadBufferError(
    {},
    `A block of ${bytes} bytes is more than the ${SEGMENT_BYTES} that one place in the read buffers has: choose a smaller ` +
      'shuffleBufferSize or blockSamples.',
  );
}
