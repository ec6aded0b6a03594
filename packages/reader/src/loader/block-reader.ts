import type { ShardIndex } from '@shardtool/format';
import type { PlannedBlock } from '../order/batches.js';
import type { Selection } from '../selection/selection.js';
import { type Arena, ReadBufferError } from './arena.js';
import { type Block, type BlockReader, type BlockRows, blockRows, type LoadedShard, type Stretch, stretchesOf } from './block.js';
import { Signal } from './signal.js';

/** Where blocks come from: shards by number. */
export interface ShardStore {
  index(shard: number): Promise<ShardIndex>;
  /** Fills `target` with the shard's bytes from `offset` on; throws where the file ends before. */
  read(shard: number, offset: number, target: Uint8Array): Promise<void>;
}

export interface StreamingOptions {
  readonly blocks: Iterator<PlannedBlock>;
  /** Number on the line of each shard's first sample. */
  readonly first: Float64Array;
  readonly selection: Selection;
  readonly store: ShardStore;
  readonly arena: Arena;
  /** Blocks in memory at once, as long as none more is waited for. */
  readonly slabs: number;
  /** Reads at once. */
  readonly readConcurrency: number;
  /** Whether anything but the batch that waits now can still free memory. */
  mayFree(): boolean;
}

/** Reads whole blocks in the order in which they are first needed, ahead of the batches, into an arena. */
export class StreamingReader implements BlockReader {
  readonly #options: StreamingOptions;
  readonly #blocks = new Map<number, Block>();
  readonly #changed = new Signal();
  #reading = 0;
  #live = 0;
  /** The ordinal that a batch waits for, or -1. */
  #wanted = -1;
  /** Bytes that the next block needs and the arena does not have, or 0. */
  #short = 0;
  #failure: unknown;
  #closed = false;
  readonly #run: Promise<void>;

  constructor(options: StreamingOptions) {
    this.#options = options;
    this.#run = this.#readAhead().catch((error: unknown) => this.#fail(error));
  }

  get(ordinal: number): Block | Promise<Block> {
    return this.#blocks.get(ordinal) ?? this.#waitFor(ordinal);
  }

  release(block: Block): void {
    this.#options.arena.free(block.place, block.bytes);
    this.#blocks.delete(block.ordinal);
    this.#live--;
    this.#changed.ring();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#changed.ring();
    await this.#run;
    while (this.#reading > 0) await this.#changed.wait();
    for (const block of this.#blocks.values()) this.#options.arena.free(block.place, block.bytes);
    this.#blocks.clear();
  }

  async #waitFor(ordinal: number): Promise<Block> {
    this.#wanted = ordinal;
    this.#changed.ring();
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const block = this.#blocks.get(ordinal);
      if (block !== undefined) {
        this.#wanted = -1;
        return block;
      }
      await this.#changed.wait();
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#changed.ring();
  }

  /** Blocks get their memory strictly in the order of need, so that a later one never takes an earlier one's place. */
  async #readAhead(): Promise<void> {
    const { blocks, first, selection, store, arena, slabs, readConcurrency } = this.#options;
    for (let next = blocks.next(); !next.done; next = blocks.next()) {
      const planned = next.value;
      while (!this.#closed && this.#live >= slabs && this.#wanted < planned.ordinal) await this.#changed.wait();
      while (!this.#closed && this.#reading >= readConcurrency) await this.#changed.wait();
      if (this.#closed || this.#failure !== undefined) return;
      const rows = blockRows(planned, first, selection);
      const shards = await loadShards(rows, store);
      const bytes = totalBytes(shards);
      const place = await this.#allocate(bytes, planned.ordinal);
      if (place < 0) return;
      this.#live++;
      this.#reading++;
      readStretches(shards, place, store, arena)
        .then(() => this.#blocks.set(planned.ordinal, blockOf(this, planned, rows, shards, place, bytes)))
        .catch((error: unknown) => this.#fail(error))
        .finally(() => {
          this.#reading--;
          this.#changed.ring();
        });
    }
  }

  /** The place of `bytes` bytes, waiting for memory where there is none; -1 when the reader was closed meanwhile. */
  async #allocate(bytes: number, ordinal: number): Promise<number> {
    const { arena, mayFree } = this.#options;
    for (;;) {
      if (this.#closed) return -1;
      const place = arena.allocate(bytes);
      if (place >= 0) return place;
      const isStuck = this.#wanted >= 0 && this.#wanted <= ordinal && this.#reading === 0 && !mayFree();
      if (isStuck && !this.#blocks.has(this.#wanted)) {
        throw new ReadBufferError(
          {},
          `The read buffers of ${arena.capacity} bytes hold ${arena.used} bytes of blocks in use and the next block ` +
            `needs ${bytes} more: set readBufferBytes to at least ${arena.used + bytes}, or choose fewer streams or ` +
            'a smaller shuffleBufferSize.',
        );
      }
      await this.#changed.wait();
    }
  }
}

/** Reads what a selection needs once and keeps it: for datasets that fit the shuffle buffers as a whole. */
export class ResidentReader implements BlockReader {
  readonly #shards: ReadonlyMap<number, LoadedShard>;
  readonly #blocks: Iterator<PlannedBlock>;
  readonly #first: Float64Array;
  readonly #selection: Selection;
  readonly #planned = new Map<number, Block>();

  constructor(options: {
    readonly shards: ReadonlyMap<number, LoadedShard>;
    readonly blocks: Iterator<PlannedBlock>;
    readonly first: Float64Array;
    readonly selection: Selection;
  }) {
    this.#shards = options.shards;
    this.#blocks = options.blocks;
    this.#first = options.first;
    this.#selection = options.selection;
  }

  get(ordinal: number): Block {
    while (!this.#planned.has(ordinal)) {
      const next = this.#blocks.next();
      if (next.done) throw new Error(`block ${ordinal} is not part of the plan`);
      const rows = blockRows(next.value, this.#first, this.#selection);
      this.#planned.set(next.value.ordinal, blockOf(this, next.value, rows, this.#shards, 0, 0));
    }
    return this.#planned.get(ordinal)!;
  }

  release(block: Block): void {
    this.#planned.delete(block.ordinal);
  }

  async close(): Promise<void> {
    this.#planned.clear();
  }
}

/** The index and the stretches (not yet placed) of every shard that `rows` touch. */
export async function loadShards(rows: BlockRows, store: ShardStore): Promise<ReadonlyMap<number, LoadedShard>> {
  const shards = new Map<number, LoadedShard>();
  for (const part of rows.perShard) {
    const index = await store.index(part.shard);
    shards.set(part.shard, { index, stretches: stretchesOf(index, part.rows) });
  }
  return shards;
}

/** Bytes that the stretches take one behind the other. */
export function totalBytes(shards: ReadonlyMap<number, LoadedShard>): number {
  let bytes = 0;
  for (const { stretches } of shards.values()) for (const stretch of stretches) bytes += stretch.bytes;
  return bytes;
}

/** Reads all stretches one behind the other from `place` on. */
export async function readStretches(
  shards: ReadonlyMap<number, LoadedShard>,
  place: number,
  store: ShardStore,
  arena: Arena,
): Promise<void> {
  let at = place;
  const reads: Promise<void>[] = [];
  for (const [shard, { stretches }] of shards) {
    for (const stretch of stretches) {
      stretch.place = at;
      reads.push(readStretch(shard, stretch, store, arena));
      at += stretch.bytes;
    }
  }
  await Promise.all(reads);
}

async function readStretch(shard: number, stretch: Stretch, store: ShardStore, arena: Arena): Promise<void> {
  if (stretch.bytes > 0) await store.read(shard, stretch.offset, arena.view(stretch.place, stretch.bytes));
}

function blockOf(
  reader: BlockReader,
  planned: PlannedBlock,
  rows: BlockRows,
  shards: ReadonlyMap<number, LoadedShard>,
  place: number,
  bytes: number,
): Block {
  return {
    reader,
    ordinal: planned.ordinal,
    pass: planned.pass,
    items: planned.samples.length,
    shard: rows.shard,
    row: rows.row,
    occurrence: rows.occurrence,
    shards,
    left: planned.uses,
    place,
    bytes,
  };
}
