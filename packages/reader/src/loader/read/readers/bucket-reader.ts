import type { PlannedBatch } from '../../../order/batches.js';
import type { OwnSample } from '../../../order/bucket-rows.js';
import { type SamplesOf, shardRow } from '../../../selection/pass-samples.js';
import type { Arena } from '../arena.js';
import { type Block, type BlockReader, placeOf } from '../block.js';
import { blockOfOne, onlyRow, type SampleRow, type SingleSamples } from './single-samples.js';

/** A reader for batches that consist of waiting samples. */
export interface BatchReader extends BlockReader {
  /** Reads up to this batch. After that, its blocks and items may be requested. */
  walk(planned: PlannedBatch): Promise<void>;
  /** Call this when all rows of the batch were requested from `blocks`. Returns a function that frees their memory. */
  done(planned: PlannedBatch, blocks: readonly Block[]): () => void;
  /** Call this when no more batches of the epoch are requested. Waiting samples are dropped. */
  finish(): void;
}

/** A block of the base order that the walk has passed in part or as a whole. */
interface Walked {
  readonly block: Block;
  /** Number of this rank's samples in the block that the walk has not passed yet. */
  left: number;
  /** Waiting samples by item. */
  readonly waiting: Map<number, Waiting>;
  /** Number of batches in progress that use the block. */
  inUse: number;
  isReleased: boolean;
}

/** Where a waiting sample is: in its block, or in a copy. A dropped sample will be read again. */
type Waiting = { readonly block: Block } | { readonly copy: Block } | { again: SampleRow; reading?: Promise<Block> };

export interface BucketReaderOptions {
  /** Blocks of the base order. */
  readonly blocks: BlockReader;
  /** The source of single samples. */
  singles(makeRoom: () => boolean): SingleSamples & { close?(): Promise<void> };
  readonly samplesOf: SamplesOf;
  /** Memory of blocks, and of samples that outlive their blocks. Null if blocks own no memory. */
  readonly memory: { readonly blocks: Arena; readonly held: Arena } | null;
  /** Maximum memory for waiting samples outside of their blocks, in bytes. */
  readonly holdBytes: number;
  /** Called when memory was freed. */
  notify(): void;
}

/**
 * Reads the samples of batches of one size. It walks along the base order and reads the blocks that it passes. The
 * memory of a block is freed when the walk has passed all of it and no batch in progress uses it; samples that still
 * wait are copied first. Above the limit, the samples that have waited longest are dropped and read again one by one.
 * So are samples that other ranks read, or that waited when the run was resumed.
 */
export class BucketReader implements BatchReader {
  readonly #options: BucketReaderOptions;
  readonly #singles: SingleSamples & { close?(): Promise<void> };
  readonly #walked = new Map<number, Walked>();
  /** Copies of waiting samples, the oldest first. */
  readonly #copies = new Map<Block, { readonly of: Walked; readonly item: number }>();
  #heldBytes = 0;
  /** Single samples of the current batch. */
  #asked: (Block | Promise<Block>)[] = [];

  constructor(options: BucketReaderOptions) {
    this.#options = options;
    this.#singles = options.singles(() => this.#letGo());
  }

  async walk({ block: ordinals, item: items, bucket }: PlannedBatch): Promise<void> {
    const { walked, singles } = bucket!;
    const { samplesOf } = this.#options;
    // Single samples are read while the blocks of this rank are read.
    this.#asked = singles.map(({ source, pass, number }) =>
      this.#read({ pass, ...shardRow(samplesOf(source, pass), number) }),
    );
    const isEnd = ordinals.length === 0;
    for (const own of walked) await this.#walkPast(own, isEnd);
    for (let row = 0; row < ordinals.length; row++) {
      if (ordinals[row]! < 0) continue;
      const waiting = this.#waiting(ordinals[row]!, items[row]!);
      // From now on, the copy must not be dropped.
      if ('copy' in waiting) this.#forget(waiting.copy);
      else if ('again' in waiting) waiting.reading ??= this.#readAgain(ordinals[row]!, waiting.again);
    }
  }

  get(ordinal: number, item: number): Block | Promise<Block> {
    if (ordinal < 0) return this.#asked[-1 - ordinal]!;
    const waiting = this.#waiting(ordinal, item);
    if ('block' in waiting) return waiting.block;
    return 'copy' in waiting ? waiting.copy : waiting.reading!;
  }

  done({ block: ordinals, item: items, bucket }: PlannedBatch, blocks: readonly Block[]): () => void {
    const shown = new Set<Walked>();
    const own = new Set(blocks.filter(({ reader }) => reader === this));
    for (let row = 0; row < ordinals.length; row++) {
      // A row that only pads the batch shows the sample of another row.
      const one = ordinals[row]! < 0 ? undefined : this.#walked.get(ordinals[row]!);
      const waiting = one && this.#take(ordinals[row]!, one, items[row]!);
      if (waiting !== undefined && 'block' in waiting) shown.add(one!);
    }
    for (const { block: ordinal, item } of bucket!.given) {
      const one = this.#walked.get(ordinal);
      const waiting = one && this.#take(ordinal, one, item);
      if (waiting !== undefined && 'copy' in waiting) this.release(waiting.copy);
    }
    for (const one of shown) one.inUse++;
    return () => {
      for (const block of own) this.release(block);
      for (const one of shown) {
        one.inUse--;
        this.#releaseIfDone(one);
      }
    };
  }

  /** Frees a sample that was copied, or that was read individually. */
  release({ place, bytes }: Block): void {
    if (bytes === 0) return;
    this.#options.memory!.held.free(place, bytes);
    this.#options.notify();
  }

  finish(): void {
    for (const copy of this.#copies.keys()) this.release(copy);
    this.#copies.clear();
    this.#heldBytes = 0;
    this.#walked.clear();
  }

  async close(): Promise<void> {
    await Promise.all([this.#options.blocks.close(), this.#singles.close?.()]);
  }

  async #walkPast({ block: ordinal, item }: OwnSample, isEnd: boolean): Promise<void> {
    const found = this.#options.blocks.get(ordinal, item);
    const block = found instanceof Promise ? await found : found;
    let one = this.#walked.get(ordinal);
    if (one === undefined) {
      one = { block, left: block.left, waiting: new Map(), inUse: 0, isReleased: false };
      this.#walked.set(ordinal, one);
    }
    one.waiting.set(item, { block });
    one.left--;
    if (one.left > 0) return;
    if (isEnd) one.waiting.clear();
    for (const [waits, where] of one.waiting) if ('block' in where) one.waiting.set(waits, this.#copy(one, waits));
    this.#releaseIfDone(one);
  }

  #waiting(ordinal: number, item: number): Waiting {
    return this.#walked.get(ordinal)!.waiting.get(item)!;
  }

  /** Removes a sample from those that wait, and returns where it is. */
  #take(ordinal: number, one: Walked, item: number): Waiting | undefined {
    const waiting = one.waiting.get(item);
    one.waiting.delete(item);
    if (waiting !== undefined && 'copy' in waiting) this.#forget(waiting.copy);
    if (one.left === 0 && one.waiting.size === 0) this.#walked.delete(ordinal);
    return waiting;
  }

  #releaseIfDone(one: Walked): void {
    if (one.left > 0 || one.inUse > 0 || one.isReleased) return;
    one.isReleased = true;
    this.#options.blocks.release(one.block);
  }

  /** Copies a sample that is needed longer than its block. */
  #copy(one: Walked, item: number): Waiting {
    const { memory, holdBytes } = this.#options;
    const { block } = one;
    if (memory === null) return { block };
    const shard = block.shard[item]!;
    const row = block.row[item]!;
    const sample = { pass: block.pass, shard, row, occurrence: block.occurrence[item]! };
    const from = block.shards.get(shard)!;
    const { shard: only, bytes } = onlyRow(from, row);
    if (bytes > holdBytes) return { again: sample };
    while (this.#heldBytes + bytes > holdBytes) this.#letGo();
    let place = memory.held.allocate(bytes);
    while (place < 0 && this.#letGo()) place = memory.held.allocate(bytes);
    if (place < 0) return { again: sample };
    const parts = [
      { own: only.stretches, whole: from.stretches },
      { own: only.crops?.stretches ?? [], whole: from.crops?.stretches ?? [] },
    ];
    for (const { own, whole } of parts) {
      for (const { offset, bytes: length, at } of own) {
        memory.held.view(place + at, length).set(memory.blocks.view(placeOf(block, whole, offset), length));
      }
    }
    const copy = blockOfOne(sample, this, { shards: new Map([[shard, only]]), inShards: false, place, bytes });
    const held = asItemOf(block, copy);
    this.#copies.set(held, { of: one, item });
    this.#heldBytes += bytes;
    return { copy: held };
  }

  /** Drops the oldest copy. Returns false if there is none. */
  #letGo(): boolean {
    const [oldest] = this.#copies;
    if (oldest === undefined) return false;
    const [copy, { of, item }] = oldest;
    const { pass, shard, row, occurrence } = copy;
    of.waiting.set(item, {
      again: { pass, shard: shard[item]!, row: row[item]!, occurrence: occurrence[item]! },
    });
    this.#forget(copy);
    this.release(copy);
    return true;
  }

  /** Removes the copy from those that may be dropped. */
  #forget(copy: Block): void {
    if (this.#copies.delete(copy)) this.#heldBytes -= copy.bytes;
  }

  #readAgain(ordinal: number, sample: SampleRow): Promise<Block> {
    const { block } = this.#walked.get(ordinal)!;
    const reading = Promise.resolve(this.#read(sample)).then((one) => asItemOf(block, one));
    reading.catch(() => {});
    return reading;
  }

  #read(sample: SampleRow): Block | Promise<Block> {
    const found = this.#singles.read(sample, this);
    if (found instanceof Promise) found.catch(() => {});
    return found;
  }
}

/** A block of one sample that replaces an item of its original block. */
function asItemOf({ shard, row, occurrence, items }: Block, one: Block): Block {
  return { ...one, shard, row, occurrence, items };
}
