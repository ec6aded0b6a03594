import type { WakeSignal } from '@shardtool/base';
import type { LoadedIndex } from '@shardtool/format';
import type { ShardStore } from '../../../dataset/shards/shard-store.js';
import type { PlannedBlock } from '../../../order/batches.js';
import type { SamplesOf } from '../../../selection/pass-samples.js';
import { ReadBufferError } from '../arena.js';
import {
  type Block,
  type BlockReader,
  blockRows,
  blockWithoutMemory,
  type LoadedShard,
  type ShardRows,
} from '../block.js';
import { checkRows } from '../load-shards.js';
import type { Demand } from './block-reader.js';
import type { ReadSpeed } from './read-speed.js';
import { readsOf, stretchesOf } from './stretches.js';

/** How a reader keeps the data of its blocks in the page cache, ahead of the workers that read them. */
export interface AheadOptions {
  readonly wakeSignal: WakeSignal;
  /** Number of blocks that are read ahead. */
  readonly buffers: number;
  /** Number of blocks that are read concurrently. */
  readonly readConcurrency: number | undefined;
  readonly demand: Pick<Demand, 'isUrgent'>;
  readonly speed: ReadSpeed;
  /** Rows of the first batch. They are not read ahead, so the batch waits for nothing but its own samples. */
  readonly firstRows: number;
  /** All rows that are read, if every block needs samples from everywhere. Otherwise null. */
  readonly all: (() => Iterable<ShardRows>) | null;
}

export interface UnreadOptions {
  readonly blocks: Iterator<PlannedBlock>;
  readonly samplesOf: SamplesOf;
  readonly store: ShardStore;
  /** Null: all data are known to be in the page cache. */
  readonly ahead: AheadOptions | null;
}

/** All of a shard as one stretch, so that offsets stay the same. */
const WHOLE_SHARD = [{ offset: 0, bytes: Number.POSITIVE_INFINITY, at: 0 }] as const;
/** Data that are read ahead go through buffers of this size, and are dropped: the page cache keeps them. */
const BUFFER_BYTES = 2 ** 20;

/** A shard that is not in memory. */
export function wholeShard(index: LoadedIndex): LoadedShard {
  return { index, stretches: WHOLE_SHARD, crops: null };
}

/**
 * Blocks of an epoch that stay in their shards: workers read the images. While their reads take no longer than from the
 * page cache, nothing else is read. If they take longer, blocks are read ahead of the workers, so that the page cache
 * has them. This changes when bytes are read, and never which.
 */
export class UnreadReader implements BlockReader {
  readonly #options: UnreadOptions;
  /** Blocks that may still be requested, in their order. */
  readonly #planned = new Map<number, { readonly block: Block; readonly plan: PlannedBlock }>();
  #planning: Promise<boolean> | null = null;
  #rows = 0;
  /** Ordinals of the planned blocks whose reading has begun, and of those that the page cache has. */
  readonly #begun = new Set<number>();
  readonly #read = new Set<number>();
  readonly #buffers: Uint8Array[] = [];
  #reading = 0;
  #run: Promise<void> | null = null;
  #failure: { readonly ordinal: number; readonly error: unknown } | null = null;
  #closed = false;

  constructor(options: UnreadOptions) {
    this.#options = options;
  }

  get(ordinal: number): Block | Promise<Block> {
    const planned = this.#planned.get(ordinal);
    this.#rows++;
    if (planned !== undefined && this.#mayUse(ordinal)) return planned.block;
    return this.#whenUsable(ordinal);
  }

  release({ ordinal }: Block): void {
    this.#planned.delete(ordinal);
    this.#begun.delete(ordinal);
    this.#read.delete(ordinal);
    this.#options.ahead?.wakeSignal.notify();
  }

  async close(): Promise<void> {
    const { ahead } = this.#options;
    this.#closed = true;
    ahead?.wakeSignal.notify();
    await this.#planning;
    await this.#run;
    while (this.#reading > 0) await ahead!.wakeSignal.wait();
    this.#planned.clear();
  }

  /** Whether workers may read the block now. Begins to read ahead when that becomes necessary. */
  #mayUse(ordinal: number): boolean {
    const { ahead } = this.#options;
    if (ahead === null) return true;
    const { speed, demand, firstRows } = ahead;
    const isFirst = this.#rows <= firstRows;
    if (!isFirst && !speed.isKnown) {
      if (!demand.isUrgent()) return false;
      speed.settle();
    }
    if (!speed.isSlow) return true;
    this.#run ??= this.#readAhead(ahead);
    return isFirst || ahead.all !== null || this.#read.has(ordinal);
  }

  async #whenUsable(ordinal: number): Promise<Block> {
    while (!this.#planned.has(ordinal)) {
      if (await this.#planNext()) continue;
      throw this.#failure?.error ?? new Error(`block ${ordinal} is not part of the plan`);
    }
    const { block } = this.#planned.get(ordinal)!;
    while (!this.#mayUse(ordinal)) {
      if (this.#failure !== null && this.#failure.ordinal <= ordinal) throw this.#failure.error;
      if (this.#closed) throw new ReadBufferError({}, 'The loader was closed while it was reading.');
      await this.#options.ahead!.wakeSignal.wait();
    }
    return block;
  }

  /** Plans the next block, once if several callers need it. Returns false at the end, and if there is an error. */
  #planNext(): Promise<boolean> {
    this.#planning ??= this.#plan().finally(() => {
      this.#planning = null;
    });
    return this.#planning;
  }

  async #plan(): Promise<boolean> {
    const { blocks, samplesOf, store } = this.#options;
    const next = blocks.next();
    if (next.done) return false;
    const shards = new Map<number, LoadedShard>();
    try {
      for (const part of blockRows(next.value, samplesOf)) {
        const index = await store.indexes.index(part.shard);
        checkRows(part, index, store);
        shards.set(part.shard, wholeShard(index));
      }
    } catch (error) {
      this.#fail(next.value.ordinal, error);
      return false;
    }
    const block = blockWithoutMemory(this, next.value, samplesOf, { shards, inShards: true });
    this.#planned.set(block.ordinal, { block, plan: next.value });
    return true;
  }

  /** Never rejects. Errors are thrown to the caller that waits for a block. */
  async #readAhead(ahead: AheadOptions): Promise<void> {
    const { wakeSignal, buffers, readConcurrency, all } = ahead;
    const { store } = this.#options;
    const most = readConcurrency ?? store.costs.parallel;
    if (all !== null) {
      await this.#readRows(all(), -1, undefined);
      return;
    }
    for (;;) {
      while (!this.#closed && this.#reading >= most) await wakeSignal.wait();
      if (this.#closed || this.#failure !== null) return;
      const next = this.#nextUnread();
      if (next !== undefined) {
        void this.#readBlock(next, wakeSignal);
      } else if (this.#planned.size >= buffers) {
        await wakeSignal.wait();
      } else {
        if (!(await this.#planNext())) return;
      }
    }
  }

  #nextUnread(): PlannedBlock | undefined {
    for (const [ordinal, { plan }] of this.#planned) if (!this.#begun.has(ordinal)) return plan;
  }

  async #readBlock(plan: PlannedBlock, wakeSignal: WakeSignal): Promise<void> {
    const { ordinal, pass } = plan;
    this.#begun.add(ordinal);
    this.#reading++;
    const isRead = await this.#readRows(blockRows(plan, this.#options.samplesOf), ordinal, pass);
    this.#reading--;
    if (isRead && this.#planned.has(ordinal)) this.#read.add(ordinal);
    wakeSignal.notify();
  }

  /** Reads rows of shards and drops the bytes. Never rejects: returns false after an error, and if the reader was closed. */
  async #readRows(parts: Iterable<ShardRows>, ordinal: number, pass: number | undefined): Promise<boolean> {
    const { store } = this.#options;
    const buffer = this.#buffers.pop() ?? new Uint8Array(BUFFER_BYTES);
    let isRead = true;
    try {
      for (const { shard, rows } of parts) {
        const index = await store.indexes.index(shard);
        for (const { offset, bytes } of readsOf(stretchesOf(index, rows), store.costs.profile)) {
          for (let from = 0; from < bytes && !this.#closed; from += BUFFER_BYTES) {
            const target = buffer.subarray(0, Math.min(BUFFER_BYTES, bytes - from));
            await store.bytes.read({ shard, file: 'shard', offset: offset + from, pass }, target);
          }
        }
      }
    } catch (error) {
      this.#fail(ordinal, error);
      isRead = false;
    }
    this.#buffers.push(buffer);
    return isRead && !this.#closed;
  }

  #fail(ordinal: number, error: unknown): void {
    if (this.#failure === null || ordinal < this.#failure.ordinal) this.#failure = { ordinal, error };
  }
}
