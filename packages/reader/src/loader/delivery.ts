import type { ShardIndex } from '@shardtool/format';
import { ShardtoolError } from '@shardtool/format';
import { fieldBytes } from '../dataset/field-bytes.js';
import { type FieldValue, fieldValue } from '../dataset/field-values.js';
import type { Batch } from './batch.js';
import { type Block, placeOf } from './block.js';
import type { WorkerMessage } from './decode-worker.js';
import type { Engine } from './engine.js';
import type { Feeder } from './feeder.js';
import { imageColumn } from './image-column.js';
import type { PendingBatch } from './pending-batch.js';
import type { Statistics } from './statistics.js';
import type { Stretch } from './stretches.js';

/** A sample could not be read, checked or decoded. */
export class BadSampleError extends ShardtoolError {}

export interface DeliveryOptions {
  readonly engine: Engine;
  readonly statistics: Statistics;
  readonly shardName: (shard: number) => string;
  readonly image: string | undefined;
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
    await this.#whenFull(pending, feeder);
    for (let row = 0; row < pending.rows; row++) this.#readFields(pending, row);
    while (pending.bad.length > 0) {
      // A row may have more than one trouble: its image and a field.
      const bad = new Map(pending.bad.map(({ row, reason }) => [row, reason]));
      pending.bad = [];
      const rows = [...bad.keys()].sort((a, b) => a - b);
      for (const row of rows) this.#judge(pending, row, bad.get(row)!, feeder);
      await this.#whenFull(pending, feeder);
      for (const row of rows) this.#readFields(pending, row);
    }
    for (const [row, reason] of pending.reasons) this.#count(pending, row, reason);
  }

  /** A row whose sample has no image never becomes a job: it is bad at once. */
  reject(pending: PendingBatch, row: number, reason: string): void {
    pending.bad.push({ row, reason });
    this.#options.engine.control.finish(pending.slot);
  }

  /** The batch for the consumer. Blocks are still in memory; `release` is called at most once. */
  batch(pending: PendingBatch, release: () => void): Batch {
    const { engine, output } = this.#options;
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
      fields: pending.fields,
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
    this.#options.engine.bell.ring();
  }

  /** Every row is finished, for better or worse, and all that workers say about them has arrived. */
  async #whenFull(pending: PendingBatch, feeder: Feeder): Promise<void> {
    const { engine } = this.#options;
    const { control, bell } = engine;
    const check = (): void => {
      feeder.check(pending);
      if (engine.failure !== undefined) throw engine.failure;
    };
    while (!control.isFull(pending.slot)) {
      check();
      await control.whenFull(pending.slot);
    }
    while (pending.messages < control.posted(pending.slot)) {
      check();
      await bell.wait();
    }
    feeder.throwIfStopped();
  }

  /** One bad row: raises, skips or substitutes, as the options say. */
  #judge(pending: PendingBatch, row: number, reason: string, feeder: Feeder): void {
    const { onBadSample, engine } = this.#options;
    const block = pending.blocks[row]!;
    const item = pending.items[row]!;
    if (onBadSample === 'raise') {
      const { shard, key } = this.#whereabouts(block, item);
      throw new BadSampleError(
        { shard, key },
        `${shard}: sample "${key}" cannot be used: ${reason}. Run "shardtool verify --decode" to list every bad sample, ` +
          "or set onBadSample to 'skip' or 'substitute'.",
      );
    }
    if (!pending.reasons.has(row)) pending.reasons.set(row, reason);
    if (onBadSample === 'skip') {
      this.#blank(pending, row);
      return;
    }
    const next = (item + 1) % block.items;
    if (next === pending.planned.item[row]) {
      const { shard, key } = this.#whereabouts(block, next);
      throw new BadSampleError(
        { shard, key },
        `${shard}: no sample of the block of "${key}" can take its row; it cannot be used itself: ` +
          `${pending.reasons.get(row)}. Run "shardtool verify --decode" to list every bad sample.`,
      );
    }
    pending.items[row] = next;
    engine.control.reopenSlot(pending.slot, 1);
    feeder.push(pending, row);
    engine.control.ring();
  }

  #blank(pending: PendingBatch, row: number): void {
    const { engine, output } = this.#options;
    pending.valid[row] = 0;
    for (const values of Object.values(pending.fields)) values[row] = null;
    const { rowBytes } = engine.plan;
    if (output.kind === 'pixels') {
      engine.slotBytes(pending.slot, pending.rows).fill(0, row * rowBytes, (row + 1) * rowBytes);
    } else if (output.kind === 'list') pending.list[row] = { pixels: new Uint8Array(0), height: 0, width: 0 };
  }

  #count(pending: PendingBatch, row: number, reason: string): void {
    const { statistics, onBadSample } = this.#options;
    const block = pending.blocks[row]!;
    const { shard, key } = this.#whereabouts(block, pending.planned.item[row]!);
    const substitute = onBadSample === 'substitute' ? { substitute: keyOf(block, pending.items[row]!) } : {};
    statistics.countBad({ shard, key, reason, ...substitute });
  }

  #whereabouts(block: Block, item: number): { shard: string; key: string } {
    return { shard: this.#options.shardName(block.shard[item]!), key: keyOf(block, item) };
  }

  #encoded(pending: PendingBatch): Uint8Array[] {
    const { engine, image } = this.#options;
    return pending.blocks.map((block, row) => {
      const { index, indexRow, stretches } = locate(block, pending.items[row]!);
      const column = imageColumn(index, image);
      const offset = column.offset[indexRow]!;
      if (offset < 0) return new Uint8Array(0);
      return engine.arena.view(placeOf(block, stretches, offset), column.bytes[indexRow]!);
    });
  }

  /** The values of a row's fields. One that cannot be read makes the sample a bad one. */
  #readFields(pending: PendingBatch, row: number): void {
    if (pending.valid[row] === 0 && pending.reasons.has(row)) return;
    const block = pending.blocks[row]!;
    for (const name in pending.fields) {
      try {
        pending.fields[name]![row] = this.#field(block, pending.items[row]!, name);
      } catch (error) {
        const { message } = ((error as Error).cause ?? error) as Error;
        pending.bad.push({ row, reason: `field "${name}" is not what its name says (${message})` });
        return;
      }
    }
  }

  #field(block: Block, item: number, name: string): FieldValue | null {
    const { index, indexRow, stretches } = locate(block, item);
    const column = index.fields.get(name);
    const offset = column?.offset[indexRow] ?? -1;
    if (column === undefined || offset < 0) return null;
    const stored = this.#options.engine.arena.view(placeOf(block, stretches, offset), column.bytes[indexRow]!);
    return fieldValue(name, fieldBytes(stored, column, indexRow, { ...this.#whereabouts(block, item), field: name }));
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
