import type { ShardIndex } from '@shardtool/format';
import { ShardtoolError } from '@shardtool/format';
import { fieldBytes } from '../dataset/field-bytes.js';
import { type FieldValue, fieldValue } from '../dataset/field-values.js';
import type { Batch } from './batch.js';
import { type Block, placeOf, type Stretch } from './block.js';
import type { BadRow, WorkerMessage } from './decode-worker.js';
import type { Engine } from './engine.js';
import type { Feeder } from './feeder.js';
import { imageColumn } from './image-column.js';
import type { PendingBatch } from './pending-batch.js';
import { Signal } from './signal.js';
import type { Statistics } from './statistics.js';

/** A sample could not be read, checked or decoded. */
export class BadSampleError extends ShardtoolError {}

export interface DeliveryOptions {
  readonly engine: Engine;
  readonly statistics: Statistics;
  readonly shardName: (shard: number) => string;
  readonly image: string | undefined;
  readonly fields: readonly string[];
  readonly onBadSample: 'raise' | 'skip' | 'substitute';
  readonly output: BatchOutput;
}

/** What the images of a batch are: pixels of one shape, a list, or encoded bytes. */
export type BatchOutput =
  | { readonly kind: 'pixels'; readonly shape: readonly [number, number, number]; readonly dtype: 'uint8' | 'float32' }
  | { readonly kind: 'list' }
  | { readonly kind: 'raw' };

/** Waits until batches are full, deals with bad samples, and makes what the consumer gets. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #underWay = new Map<number, PendingBatch>();
  readonly #arrived = new Signal();

  constructor(options: DeliveryOptions) {
    this.#options = options;
    options.engine.listen((message) => this.#hear(message));
  }

  /** Workers' messages for this batch are kept with it from now on. */
  expect(pending: PendingBatch): void {
    this.#underWay.set(pending.slot, pending);
  }

  /** Resolves when every row is decoded or dealt with; throws what ended the workers, the reading, or a bad sample. */
  async whenComplete(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { control } = this.#options.engine;
    for (;;) {
      while (!control.isFull(pending.slot)) {
        const failure = this.#options.engine.failure ?? feeder.failure;
        if (failure !== undefined) throw failure;
        await control.whenFull(pending.slot);
      }
      while (pending.messages < control.posted(pending.slot)) await this.#arrived.wait();
      const bad = pending.bad;
      if (bad.length === 0) return;
      pending.bad = [];
      for (const row of bad) this.#judge(pending, row, feeder);
    }
  }

  /** A row whose sample has no image never becomes a job: it is bad at once. */
  reject(pending: PendingBatch, row: number, reason: string): void {
    pending.bad.push({ kind: 'bad', slot: pending.slot, row, reason });
    this.#options.engine.control.finish(pending.slot);
  }

  /** The batch for the consumer. Blocks are still in memory; `release` is called at most once. */
  batch(pending: PendingBatch, release: () => void): Batch {
    const { engine, output, fields } = this.#options;
    const { rows } = pending;
    this.#underWay.delete(pending.slot);
    const bytes = output.kind === 'pixels' ? engine.slotBytes(pending.slot, rows) : null;
    let keys: readonly string[] | undefined;
    let released = false;
    return {
      epoch: pending.epoch,
      index: pending.planned.index,
      size: rows,
      images: bytes === null ? null : output.kind === 'pixels' && output.dtype === 'float32' ? asFloats(bytes) : bytes,
      shape: output.kind === 'pixels' ? [rows, ...output.shape] : null,
      list: output.kind === 'list' ? pending.list : null,
      encoded: output.kind === 'raw' ? this.#encoded(pending) : null,
      labels: pending.labels,
      valid: pending.valid,
      numbers: pending.numbers,
      get keys() {
        keys ??= pending.blocks.map((block, row) => keyOf(block, pending.items[row]!));
        return keys;
      },
      fields: this.#fields(pending, fields),
      release() {
        if (released) return;
        released = true;
        release();
      },
    };
  }

  #hear(message: WorkerMessage): void {
    if (message.kind === 'ready') return;
    const pending = this.#underWay.get(message.slot);
    if (pending === undefined) return;
    pending.messages++;
    if (message.kind === 'bad') pending.bad.push(message);
    else pending.list[message.row] = { pixels: message.pixels, height: message.height, width: message.width };
    this.#arrived.ring();
  }

  /** One bad row: raises, skips or substitutes, as the options say. */
  #judge(pending: PendingBatch, { row, reason }: BadRow, feeder: Feeder): void {
    const { shardName, onBadSample, statistics, engine, output } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    const shard = shardName(block.shard[item]!);
    const key = keyOf(block, item);
    if (onBadSample === 'raise') {
      throw new BadSampleError(
        { shard, key },
        `${shard}: sample "${key}" cannot be used: ${reason}. Run "shardtool verify --decode" to list every bad sample, ` +
          "or set onBadSample to 'skip' or 'substitute'.",
      );
    }
    if (onBadSample === 'substitute') {
      const next = (item + 1) % block.items;
      if (next !== pending.planned.item[row]) {
        statistics.countBad({ shard, key, reason, substitute: keyOf(block, next) });
        pending.items[row] = next;
        engine.control.reopenSlot(pending.slot, 1);
        feeder.push(pending, row);
        engine.control.ring();
        return;
      }
      throw new BadSampleError(
        { shard, key },
        `${shard}: no sample of the block of "${key}" can be used, the last one because ${reason}. ` +
          'Run "shardtool verify --decode" to list every bad sample.',
      );
    }
    statistics.countBad({ shard, key, reason });
    pending.valid[row] = 0;
    if (output.kind === 'pixels') {
      engine.slotBytes(pending.slot, pending.rows).fill(0, row * engine.plan.rowBytes, (row + 1) * engine.plan.rowBytes);
    } else if (output.kind === 'list') pending.list[row] = { pixels: new Uint8Array(0), height: 0, width: 0 };
  }

  #encoded(pending: PendingBatch): Uint8Array[] {
    const { engine, image } = this.#options;
    return pending.blocks.map((block, row) => {
      const { index, indexRow, stretches } = locate(block, pending.items[row]!);
      const column = imageColumn(index, image);
      const offset = column.offset[indexRow]!;
      if (offset < 0) return new Uint8Array(0);
      return engine.arena.view(placeOf(stretches, offset), column.bytes[indexRow]!);
    });
  }

  #fields(pending: PendingBatch, names: readonly string[]): Record<string, (FieldValue | null)[]> {
    const values: Record<string, (FieldValue | null)[]> = {};
    for (const name of names) {
      values[name] = pending.blocks.map((block, row) => this.#field(block, pending.items[row]!, name));
    }
    return values;
  }

  #field(block: Block, item: number, name: string): FieldValue | null {
    const { index, indexRow, stretches } = locate(block, item);
    const column = index.fields.get(name);
    const offset = column?.offset[indexRow] ?? -1;
    if (column === undefined || offset < 0) return null;
    const stored = this.#options.engine.arena.view(placeOf(stretches, offset), column.bytes[indexRow]!);
    const shard = this.#options.shardName(block.shard[item]!);
    const key = index.key[indexRow]!;
    const bytes = fieldBytes(stored, column, indexRow, { shard, key, field: name });
    try {
      return fieldValue(name, bytes);
    } catch (cause) {
      throw new BadSampleError(
        { shard, key },
        `${shard}: sample "${key}" cannot be used: field "${name}" is not what its name says (${(cause as Error).message}). ` +
          'Leave the field out by the option fields, or repair the sample.',
        { cause },
      );
    }
  }
}

function locate(block: Block, item: number): { index: ShardIndex; indexRow: number; stretches: readonly Stretch[] } {
  const { index, stretches } = block.shards.get(block.shard[item]!)!;
  return { index, indexRow: block.row[item]!, stretches };
}

function keyOf(block: Block, item: number): string {
  const { index, indexRow } = locate(block, item);
  return index.key[indexRow]!;
}

function asFloats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
